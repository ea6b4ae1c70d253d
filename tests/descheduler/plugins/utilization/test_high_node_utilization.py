"""HighNodeUtilization: nodes below the thresholds are emptied as a whole, or not at all."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.configuration.arguments import utilization
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.high_node_utilization import high_node_utilization
from tests.descheduler import builders
from tests.descheduler.plugins import driving

LOW = {"cpu": 20, "memory": 20}


def plugin(**written: Any) -> high_node_utilization.HighNodeUtilization:
    arguments = utilization.HighNodeUtilizationArgs.model_validate({"thresholds": LOW, **written})
    return high_node_utilization.HighNodeUtilization(arguments)


def node(name: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, cpu="10", memory="10Gi", **fields)


def pod(name: str, on: str, cpu: str = "1", **fields: Any) -> podinfo.Pod:
    return builders.pod(name, on, cpu=cpu, memory=f"{cpu}Gi", **fields)


def busy(on: str, cpu: str = "5") -> podinfo.Pod:
    return pod(f"busy-{on}", on, cpu)


def suggested(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    seen = builders.picture_of(nodes, pods)
    return driving.run(plugin(**(written or {})), driving.view(seen, **options), answer)


A, B = node("a"), node("b")


@pytest.mark.parametrize(
    ("nodes", "pods", "written", "expected"),
    [
        pytest.param([A, B], [pod("p", "a"), busy("b")], {}, ["p"], id="emptied into a busy node"),
        pytest.param([A, B], [pod("p", "a"), pod("q", "b")], {}, [], id="no busy node"),
        pytest.param([A, B], [busy("a"), busy("b")], {}, [], id="no node is low"),
        pytest.param([A], [pod("p", "a")], {}, [], id="one node"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([A, B], [busy("b")], {}, [], id="the low node is empty already"),
        pytest.param(
            [A, B], [pod("p", "a", "2"), busy("b")], {}, ["p"], id="as much as the threshold is low"
        ),
        pytest.param(
            [A, B], [pod("p", "a", "2.1"), busy("b")], {}, [], id="above the threshold is not"
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), busy("b")],
            {"numberOfNodes": 1},
            [],
            id="no more low nodes than numberOfNodes",
        ),
        pytest.param([A, B], [pod("p", "a"), busy("b", "9.5")], {}, [], id="the busy node is full"),
        pytest.param(
            [A, node("b", schedulable=False)],
            [pod("p", "a"), busy("b")],
            {},
            [],
            id="the busy node is cordoned",
        ),
        pytest.param(
            [node("a", schedulable=False), B],
            [pod("p", "a"), busy("b")],
            {},
            ["p"],
            id="a cordoned node is emptied",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), busy("b")],
            {"evictableNamespaces": {"exclude": ["default"]}},
            [],
            id="an excluded namespace keeps the node",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("d", "a", controller="DaemonSet/d"), busy("b")],
            {},
            ["p"],
            id="pods of a DaemonSet are left there",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("m", "a", is_mirror=True), busy("b")],
            {},
            ["p"],
            id="static pods are left there",
        ),
        pytest.param(
            [A, B],
            [
                pod("p", "a"),
                pod("e", "a", phase="Succeeded"),
                pod("t", "a", leaves_at=1.0),
                busy("b"),
            ],
            {},
            ["p"],
            id="pods that ended or are going are left there",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("best-effort", "a", "0"), busy("b")],
            {"evictionModes": ["OnlyThresholdingResources"]},
            ["p"],
            id="pods without requests are left there where asked for",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("best-effort", "a", "0"), busy("b")],
            {},
            ["p", "best-effort"],
            id="otherwise they leave as well",
        ),
    ],
)
def test_which_nodes_are_emptied(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    assert driving.names(suggested(nodes, pods, written)) == expected


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"kept": {"q"}}, id="kept by a filter"),
        pytest.param({"kept_late": {"q"}}, id="kept by the check before evictions"),
    ],
)
def test_a_node_with_a_pod_that_has_to_stay_is_left_alone(options: dict[str, Any]) -> None:
    assert suggested([A, B], [pod("p", "a"), pod("q", "a"), busy("b")], **options) == []


def test_a_node_is_left_alone_when_one_of_its_pods_fits_nowhere() -> None:
    pods = [pod("p", "a", "0.5"), pod("picky", "a", "0.5", selector={"disk": "ssd"}), busy("b")]
    assert suggested([A, B], pods) == []


def test_the_first_pod_names_the_rest_and_a_refusal_ends_it() -> None:
    pods = [pod("p", "a", "1"), pod("q", "a", "0.9"), busy("b")]
    first, second = suggested([A, B], pods)
    assert [one.name for one in first.along] == ["q"]
    assert second.along == ()
    assert first.purpose is protocols.Purpose.EMPTY
    assert first.targets == ("b",)
    assert first.reason == ("node is underutilized: cpu 19% of 20%, memory 19% of 20% requested")
    assert driving.names(suggested([A, B], pods, answer=driving.stays)) == ["p"]


def test_room_that_one_node_takes_is_not_promised_to_the_next() -> None:
    nodes = [A, B, node("c")]
    pods = [pod("p", "a"), pod("q", "b"), busy("c", "8.5")]
    assert driving.names(suggested(nodes, pods)) == ["p"]


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(1, 40), max_size=4), min_size=2, max_size=5),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_targets_are_never_overfilled_and_low_nodes_never_receive(
    sizes: list[list[int]], answers: list[bool]
) -> None:
    nodes = [node(f"n{at}") for at in range(len(sizes))]
    pods = [
        pod(f"p{at}-{n}", f"n{at}", str(size / 10))
        for at, of in enumerate(sizes)
        for n, size in enumerate(of)
    ]
    seen = builders.picture_of(nodes, pods)
    moved: dict[str, str] = {}
    turns = iter(answers * 10)

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        if not next(turns):
            return False
        moved[one.pod.uid] = max(one.targets or ())
        return protocols.Target(moved[one.pod.uid])

    driving.run(plugin(), driving.view(seen), answer)
    before = {name: sum(p.requests["cpu"] for p in seen.running_on(name)) for name in seen.nodes}
    for name, there in driving.after(seen, moved).items():
        used = sum(one.requests["cpu"] for one in there)
        assert used <= max(10_000, before[name])
        if before[name] <= 2_000:
            assert used <= before[name]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [busy("a"), busy("b")],
            "0 nodes are below thresholds, more than 0 have to be",
            id="no node is low",
        ),
        pytest.param(
            [pod("p", "a")], "no node that could take pods is above thresholds", id="all are low"
        ),
    ],
)
def test_it_says_why_no_node_is_emptied(pods: list[podinfo.Pod], expected: str) -> None:
    seen = driving.view(builders.picture_of([A, B], pods))
    assert driving.notes(plugin(), seen) == (expected,)
