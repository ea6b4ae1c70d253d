"""LowNodeUtilization: pods leave nodes above the target thresholds for nodes below the others."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.configuration.arguments import utilization
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.low_node_utilization import low_node_utilization
from tests.descheduler import builders
from tests.descheduler.plugins import driving

BOTH = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}


def plugin(**written: Any) -> low_node_utilization.LowNodeUtilization:
    arguments = utilization.LowNodeUtilizationArgs.model_validate({**BOTH, **written})
    return low_node_utilization.LowNodeUtilization(arguments)


def node(name: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, cpu="10", memory="100Gi", **fields)


def pods(on: str, *cpus: str, **fields: Any) -> list[podinfo.Pod]:
    return [
        builders.pod(f"{on}{at}", on, cpu=cpu, memory="1Gi", **fields)
        for at, cpu in enumerate(cpus)
    ]


def suggested(
    nodes: list[nodeinfo.Node],
    of: list[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    seen = builders.picture_of(nodes, of)
    return driving.run(plugin(**(written or {})), driving.view(seen, **options), answer)


A, B, C = node("a"), node("b"), node("c")
HOT = pods("a", "2", "2", "2", "2")


@pytest.mark.parametrize(
    ("nodes", "of", "written", "expected"),
    [
        pytest.param([A, B], HOT, {}, ["a0", "a1"], id="until the node is at its threshold"),
        pytest.param([A], HOT, {}, [], id="one node"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([A, B], pods("a", "2", "2", "1"), {}, [], id="at the threshold is not above"),
        pytest.param([A, B], [*HOT, *pods("b", "3")], {}, [], id="no node is low"),
        pytest.param([A, B], [*HOT, *pods("b", "8")], {}, [], id="all nodes exceed the thresholds"),
        pytest.param([A, B], HOT, {"numberOfNodes": 1}, [], id="not enough low nodes"),
        pytest.param([A, B, C], HOT, {"numberOfNodes": 1}, ["a0", "a1"], id="enough low nodes"),
        pytest.param([A, node("b", schedulable=False)], HOT, {}, [], id="the low node is cordoned"),
        pytest.param(
            [A, B], HOT, {"evictionLimits": {"node": 1}}, ["a0"], id="limit for each node"
        ),
        pytest.param([A, B], HOT, {"evictionLimits": {"node": 0}}, [], id="limit of none"),
        pytest.param(
            [A, B],
            HOT,
            {"evictableNamespaces": {"exclude": ["default"]}},
            [],
            id="namespace excluded",
        ),
        pytest.param(
            [A, B],
            pods("a", "0", "6", "2"),
            {},
            ["a2"],
            id="pods that would not help, or would overload the target, stay",
        ),
        pytest.param(
            [A, B],
            [*pods("a", "3", "3"), *pods("b", "2")],
            {},
            ["a0"],
            id="the target stays within the target threshold",
        ),
        pytest.param(
            [A, B, C],
            [*HOT, *pods("b", "4")],
            {
                "thresholds": {"cpu": 10},
                "targetThresholds": {"cpu": 10},
                "useDeviationThresholds": True,
            },
            ["a0", "a1"],
            id="distances from the mean of 40%",
        ),
        pytest.param(
            [A, B],
            HOT,
            {"thresholds": {"pods": 20}, "targetThresholds": {"pods": 50}},
            [],
            id="few pods",
        ),
    ],
)
def test_which_pods_leave(
    nodes: list[nodeinfo.Node],
    of: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    assert driving.names(suggested(nodes, of, written)) == expected


def test_the_fullest_node_is_relieved_first_by_its_least_important_pods() -> None:
    of = [
        *pods("a", "2", "2", "2"),
        *pods("b", "3", priority=5),
        *[builders.pod("b-low", "b", cpu="3", priority=1), builders.pod("b-kept", "b", cpu="3")],
    ]
    found = suggested([A, B, C], of, kept={"b-kept"}, kept_late={"a0"})
    assert driving.names(found) == ["b-low", "a1"]
    assert found[0].purpose is protocols.Purpose.COMPLY
    assert found[0].targets == ("c",)
    assert found[0].reason == "node is overutilized: cpu 90% of 50% requested"


def test_a_refused_pod_does_not_count() -> None:
    assert driving.names(suggested([A, B], HOT, answer=driving.stays)) == ["a0", "a1", "a2", "a3"]
    limited = {"evictionLimits": {"node": 1}}
    assert len(suggested([A, B], HOT, limited, answer=driving.stays)) == 4


def test_a_second_round_changes_nothing_more() -> None:
    """No node is a source and a target in turn: that would move pods for ever."""
    seen = builders.picture_of([A, B], HOT)
    moved: dict[str, str] = {}

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        moved[one.pod.uid] = "b"
        return protocols.Target("b")

    driving.run(plugin(), driving.view(seen), answer)
    later = [
        builders.pod(one.name, moved.get(one.uid, one.node), cpu="2", memory="1Gi") for one in HOT
    ]
    assert suggested([A, B], later) == []


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(1, 50), max_size=5), min_size=2, max_size=5),
    st.booleans(),
)
def test_no_target_ends_above_its_threshold(sizes: list[list[int]], deviation: bool) -> None:
    nodes = [node(f"n{at}") for at in range(len(sizes))]
    of = [one for at, of_node in enumerate(sizes) for one in pods(f"n{at}", *_cpus(of_node))]
    seen = builders.picture_of(nodes, of)
    moved: dict[str, str] = {}

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        moved[one.pod.uid] = max(one.targets or ())
        return protocols.Target(moved[one.pod.uid])

    written = {"useDeviationThresholds": deviation}
    driving.run(plugin(**written), driving.view(seen), answer)
    used = {name: sum(p.requests["cpu"] for p in seen.running_on(name)) for name in seen.nodes}
    mean = sum(used.values()) / len(used)
    highest = min(mean + 5_000, 10_000) if deviation else 5_000
    for name, there in driving.after(seen, moved).items():
        after = sum(one.requests["cpu"] for one in there)
        assert after <= max(highest + 0.1, used[name])


def _cpus(sizes: list[int]) -> list[str]:
    return [f"{size * 100}m" for size in sizes]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        pytest.param([], "no node is above targetThresholds", id="no node is overutilized"),
        pytest.param(
            [*HOT, *pods("b", "6")],
            "0 of 2 nodes are below thresholds, more than 0 have to be",
            id="all nodes exceed the thresholds",
        ),
    ],
)
def test_it_says_why_no_pod_leaves(of: list[podinfo.Pod], expected: str) -> None:
    seen = driving.view(builders.picture_of([A, B], of))
    assert driving.notes(plugin(), seen) == (expected,)
