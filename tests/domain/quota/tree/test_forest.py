"""The forest of quotas: who may use what."""

import msgspec
import pytest

from api import names
from domain.quota import model
from domain.quota.tree import forest as forests
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


def test_a_resource_that_the_parent_does_not_bound_is_bounded_by_the_child_alone():
    parent = a_quota("p", {}, {"cpu": 10})
    child = a_quota("c", {}, {"cpu": 20, "memory": 7}, parent="p")
    forest = a_forest([parent, child], [a_pod("1", "c", {"cpu": 30, "memory": 9})], {"cpu": 100})
    assert forest.limit("c") == {"cpu": 10, "memory": 7}
    more = msgspec.structs.replace(child, maximum={"cpu": 20, "memory": 8})
    assert forest.with_quota(child, more).limit("c") == {"cpu": 10, "memory": 8}


def test_where_nobody_lends_another_minimum_counts_at_once():
    one = a_quota("c", {"cpu": 10}, {"cpu": 90}, parent="p")
    forest = a_forest(
        [a_quota("p", {}, {"cpu": 99}), one, a_quota("d", {}, {"cpu": 99})],
        [a_pod("1", "d", {"cpu": 99})],
        {"cpu": 100},
        model.Rules(guarantee=True),
    )
    assert (forest.limit("p")["cpu"], forest.limit("d")["cpu"]) == (10, 90)
    more = msgspec.structs.replace(one, minimum={"cpu": 30})
    after = forest.with_quota(one, more)
    assert (after.limit("p")["cpu"], after.limit("d")["cpu"]) == (30, 70)
    assert after.figures("p").allocated == {"cpu": 30}


def test_the_quota_that_borrowed_less_goes_first():
    def quotas(spent):
        return [
            a_quota("a", {}, {"cpu": 9}, borrowed={"cpu": spent}, borrowed_at=100.0),
            a_quota("b", {}, {"cpu": 9}),
        ]

    pods = [a_pod(f"{name}{n}", name, {"cpu": 1}) for name in "ab" for n in range(9)]
    rules = model.Rules(half_life=3600.0)
    shares = {
        (spent, half): tuple(
            a_forest(quotas(spent), pods, {"cpu": 9}, each).limit(name)["cpu"] for name in "ab"
        )
        for spent in (0, 50)
        for half, each in ((True, rules), (False, model.Rules()))
    }
    assert shares == {
        (0, False): (5, 4),
        (50, False): (5, 4),
        (0, True): (5, 4),
        (50, True): (0, 9),
    }


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param(
            lambda made: made.with_pod(None, a_pod("x", "b", {"cpu": 1000}, assigned=True)),
            True,
            id="a pod of another quota while enough is free",
        ),
        pytest.param(
            lambda made: made.with_pod(None, a_pod("x", "a", {"cpu": 1000}, assigned=True)),
            False,
            id="a pod of its own",
        ),
        pytest.param(
            lambda made: made.with_node((("cpu", 900_000),), (("cpu", 90_000),)),
            False,
            id="less to share",
        ),
        pytest.param(
            lambda made: made.with_quota(team("a", 10, 200), team("a", 10, 20)),
            False,
            id="another limit",
        ),
    ],
)
def test_the_room_of_a_quota_differs_where_its_limit_or_use_does(change, same):
    teams = [team("a", 10, 200), team("b", 10, 200)]
    made = a_forest(teams, asking("a", 40, 120) + asking("b", 40), {"cpu": 900_000})
    changed = change(made)
    assert (changed.room_state("a") == made.room_state("a")) is same
    figures = (made.limit("a"), made.used("a")), (changed.limit("a"), changed.used("a"))
    assert (figures[0] == figures[1]) is same
    assert made.room_state("unknown") == ()
    assert made.room_sources(["a", "unknown"]).keys() == {"a"}
