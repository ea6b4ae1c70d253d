"""Trees beside the default tree, pods and quotas that move, and objects that cannot be right."""

import msgspec
import pytest

from api import names
from domain.quota import model
from domain.quota.tree import membership
from tests import processor_time
from tests.domain.quota.forests import a_forest, a_pod, a_quota

GPU = "nvidia.com/gpu"


def pool(name, tree, cpu, **other):
    """Return the root of a tree as a profile makes it."""
    return a_quota(
        name, {"cpu": cpu}, {"cpu": 1 << 50}, tree=tree, is_root=True, total={"cpu": cpu}, **other
    )


def team(name, minimum, most, **other):
    return a_quota(name, {"cpu": minimum}, {"cpu": most}, **other)


POOLS = [
    pool("gpu-root", "gpu", 60),
    team("gpu-a", 20, 60, parent="gpu-root"),
    team("gpu-b", 20, 60, parent="gpu-root"),
    team("plain", 10, 100),
]
BUSY = [a_pod(f"{one}-waits", one, {"cpu": 100}) for one in ("gpu-a", "gpu-b", "plain")]


@pytest.mark.parametrize(
    ("quotas", "rules", "totals", "limits"),
    [
        pytest.param(
            POOLS, model.Rules(), {"": 40, "gpu": 60}, {"gpu-a": 30, "gpu-b": 30, "plain": 40},
            id="a tree shares out its total, which the default tree lacks",
        ),
        pytest.param(
            [pool("gpu-root", "gpu", 60, ignores_default_tree=True), *POOLS[1:]],
            model.Rules(), {"": 100, "gpu": 60}, {"gpu-a": 30, "gpu-b": 30, "plain": 100},
            id="a tree that ignores the default tree takes nothing from it",
        ),
        pytest.param(
            POOLS[1:], model.Rules(), {"": 100}, {"gpu-a": 37, "gpu-b": 37, "plain": 26},
            id="without the root the teams compete with all others",
        ),
        pytest.param(
            [*POOLS[1:], pool("gpu-root", "gpu", 0)], model.Rules(), {"": 100, "gpu": 0},
            {"gpu-a": 0, "gpu-b": 0, "plain": 100},
            id="a tree without nodes has nothing",
        ),
        pytest.param(
            [*POOLS, pool("later", "gpu", 30, created_at=9.0)], model.Rules(),
            {"": 40, "gpu": 60}, {"gpu-a": 30, "plain": 40},
            id="the older root of a tree says its total",
        ),
        pytest.param(
            [pool("gpu-root", "gpu", 160), *POOLS[1:]], model.Rules(), {"": -60, "gpu": 160},
            {"gpu-a": 60, "gpu-b": 60, "plain": 0},
            id="trees larger than the cluster leave the default tree nothing",
        ),
        pytest.param(
            [*POOLS[:3], team("plain", 0, 100)], model.Rules(multi_tree=False), {"": 100},
            {"gpu-a": 40, "gpu-b": 40, "plain": 20},
            id="with the gate off all share one tree",
        ),
    ],
)  # fmt: skip
def test_trees(quotas, rules, totals, limits):
    weights = [msgspec.structs.replace(one, weight={"cpu": 1}) for one in quotas]
    forest = a_forest(weights, BUSY, {"cpu": 100}, rules)
    assert {tree: forest.total(tree)["cpu"] for tree in totals} == totals
    found = {name: forest.limit(name)["cpu"] for name in limits}
    assert found == limits


def test_a_root_that_comes_goes_and_grows_moves_what_is_shared_out():
    forest = a_forest(POOLS[1:], BUSY, {"cpu": 100})
    with_root = forest.with_quota(None, POOLS[0])
    assert (with_root.total()["cpu"], with_root.limit("plain")["cpu"]) == (40, 40)
    grown = pool("gpu-root", "gpu", 80)
    assert with_root.with_quota(POOLS[0], grown).limit("plain")["cpu"] == 20
    assert with_root.with_quota(POOLS[0], None) == forest
    assert with_root.with_quota(POOLS[0], None).total() == forest.total()


def test_a_pod_that_moves_is_counted_once():
    forest = a_forest([team("a", 0, 90), team("b", 0, 90)], (), {"cpu": 100})
    pod = a_pod("1", "a", {"cpu": 7}, assigned=True)
    moved = msgspec.structs.replace(pod, quota="b")
    after = forest.with_pod(None, pod).with_pod(pod, moved)
    assert (after.used("a"), after.used("b")) == ({"cpu": 0}, {"cpu": 7})
    assert after == forest.with_pod(None, moved)


def test_a_quota_that_moves_takes_its_pods_along():
    tops = [team("x", 0, 90), team("y", 0, 90)]
    child = team("c", 0, 90, parent="x")
    forest = a_forest([*tops, child], [a_pod("1", "c", {"cpu": 7}, assigned=True)], {"cpu": 100})
    assert [forest.used(one)["cpu"] for one in "xyc"] == [7, 0, 7]
    moved = forest.with_quota(child, msgspec.structs.replace(child, parent="y"))
    assert [moved.used(one)["cpu"] for one in "xyc"] == [0, 7, 7]
    gone = moved.with_quota(moved.quota("c"), None)
    assert [gone.used(one).get("cpu") for one in "xyc"] == [0, 0, None]
    assert gone.name_of("c", "pods") == names.DEFAULT_QUOTA


@pytest.mark.parametrize(
    ("quotas", "told"),
    [
        pytest.param([team("c", 1, 9, parent="nowhere")], "nowhere does not exist", id="orphan"),
        pytest.param([team("c", 1, 9, parent="c")], "lead back to itself", id="own parent"),
        pytest.param(
            [team("c", 1, 9, parent="d"), team("d", 1, 9, parent="c")], "lead back", id="cycle"
        ),
        pytest.param(
            [team("c", 1, 9), team("c", 5, 5, namespace="other", created_at=9.0)],
            "taken by the older", id="a name twice",
        ),
        pytest.param(
            [team("c", 1, 9, namespaces=("n",)), team("d", 1, 9, namespaces=("n",))],
            "namespace n is bound to the older", id="a namespace twice",
        ),
        pytest.param(
            [pool("r", "t", 0), team("c", 1, 9, parent="r", tree="u")],
            'in tree "t", not in "u"', id="a parent in another tree",
        ),
        pytest.param(
            [team(f"q{n:02}", 1, 9, parent=f"q{n - 1:02}" if n else names.ROOT_QUOTA)
             for n in range(membership.DEEPEST)]
            + [team("c", 1, 9, parent=f"q{membership.DEEPEST - 1:02}")],
            "levels deep", id="too deep",
        ),
    ],
)  # fmt: skip
def test_a_quota_that_cannot_stand_where_it_claims(quotas, told):
    """It is reported and keeps its minimum, and its neighbors stay as they were."""
    neighbor = team("sound", 50, 90)
    pods = [a_pod("1", "c", {"cpu": 1}), a_pod("2", "sound", {"cpu": 50})]
    forest = a_forest([neighbor, *quotas], pods, {"cpu": 100})
    assert any(told in line for line in forest.conflicts()), forest.conflicts()
    assert forest.limit("sound")["cpu"] == 50
    # What is in a tree of its own has no nodes there.
    assert forest.limit("c")["cpu"] == (0 if "tree" in told else 1)


def test_conflicts_are_told_boundedly():
    forest = a_forest([team(f"q{n}", 0, 1, parent="nowhere") for n in range(500)])
    assert len(forest.conflicts()) <= 65
    assert forest.conflicts()[-1].startswith("and ")


def test_namespaces_that_two_quotas_name_are_told_boundedly_and_the_older_one_has_them():
    named = tuple(f"n{at}" for at in range(500))
    old = team("old", 0, 1, namespaces=named[:400], created_at=1.0)
    young = team("young", 0, 1, namespaces=named, created_at=2.0)
    forest = a_forest([young, old])
    assert [forest.name_of("", one) for one in ("n0", "n399", "n400")] == ["old", "old", "young"]
    assert len(forest.conflicts()) == 65
    assert forest.conflicts()[-1] == "and 336 more"


def test_ten_thousand_resource_names_hold_up_nobody():
    many = {f"example.com/r{number}": 1 << 70 for number in range(10_000)}
    hostile = a_quota("hostile", many, many, namespaces=("theirs",))
    pods = [
        a_pod("1", "", dict.fromkeys(many, 1 << 52), namespace="theirs", assigned=True),
        a_pod("2", "sound", {"cpu": 9}, assigned=True),
    ]
    forest = a_forest([hostile, team("sound", 10, 90)], pods, {"cpu": 100})
    with processor_time.below(1.0):
        assert forest.refreshed().limit("sound") == {"cpu": 9}
        short = forest.shortage("hostile", pods[0].requests, preemptible=False)
    assert short is not None
    assert len(short.text()) < 4000
    more = a_pod("3", "sound", {"cpu": 1})
    with processor_time.below(0.1):
        for _ in range(100):
            forest = forest.with_pod(None, more).with_pod(more, None)
            assert forest.limit("sound") == {"cpu": 9}


@pytest.mark.parametrize("amount", [-5, 0, 1 << 62, 1 << 63, 1 << 80])
def test_whatever_a_quota_says_others_keep_their_limits(amount):
    strange = a_quota("strange", {"cpu": -amount}, {"cpu": amount, GPU: amount}, weight={"cpu": -1})
    forest = a_forest(
        [strange, team("sound", 50, 90)],
        [a_pod("1", "strange", {"cpu": 10**30}), a_pod("2", "sound", {"cpu": 90})],
        {"cpu": 100},
    )
    assert forest.refreshed().limit("sound")["cpu"] == 90
    assert forest.figures("strange").runtime["cpu"] == 0
