"""RemoveDuplicates: pods of one owner that share a node although others would take them."""

import collections
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.kubernetes import core
from descheduler.configuration.arguments import compliance
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.remove_duplicates import remove_duplicates
from tests.descheduler import builders
from tests.descheduler.plugins import driving


def suggested(
    cluster: Iterable[nodeinfo.Node],
    pods: Iterable[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    arguments = compliance.RemoveDuplicatesArgs.model_validate(written or {})
    seen = builders.picture_of(cluster, pods)
    plugin = remove_duplicates.RemoveDuplicates(arguments)
    return driving.run(plugin, driving.view(seen, **options), answer)


def pods(on: str, count: int, **fields: Any) -> list[podinfo.Pod]:
    return [builders.pod(f"{on}{at}", on, **fields) for at in range(count)]


def with_image(name: str) -> dict[str, Any]:
    return {"containers": (podinfo.Container("main", name),)}


A, B, C = builders.node("a"), builders.node("b"), builders.node("c")
TAINTED = builders.node("b", taints=(core.Taint("dedicated", "ml", "NoSchedule"),))


@pytest.mark.parametrize(
    ("nodes", "of", "written", "expected"),
    [
        pytest.param([A, B], pods("a", 2), {}, ["a0"], id="two on one of two nodes"),
        pytest.param([A, B], pods("a", 1), {}, [], id="one pod"),
        pytest.param([A, B], [*pods("a", 2), *pods("b", 1)], {}, [], id="three on two nodes"),
        pytest.param([A, B, C], pods("a", 5), {}, ["a0", "a1", "a2"], id="two stay of five"),
        pytest.param([A], pods("a", 2), {}, [], id="one node"),
        pytest.param([], pods("a", 2), {}, [], id="no nodes"),
        pytest.param([A, TAINTED], pods("a", 2), {}, [], id="the other node is tainted"),
        pytest.param(
            [A, builders.node("b", schedulable=False)], pods("a", 2), {}, [], id="cordoned"
        ),
        pytest.param(
            [A, builders.node("b", cpu="0")], pods("a", 2), {}, [], id="the other node is full"
        ),
        pytest.param([A, B], pods("a", 2, controller=""), {}, [], id="pods without an owner"),
        pytest.param(
            [A, B],
            [
                builders.pod("p", "a", **with_image("v1")),
                builders.pod("q", "a", **with_image("v2")),
            ],
            {},
            [],
            id="different images, as during a rollout",
        ),
        pytest.param(
            [A, B],
            [builders.pod("p", "a"), builders.pod("q", "a", controller="ReplicaSet/other")],
            {},
            [],
            id="different owners",
        ),
        pytest.param(
            [A, B],
            [builders.pod("x/p", "a"), builders.pod("y/p", "a")],
            {},
            [],
            id="different namespaces",
        ),
        pytest.param([A, B], pods("a", 2, phase="Succeeded"), {}, [], id="pods that have ended"),
        pytest.param([A, B], pods("a", 2, leaves_at=1.0), {}, [], id="terminating pods"),
        pytest.param(
            [A, B], pods("a", 2), {"excludeOwnerKinds": ["ReplicaSet"]}, [], id="kind excluded"
        ),
        pytest.param(
            [A, B], pods("a", 2), {"namespaces": {"exclude": ["default"]}}, [], id="namespace"
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


def test_protected_pods_stay_and_others_leave_instead() -> None:
    found = suggested([A, B], pods("a", 4), kept={"a0"}, kept_late={"a1"})
    assert driving.names(found) == ["a2", "a3"]
    assert found[0].reason == (
        "4 pods of ReplicaSet web share node a, 2 would if they were spread evenly"
    )
    assert found[0].targets == ("b",)
    assert found[0].purpose is protocols.Purpose.COMPLY


def test_a_refused_pod_is_followed_by_the_next() -> None:
    assert len(suggested([A, B], pods("a", 3), answer=driving.stays)) == 3


def test_the_emptiest_nodes_are_the_first_targets() -> None:
    nodes = [A, B, C, builders.node("d")]
    found = suggested(nodes, [*pods("a", 6), *pods("b", 1)])
    assert [one.targets for one in found[:2]] == [("c", "d", "b"), ("c", "d")]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=6), st.booleans())
def test_no_node_has_too_many_afterwards(counts: list[int], known: bool) -> None:
    nodes = [builders.node(f"n{at}") for at in range(len(counts))]
    of = [one for at, count in enumerate(counts) for one in pods(f"n{at}", count)]
    moved: dict[str, str] = {}

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        targets = list(one.targets or ())
        moved[one.pod.uid] = targets[-1] if known else targets[0]
        return protocols.Target(targets[-1]) if known else True

    found = suggested(nodes, of, answer=answer)
    most = -(-sum(counts) // len(counts))
    after = collections.Counter(moved.get(one.uid, one.node) for one in of)
    assert max(after.values(), default=0) <= most
    assert len(found) == sum(max(count - most, 0) for count in counts)
