"""CustomPriority: pods leave groups of nodes for later groups, one by one or node by node."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.custom_priority import custom_priority
from tests.descheduler import builders
from tests.descheduler.plugins import driving

DRAIN = {"mode": "DrainNode"}


def stage(name: str, **labels: str) -> dict[str, Any]:
    return {"name": name, "nodeSelector": {"matchLabels": labels or {"pool": name}}}


ORDER = [stage("dear"), stage("middle"), stage("cheap")]


def plugin(**written: Any) -> custom_priority.CustomPriority:
    arguments = packing.CustomPriorityArgs.model_validate({"evictionOrder": ORDER, **written})
    return custom_priority.CustomPriority(arguments)


def node(name: str, pool: str, cpu: str = "10", **fields: Any) -> nodeinfo.Node:
    return builders.node(name, cpu=cpu, memory="100Gi", labels={"pool": pool}, **fields)


DEAR, MIDDLE, CHEAP = node("d", "dear"), node("m", "middle"), node("c", "cheap")


def pod(name: str, on: str, cpu: str = "1", **fields: Any) -> podinfo.Pod:
    return builders.pod(name, on, cpu=cpu, **fields)


def suggested(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    seen = builders.picture_of(nodes, pods)
    return driving.run(plugin(**(written or {})), driving.view(seen, **options), answer)


@pytest.mark.parametrize("mode", ["BestEffort", "DrainNode"])
@pytest.mark.parametrize(
    ("nodes", "pods", "written", "expected"),
    [
        pytest.param([DEAR, CHEAP], [pod("p", "d")], {}, ["p"], id="from dear to cheap"),
        pytest.param([DEAR, CHEAP], [pod("p", "c")], {}, [], id="never back"),
        pytest.param([DEAR], [pod("p", "d")], {}, [], id="one group has nodes"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([DEAR, CHEAP], [], {}, [], id="no pods"),
        pytest.param(
            [DEAR, node("x", "other")],
            [pod("p", "d")],
            {},
            [],
            id="a node of no group is no target",
        ),
        pytest.param([DEAR, node("c", "cheap", "0")], [pod("p", "d")], {}, [], id="no room"),
        pytest.param(
            [DEAR, node("c", "cheap", schedulable=False)], [pod("p", "d")], {}, [], id="cordoned"
        ),
        pytest.param([DEAR, CHEAP], [pod("p", "d")], {"paused": True}, [], id="paused"),
        pytest.param(
            [DEAR, CHEAP],
            [pod("p", "d")],
            {"evictableNamespaces": {"exclude": ["default"]}},
            [],
            id="namespace excluded",
        ),
        pytest.param(
            [DEAR, CHEAP],
            [pod("p", "d", labels={"app": "web"}), pod("q", "d")],
            {"podSelectors": [{"name": "web", "selector": {"matchLabels": {"app": "web"}}}]},
            ["p"],
            id="only selected pods",
        ),
        pytest.param(
            [DEAR, CHEAP],
            [pod("p", "d")],
            {"nodeSelector": {"matchLabels": {"pool": "cheap"}}},
            [],
            id="only nodes looked at",
        ),
        pytest.param(
            [DEAR, CHEAP],
            [
                pod("daemon", "d", controller="DaemonSet/x"),
                pod("static", "d", is_mirror=True),
                pod("ended", "d", phase="Failed"),
                pod("going", "d", leaves_at=1.0),
                pod("p", "d"),
            ],
            {},
            ["p"],
            id="pods that belong to the node or are going are no candidates",
        ),
    ],
)
def test_which_pods_leave(
    mode: str,
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    found = suggested(nodes, pods, {"mode": mode, **written})
    assert driving.names(found) == expected


def test_a_node_belongs_to_the_first_group_that_selects_it() -> None:
    order = [stage("all-dear", tier="1"), stage("dear"), stage("cheap")]
    both = builders.node("b", labels={"tier": "1", "pool": "cheap"})
    found = suggested([both, CHEAP], [pod("p", "b")], {"evictionOrder": order})
    assert [one.reason for one in found] == [
        "evicting from all-dear priority resource to lower priority resource"
    ]
    assert found[0].targets == ("c",)


def test_best_effort_moves_small_pods_first_and_keeps_count_of_the_room() -> None:
    pods = [pod("big", "d", "4"), pod("small", "d", "1"), pod("mid", "d", "2")]
    found = suggested([DEAR, node("c", "cheap", "5")], pods)
    assert driving.names(found) == ["small", "mid"]
    assert {one.purpose for one in found} == {protocols.Purpose.COMPLY}
    assert {one.cordon for one in found} == {None}


def test_best_effort_stops_a_node_after_five_misfits_in_a_row() -> None:
    fitting = {"selector": {"pool": "cheap"}}
    pods = [
        *[pod(f"picky{at}", "d", "1", selector={"pool": "none"}) for at in range(4)],
        pod("fits", "d", "2", **fitting),
        *[pod(f"picky{at}", "d", "3", selector={"pool": "none"}) for at in range(4, 9)],
        pod("too-late", "d", "4", **fitting),
    ]
    assert driving.names(suggested([DEAR, CHEAP], pods)) == ["fits"]


def test_without_node_fit_best_effort_leaves_it_to_the_scheduler() -> None:
    full = node("c", "cheap", "0")
    found = suggested([DEAR, full], [pod("p", "d")], {"nodeFit": False})
    assert [one.targets for one in found] == [("c",)]


def test_best_effort_passes_protected_pods_and_drain_leaves_the_node() -> None:
    pods = [pod("kept", "d"), pod("late", "d"), pod("p", "d")]
    options = {"kept": {"kept"}, "kept_late": {"late"}}
    assert driving.names(suggested([DEAR, CHEAP], pods, **options)) == ["p"]
    assert suggested([DEAR, CHEAP], pods, DRAIN, **options) == []


def test_drain_moves_all_pods_of_a_node_or_none() -> None:
    pods = [pod("p", "d", "3"), pod("q", "d", "3")]
    assert suggested([DEAR, node("c", "cheap", "5")], pods, DRAIN) == []
    first, second = suggested([DEAR, node("c", "cheap", "6")], pods, DRAIN)
    assert [one.name for one in first.along] == ["q"]
    assert second.along == ()
    assert first.purpose is protocols.Purpose.EMPTY
    assert first.reason == "drain node d (sourcePriority=dear)"


def test_drain_carries_what_it_promised_from_node_to_node() -> None:
    nodes = [DEAR, node("d2", "dear"), node("c", "cheap", "3")]
    pods = [pod("p", "d", "2"), pod("q", "d2", "2"), pod("r", "d2", "1")]
    assert driving.names(suggested(nodes, pods, DRAIN)) == ["p"]


def test_drain_stops_at_the_first_pod_that_stays() -> None:
    pods = [pod("p", "d"), pod("q", "d"), pod("r", "d")]
    found = suggested(
        [DEAR, CHEAP], pods, DRAIN, lambda one: driving.leaves(one) if one.along else False
    )
    assert driving.names(found) == ["p", "q"]


def test_a_node_that_was_just_sent_pods_is_not_drained_in_the_same_round() -> None:
    pods = [pod("p", "d"), pod("q", "m")]

    def to_middle(one: protocols.Suggestion) -> protocols.Answer:
        return protocols.Target(max(one.targets or ()))

    assert driving.names(suggested([DEAR, MIDDLE, CHEAP], pods, DRAIN, to_middle)) == ["p"]


@pytest.mark.parametrize(
    ("written", "cordons"),
    [
        pytest.param({**DRAIN, "autoCordon": True}, True, id="asked for"),
        pytest.param(DRAIN, False, id="not asked for"),
        pytest.param({"autoCordon": True}, False, id="BestEffort cordons nothing"),
    ],
)
def test_a_drained_node_is_cordoned_first_where_asked_for(
    written: dict[str, Any], cordons: bool
) -> None:
    found = suggested([DEAR, CHEAP], [pod("p", "d"), pod("q", "d")], written)
    expected = protocols.Cordon("d", "CustomPriority", "drain node d (sourcePriority=dear)")
    assert {one.cordon for one in found} == {expected if cordons else None}


def test_a_node_that_cannot_be_drained_is_not_cordoned() -> None:
    full = node("c", "cheap", "0")
    assert suggested([DEAR, full], [pod("p", "d")], {**DRAIN, "autoCordon": True}) == []


def test_dry_run_is_passed_on() -> None:
    for written in ({"dryRun": True}, {"dryRun": True, **DRAIN, "autoCordon": True}):
        found = suggested([DEAR, CHEAP], [pod("p", "d")], written)
        assert [one.dry_run for one in found] == [True]


POOLS = ("dear", "middle", "cheap", "other")


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(POOLS), st.lists(st.integers(1, 8), max_size=4)),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from(["BestEffort", "DrainNode"]),
)
def test_pods_only_go_to_later_groups_and_fit_there(
    drawn: list[tuple[str, list[int]]], mode: str
) -> None:
    nodes = [node(f"n{at}", pool) for at, (pool, _) in enumerate(drawn)]
    pods = [
        pod(f"p{at}-{n}", f"n{at}", str(size))
        for at, (_, sizes) in enumerate(drawn)
        for n, size in enumerate(sizes)
    ]
    seen = builders.picture_of(nodes, pods)
    moved: dict[str, str] = {}

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        moved[one.pod.uid] = max(one.targets or ())
        return protocols.Target(moved[one.pod.uid])

    found = driving.run(plugin(mode=mode), driving.view(seen), answer)
    pools = {one.name: POOLS.index(one.labels["pool"]) for one in nodes}
    for one in found:
        assert pools[one.pod.node] < pools[moved[one.pod.uid]] < POOLS.index("other")
    used = {name: sum(p.requests["cpu"] for p in seen.running_on(name)) for name in seen.nodes}
    for name, there in driving.after(seen, moved).items():
        assert sum(one.requests["cpu"] for one in there) <= max(10_000, used[name])
