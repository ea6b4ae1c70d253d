from descheduler.framework import objective, protocols
from descheduler.framework.planning import round_plan
from descheduler.rounds import pages, rounds
from tests.descheduler import builders


def test_before_the_first_round():
    assert pages.document(rounds.NO_ROUND) == {
        "result": "waiting",
        "message": "no round has run yet",
    }


def test_a_round_with_everything():
    pod = builders.pod("web-0", "n1")
    suggestion = protocols.Suggestion(pod, "LowNodeLoad", "hot", protocols.Purpose.BALANCE)
    worth = objective.Accepted(protocols.Target("n2", 7), 2.5, 1.0, {"before": 31.04})
    plan = round_plan.RoundPlan(
        moves=(round_plan.Move(suggestion, "even", "MigrationController", worth),),
        refused=(round_plan.Refused("LowNodeLoad", "too little", 1, ("default/web-1",)),),
        kept=(round_plan.Kept("even", "static", 2),),
        failures=(round_plan.Failure("even", "PodLifeTime", "boom"),),
        counts=(round_plan.Counted("even", "LowNodeLoad", "gpu", "high", 2),),
        notes=(round_plan.Note("even", "LowNodeLoad", "2 of 3 nodes are hot"),),
        spread=objective.Spread(31.0, 12.0),
    )
    outcome = rounds.Outcome(rounds.PLANNED, plan.summary, plan, 1_700_000_000.0, 0.25, 1)
    assert pages.document(outcome) == {
        "result": "planned",
        "message": plan.summary,
        "at": "2023-11-14T22:13:20Z",
        "seconds": 0.25,
        "moved": 1,
        "dryRun": False,
        "spreadPercent": {"before": 31.0, "after": 12.0},
        "moves": [
            {
                "pod": "default/web-0",
                "from": "n1",
                "to": "n2",
                "profile": "even",
                "plugin": "LowNodeLoad",
                "reason": "hot",
                "gain": 2.5,
                "cost": 1.0,
                "figures": {"before": 31.04},
                "dryRun": False,
            }
        ],
        "refused": [
            {
                "plugin": "LowNodeLoad",
                "reason": "too little",
                "count": 1,
                "examples": ["default/web-1"],
            }
        ],
        "kept": [{"profile": "even", "reason": "static", "count": 2}],
        "failures": [{"profile": "even", "plugin": "PodLifeTime", "error": "boom"}],
        "nodes": [{"profile": "even", "pool": "gpu", "class": "high", "count": 2}],
        "notes": [{"profile": "even", "plugin": "LowNodeLoad", "text": "2 of 3 nodes are hot"}],
    }
