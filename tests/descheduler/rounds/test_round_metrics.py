from descheduler.framework import objective, protocols
from descheduler.framework.planning import round_plan
from descheduler.rounds import round_metrics
from process.runtime import metrics
from tests.descheduler import builders


def move(**given):
    pod = builders.pod("web-0", "n1")
    suggestion = protocols.Suggestion(pod, "LowNodeLoad", "hot", protocols.Purpose.BALANCE)
    return round_plan.Move(suggestion, "even", "MigrationController", **given)


def test_what_a_round_has_decided_is_exported():
    registry = metrics.Registry()
    figures = round_metrics.RoundMetrics(registry)
    refused = round_plan.Refused("LowNodeLoad", "too little", 3, ())
    plan = round_plan.RoundPlan(
        moves=(move(),),
        refused=(refused,),
        kept=(round_plan.Kept("even", "it is a DaemonSet pod", 7),),
        failures=(round_plan.Failure("even", "LowNodeLoad", "boom"),),
        counts=(round_plan.Counted("even", "LowNodeLoad", "gpu", "high", 2),),
        spread=objective.Spread(31.0, 12.0),
    )
    figures.decided(plan, 1000.0, 0.5)
    hot = {"profile": "even", "plugin": "LowNodeLoad", "pool": "gpu", "class": "high"}
    assert registry.value("koord_descheduler_nodes", hot) == 2
    figures.decided(round_plan.RoundPlan(), 1010.0, 0.5)
    figures.ended("planned")
    figures.moved(move(), round_metrics.MOVED)
    figures.evicted(move(), is_accepted=False)
    value = registry.value
    of = {"plugin": "LowNodeLoad"}
    assert value("koord_descheduler_refusals_total", {**of, "reason": "too little"}) == 3
    assert value("koord_descheduler_plugin_failures_total", {**of, "profile": "even"}) == 1
    assert value("koord_descheduler_load_spread_ratio", {"when": "after"}) == 0.12
    assert value("koord_descheduler_last_round_timestamp_seconds") == 1010.0
    assert value("koord_descheduler_round_seconds_count") == 2
    assert value("koord_descheduler_rounds_total", {"result": "planned"}) == 1
    created = {**of, "profile": "even", "result": "created"}
    assert value("koord_descheduler_moves_total", created) == 1
    kept = {"profile": "even", "reason": "it is a DaemonSet pod"}
    assert value("koord_descheduler_kept_pods", kept) is None, "of the last round only"
    evicted = {"result": "error", "strategy": "LowNodeLoad", "namespace": "default", "node": "n1"}
    assert value("koord_descheduler_pods_evicted_total", evicted) == 1


def test_reasons_with_figures_do_not_fill_the_registry():
    registry = metrics.Registry()
    figures = round_metrics.RoundMetrics(registry)
    for number in range(300):
        refused = round_plan.Refused("P", f"cpu {number} %", 1, ())
        figures.decided(round_plan.RoundPlan(refused=(refused,)), 0.0, 0.0)
    other = {"plugin": "P", "reason": "other"}
    assert registry.value("koord_descheduler_refusals_total", other) == 100


def test_nodes_that_come_and_go_do_not_fill_the_registry():
    registry = metrics.Registry()
    figures = round_metrics.RoundMetrics(registry)
    for number in range(metrics.MOST_SERIES + 3):
        pod = builders.pod("web-0", f"n{number}")
        suggestion = protocols.Suggestion(pod, "LowNodeLoad", "hot", protocols.Purpose.BALANCE)
        moved = round_plan.Move(suggestion, "even", "MigrationController")
        figures.evicted(moved, is_accepted=True)
    other = {"strategy": "other", "namespace": "other", "node": "other", "result": "success"}
    assert registry.value("koord_descheduler_pods_evicted_total", other) == 3
