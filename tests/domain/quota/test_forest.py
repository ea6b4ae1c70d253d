"""The forest of quotas: who may use what."""

import pytest

from api import names
from domain.quota import forest as forests
from domain.quota import model
from tests.domain.quota.forests import a_forest, a_pod, a_quota


def team(name, minimum, hard, priority=0, maximum=None):
    return a_quota(
        name,
        {"cpu": minimum * 1000},
        {"cpu": maximum * 1000} if maximum else {},
        hard={"cpu": hard * 1000},
        priority=priority,
    )


def asking(name, used, waiting=0):
    """Return pods of one core that run and that wait."""
    return [
        a_pod(f"{name}-{kind}-{number}", name, {"cpu": 1000}, assigned=kind == "runs")
        for kind, count in (("runs", used), ("waits", waiting))
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("teams", "total", "pods", "limits"),
    [
        pytest.param(
            [team("a", 100, 200, maximum=300), team("b", 100, 200, maximum=300)],
            500,
            [("a", 80, 420), ("b", 80, 420)],
            {"a": 200, "b": 200},
            id="each reaches hard where much is free",
        ),
        pytest.param(
            [team("a", 100, 300, priority=1), team("b", 100, 300), team("c", 260, 500)],
            500,
            [("a", 90, 100), ("b", 100, 100), ("c", 260, 0)],
            {"a": 140, "b": 100},
            id="of 50 free the missing minimum comes first and the rest by priority",
        ),
        pytest.param(
            [team("a", 100, 500, priority=100), team("b", 100, 500, priority=50)],
            250,
            [("a", 100, 50), ("b", 100, 40)],
            {"a": 150, "b": 100},
            id="the higher priority takes all that is free",
        ),
        pytest.param(
            [team("critical", 300, 500, priority=100), team("batch", 100, 200, priority=10)],
            450,
            [("critical", 300, 200), ("batch", 100, 100)],
            {"critical": 350, "batch": 100},
            id="batch keeps its minimum, critical gets the last idle cores",
        ),
        pytest.param(
            [team("critical", 400, 500, priority=100), team("batch", 100, 200, priority=10)],
            500,
            [("critical", 300, 200), ("batch", 200, 0)],
            {"critical": 400, "batch": 100},
            id="a raised minimum is taken back from the borrower",
        ),
    ],
)
def test_teams_share_the_cluster(teams, total, pods, limits):
    started = [pod for one in pods for pod in asking(*one)]
    forest = a_forest(teams, started, {"cpu": total * 1000})
    found = {name: forest.figures(name).limit["cpu"] / 1000 for name in limits}
    assert found == limits


def test_a_pod_waits_with_a_sentence_and_fits_where_it_is_equal():
    forest = a_forest(
        [a_quota("team", {"cpu": 60}, {"cpu": 60, "memory": 60 << 20})],
        [
            a_pod("1", "team", {"cpu": 60, "memory": 60 << 20}, assigned=True),
            a_pod("2", "team", {"cpu": 60, "memory": 60 << 20}),
        ],
        {"cpu": 4000, "memory": 8 << 30},
    )
    asked = (("cpu", 60), ("memory", 60 << 20))
    short = forest.shortage("team", asked, preemptible=True)
    assert short.text() == (
        "Insufficient quotas, quotaName: team, runtime: cpu:60m,memory:60Mi, "
        "used: cpu:60m,memory:60Mi, pod's request: cpu:60m,memory:60Mi, "
        "exceedDimensions: [cpu memory]"
    )
    less = {"cpu": 60, "memory": 60 << 20}
    assert forest.shortage("team", asked, preemptible=True, less=less) is None


def test_pods_follow_their_quota():
    pods = [a_pod("1", "", {"cpu": 5}, assigned=True, namespace="ours")]
    forest = a_forest([], pods, {"cpu": 100})
    assert forest.name_of("", "ours") == names.DEFAULT_QUOTA
    bound = forest.with_quota(None, a_quota("q", {}, {"cpu": 9}, namespaces=("ours",)))
    assert bound.name_of("", "ours") == "q"
    assert bound.figures("q").used == {"cpu": 5}
    back = bound.with_quota(bound.quota("q"), None)
    assert back == forest
    assert back != bound
    gone = back.with_pod(pods[0], None).with_node((("cpu", 100),), None)
    assert gone == forests.Forest.empty()
    assert gone.with_rules(model.Rules(runtime=False)) != gone
