"""ScaleDownBinPack: ranks of pods, moves to fuller nodes, and nodes emptied as a whole."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo
from descheduler.plugins.scale_down_bin_pack import scale_down_bin_pack
from tests.descheduler import builders
from tests.descheduler.plugins import driving

COST = names.ANNOTATION_POD_DELETION_COST
NEVER = "2147483647"
EVICT = {"strategy": "EvictDirectly", "maxPodsToEvict": 10}
EMPTY = {"strategy": "EmptyNodes"}
WEB = {"podSelectors": [{"name": "web", "selector": {"matchLabels": {"app": "web"}}}]}


def plugin(**written: Any) -> scale_down_bin_pack.ScaleDownBinPack:
    return scale_down_bin_pack.ScaleDownBinPack(
        packing.ScaleDownBinPackArgs.model_validate(written)
    )


def node(name: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, cpu="10", memory="10Gi", **fields)


def pod(name: str, on: str, size: float = 1, **fields: Any) -> podinfo.Pod:
    fields = {"labels": {"app": "web"}, **fields}
    return builders.pod(name, on, cpu=str(size), memory=f"{size}Gi", **fields)


def other(name: str, on: str, size: float = 1, **fields: Any) -> podinfo.Pod:
    return pod(name, on, size, labels={"app": "db"}, controller="ReplicaSet/db", **fields)


A, B, C = node("a"), node("b"), node("c")


def costs(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, str]:
    seen = builders.picture_of(nodes, pods)
    noted = plugin(**(written or {})).notes(driving.view(seen, **options))
    assert all(set(values) == {COST} for values in noted.values())
    return {seen.pods[uid].name: values[COST] for uid, values in noted.items()}


def suggested(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    answer: driving.Answers = driving.leaves,
    **options: Any,
) -> list[protocols.Suggestion]:
    seen = builders.picture_of(nodes, pods)
    return driving.run(plugin(**written), driving.view(seen, **options), answer)


@pytest.mark.parametrize(
    ("pods", "written", "options", "expected"),
    [
        pytest.param([], {}, {}, {}, id="no pods"),
        pytest.param(
            [pod("p", "a"), pod("q", "a", 2)], {}, {}, {"q": "0", "p": "1"}, id="larger pods first"
        ),
        pytest.param(
            [pod("old", "a"), pod("new", "a", created=builders.NOW)],
            {},
            {},
            {"new": "0", "old": "1"},
            id="newer pods first",
        ),
        pytest.param(
            [pod("p", "a"), other("x", "a", 5), pod("q", "b"), other("y", "b", 1)],
            WEB,
            {},
            {"q": "0", "p": "1"},
            id="the node where least stays comes first",
        ),
        pytest.param(
            [pod("p", "a"), pod("r", "a"), pod("q", "b")],
            {},
            {},
            {"q": "0", "p": "1", "r": "2"},
            id="of two nodes where nothing stays, the one with fewer pods",
        ),
        pytest.param(
            [pod("p", "a"), pod("kept", "a", 5), pod("q", "b"), pod("r", "b")],
            {},
            {"kept": {"kept"}},
            {"q": "0", "r": "1", "p": "2", "kept": NEVER},
            id="a pod that must stay counts as staying and is never deleted",
        ),
        pytest.param(
            [pod("none", "a", 0), other("x", "a"), pod("q", "b"), other("y", "b", 9)],
            WEB,
            {},
            {"q": "0", "none": "1"},
            id="pods without requests empty no node",
        ),
        pytest.param(
            [pod("p", "a"), other("x", "a"), pod("q", "b"), other("y", "b", 2)],
            {**WEB, "resources": ["cpu"], "resourceWeights": {"cpu": 0}},
            {},
            {"p": "0", "q": "1"},
            id="without weights names decide",
        ),
        pytest.param(
            [pod("p", "a", controller="DaemonSet/d"), pod("e", "a", phase="Succeeded")],
            {},
            {},
            {},
            id="pods that belong to the node or ended",
        ),
        pytest.param([pod("p", "a")], {"paused": True}, {}, {}, id="paused"),
        pytest.param([pod("p", "a")], {"dryRun": True}, {}, {}, id="dry run"),
        pytest.param([pod("p", "a")], EVICT, {}, {}, id="EvictDirectly writes nothing"),
        pytest.param([pod("p", "a")], EMPTY, {}, {}, id="EmptyNodes writes nothing"),
        pytest.param(
            [pod("p", "a"), pod("q", "b")],
            {"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "b"}}},
            {},
            {"q": "0"},
            id="nodes that are looked at",
        ),
    ],
)
def test_deletion_costs(
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    options: dict[str, Any],
    expected: dict[str, str],
) -> None:
    assert costs([A, B], pods, written, **options) == expected


def _noted(name: str, size: float, cost: str | None, **fields: Any) -> podinfo.Pod:
    return pod(name, "a", size, annotations={} if cost is None else {COST: cost}, **fields)


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        pytest.param("7", "9", False, id="in order although other numbers"),
        pytest.param("9", "7", True, id="out of order"),
        pytest.param("7", "7", True, id="equal costs do not order"),
        pytest.param("7", None, True, id="one has none"),
        pytest.param("-2", "9", True, id="negative costs are not ours"),
        pytest.param("7", NEVER, True, id="one is marked as never to be deleted"),
        pytest.param("7", "x", True, id="no number"),
    ],
)
def test_costs_are_written_only_where_their_order_is_wrong(
    first: str, second: str | None, written: bool
) -> None:
    pods = [_noted("big", 2, first), _noted("small", 1, second)]
    assert costs([A], pods) == ({"big": "0", "small": "1"} if written else {})


def test_a_kept_pod_that_says_so_is_not_written_again() -> None:
    pods = [_noted("kept", 2, NEVER), _noted("p", 1, "3"), _noted("kept-too", 1, NEVER)]
    assert costs([A], pods, kept={"kept", "kept-too"}) == {}
    assert costs([A], pods, kept={"kept"}) == {"kept-too": "0", "p": "1"}


def test_what_is_too_much_for_one_round_is_written_in_the_next() -> None:
    many = protocols.MOST_ANNOTATED + 10
    pods = {name: pod(name, "a", 1 + number / many) for number, name in enumerate(_names(many))}
    sizes = []
    while found := costs([A], list(pods.values())):
        sizes.append(len(found))
        for name, cost in found.items():
            pods[name] = msgspec.structs.replace(pods[name], annotations={COST: cost})
    assert sizes == [protocols.MOST_ANNOTATED, 10]
    order = sorted(pods, key=lambda name: int(pods[name].annotations[COST]))
    assert order == _names(many)[::-1], "larger pods first"


def _names(count: int) -> list[str]:
    return [f"p{number:05}" for number in range(count)]


def test_controllers_are_written_one_by_one() -> None:
    pods = [_noted("big", 2, "1"), _noted("small", 1, "2"), other("x", "a")]
    assert costs([A], pods) == {"x": "2"}


@pytest.mark.parametrize(
    ("nodes", "pods", "written", "expected"),
    [
        pytest.param([A, B], [pod("p", "a"), pod("q", "b", 3)], {}, ["p"], id="to the fuller node"),
        pytest.param([A, B], [pod("p", "a")], {}, [], id="not to an empty node"),
        pytest.param([A], [pod("p", "a")], {}, [], id="one node"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([A, B], [pod("p", "a"), pod("q", "b", 9.5)], {}, [], id="no room"),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("q", "a"), pod("r", "b", 3)],
            {"maxPodsToEvict": 1},
            ["r"],
            id="at most so many",
        ),
        pytest.param([A, B], [pod("p", "a"), pod("q", "b", 3)], {"paused": True}, [], id="paused"),
        pytest.param(
            [A, node("b", schedulable=False)],
            [pod("p", "a"), pod("q", "b", 3)],
            {},
            ["q"],
            id="a cordoned node takes none",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), other("x", "b", 9.5)],
            {**WEB, "nodeFit": False},
            ["p"],
            id="room is not looked at without nodeFit",
        ),
    ],
)
def test_evict_directly(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    assert driving.names(suggested(nodes, pods, {**EVICT, **written})) == expected


def test_evict_directly_passes_protected_pods_and_counts_those_that_leave() -> None:
    pods = [pod("kept", "a"), pod("late", "a"), pod("p", "a"), pod("q", "a"), pod("x", "b", 6)]
    one = {**EVICT, "maxPodsToEvict": 1}
    options = {"kept": {"kept", "x"}, "kept_late": {"late"}}
    assert driving.names(suggested([A, B], pods, one, **options)) == ["p"]
    refused = suggested([A, B], pods, one, driving.stays, **options)
    assert driving.names(refused) == ["p", "q"]
    assert {found.reason for found in refused} == {"scale-down binpack"}
    assert {found.purpose for found in refused} == {protocols.Purpose.COMPLY}


def test_calculate_only_moves_nothing() -> None:
    assert suggested([A, B], [pod("p", "a"), pod("q", "b", 3)], {}) == []


@pytest.mark.parametrize(
    ("nodes", "pods", "written", "expected"),
    [
        pytest.param([A, B], [pod("p", "a"), pod("q", "b", 3)], {}, ["p"], id="the emptier node"),
        pytest.param([A], [pod("p", "a")], {}, [], id="one node"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([A, B], [pod("p", "a")], {}, [], id="empty nodes are no targets"),
        pytest.param(
            [A, B], [pod("p", "a", 6), pod("q", "b", 3), pod("r", "b", 3)], {}, [], id="no room"
        ),
        pytest.param(
            [A, B, C],
            [pod("p", "a", 2), pod("q", "b", 1), pod("r", "b", 1), pod("s", "c", 6)],
            {},
            ["p"],
            id="the node with fewer pods first",
        ),
        pytest.param(
            [A, node("b", schedulable=False), C],
            [pod("p", "a", 1), pod("q", "b", 2), pod("r", "b", 2), pod("s", "c", 5)],
            {},
            ["q", "r"],
            id="a cordoned node is continued first",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("q", "a"), pod("r", "b", 3), pod("s", "b", 3)],
            {"maxPodsToEvict": 1},
            [],
            id="no node with more pods than may move",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), other("x", "a"), pod("q", "b", 3), other("y", "b", 3)],
            WEB,
            [],
            id="pods that are not selected keep the node",
        ),
        pytest.param(
            [A, B],
            [pod("p", "a"), pod("d", "a", controller="DaemonSet/d"), pod("q", "b", 3)],
            {},
            ["p"],
            id="pods of a DaemonSet do not",
        ),
    ],
)
def test_empty_nodes(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    assert driving.names(suggested(nodes, pods, {**EMPTY, **written})) == expected


def test_a_node_is_emptied_only_if_all_its_pods_may_leave() -> None:
    pods = [pod("p", "a"), pod("q", "a"), pod("r", "b", 3), pod("s", "b", 3)]
    assert suggested([A, B], pods, EMPTY, kept={"q", "r"}) == []
    assert suggested([A, B], pods, EMPTY, kept_late={"q", "r"}) == []
    found = suggested([A, B], pods, EMPTY)
    assert driving.names(found) == ["p", "q"]
    assert [one.name for one in found[0].along] == ["q"]
    assert {one.reason for one in found} == {"empty node a: 2 pods fit elsewhere"}
    assert {one.purpose for one in found} == {protocols.Purpose.EMPTY}
    assert {one.cordon for one in found} == {None}


def test_several_nodes_are_emptied_but_none_that_was_just_sent_pods() -> None:
    pods = [pod("p", "a", 2), pod("q", "b", 1), pod("r", "c", 5)]
    two = {**EMPTY, "maxNodesToEmpty": 2}
    assert driving.names(suggested([A, B, C], pods, two, _to_the_last)) == ["q", "p"]
    assert driving.names(suggested([A, B, C], pods, two)) == ["q", "r"]
    assert driving.names(suggested([A, B, C], pods, EMPTY)) == ["q"]


def test_an_emptied_node_is_cordoned_where_asked_for() -> None:
    pods = [pod("p", "a"), pod("r", "b", 3)]
    (found,) = suggested([A, B], pods, {**EMPTY, "autoCordon": True, "dryRun": True})
    assert found.cordon == protocols.Cordon(
        "a", "ScaleDownBinPack", "node is emptied for the autoscaler"
    )
    assert found.dry_run


def test_the_next_node_is_tried_where_the_first_one_stays() -> None:
    pods = [pod("p", "a", 1), pod("q", "b", 2), pod("r", "c", 3)]
    found = suggested(
        [A, B, C], pods, EMPTY, lambda one: False if one.pod.name == "p" else driving.leaves(one)
    )
    assert driving.names(found) == ["p", "q"]
    assert found[1].targets == ("a", "c")


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.integers(1, 50), max_size=4), min_size=2, max_size=5),
    st.sampled_from(["EvictDirectly", "EmptyNodes"]),
)
def test_rounds_end_and_no_node_is_ever_overfilled(sizes: list[list[int]], strategy: str) -> None:
    written = {"strategy": strategy, "maxPodsToEvict": 100}
    nodes = [node(f"n{at}") for at in range(len(sizes))]
    pods = {
        f"p{at}-{n}": pod(f"p{at}-{n}", f"n{at}", size / 10)
        for at, of in enumerate(sizes)
        for n, size in enumerate(of)
    }
    full = {
        one.name: sum(p.requests["cpu"] for p in pods.values() if p.node == one.name)
        for one in nodes
    }
    for _ in range(40):
        found = suggested(nodes, list(pods.values()), written, _to_the_last)
        if not found:
            break
        for one in found:
            size = one.pod.requests["cpu"] / 1000
            pods[one.pod.name] = pod(one.pod.name, max(one.targets or ()), size)
        for name in full:
            used = sum(p.requests["cpu"] for p in pods.values() if p.node == name)
            assert used <= max(10_000, full[name])
    else:
        pytest.fail("pods still move after 40 rounds")


def _to_the_last(one: protocols.Suggestion) -> protocols.Answer:
    return protocols.Target(max(one.targets or ()))
