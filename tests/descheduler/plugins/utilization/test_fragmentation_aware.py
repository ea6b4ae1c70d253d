"""FragmentationAware: uneven requests, and pods that alone keep devices from being whole."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descheduler.configuration.arguments import packing
from descheduler.framework import protocols
from descheduler.model import fragments, nodeinfo, podinfo
from descheduler.plugins.fragmentation_aware import fragmentation_aware, whole_units
from tests.descheduler import builders
from tests.descheduler.plugins import driving


def plugin(**written: Any) -> fragmentation_aware.FragmentationAware:
    arguments = packing.FragmentationAwareArgs.model_validate(written)
    return fragmentation_aware.FragmentationAware(arguments)


def node(name: str, **fields: Any) -> nodeinfo.Node:
    return builders.node(name, cpu="10", memory="10Gi", **fields)


def pod(name: str, on: str, cpu: int, memory: int, **fields: Any) -> podinfo.Pod:
    return builders.pod(name, on, cpu=str(cpu), memory=f"{memory}Gi", **fields)


def suggested(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any] | None = None,
    answer: driving.Answers = driving.leaves,
    known: Mapping[str, fragments.Fragments] | None = None,
    **options: Any,
) -> list[protocols.Suggestion]:
    seen = builders.picture_of(nodes, pods, fragments=known or {})
    return driving.run(plugin(**(written or {})), driving.view(seen, **options), answer)


A, B = node("a"), node("b")
UNEVEN = [pod("cpu", "a", 6, 1), pod("even", "a", 2, 2)]
OTHER = [pod("memory", "b", 1, 6)]


@pytest.mark.parametrize(
    ("nodes", "pods", "written", "expected"),
    [
        pytest.param([A, B], [*UNEVEN, *OTHER], {}, ["cpu"], id="to a node that it makes even"),
        pytest.param([A, B], UNEVEN, {}, [], id="no gain where the target loses as much"),
        pytest.param([A], UNEVEN, {}, [], id="one node"),
        pytest.param([], [], {}, [], id="no nodes"),
        pytest.param([A, B], [], {}, [], id="no pods"),
        pytest.param([A, B], [*UNEVEN, *OTHER], {"imbalanceThreshold": 0.3}, [], id="even enough"),
        pytest.param(
            [A, B],
            [*UNEVEN, *OTHER],
            {"minImprovementThreshold": 0.6},
            [],
            id="too little improvement",
        ),
        pytest.param([A, B], [*UNEVEN, *OTHER], {"paused": True}, [], id="paused"),
        pytest.param(
            [A, B], [*UNEVEN, *OTHER], {"resources": ["cpu"]}, [], id="one resource is always even"
        ),
        pytest.param(
            [A, node("b", schedulable=False)],
            [*UNEVEN, pod("memory", "b", 0, 1)],
            {},
            [],
            id="target cordoned",
        ),
        pytest.param(
            [A, B],
            [*UNEVEN, pod("full", "b", 5, 10)],
            {"nodeFit": True},
            [],
            id="no room on the target",
        ),
        pytest.param(
            [A, B],
            [*UNEVEN, *OTHER],
            {"evictableNamespaces": {"include": ["other"]}},
            [],
            id="namespace not included",
        ),
        pytest.param(
            [A, B],
            [*UNEVEN, *OTHER],
            {"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "a"}}},
            [],
            id="targets are nodes that are looked at",
        ),
    ],
)
def test_which_pod_leaves_an_uneven_node(
    nodes: list[nodeinfo.Node],
    pods: list[podinfo.Pod],
    written: dict[str, Any],
    expected: list[str],
) -> None:
    assert driving.names(suggested(nodes, pods, written)) == expected


def test_the_reason_gives_the_figures() -> None:
    (found,) = suggested([A, B], [*UNEVEN, *OTHER])
    assert found.reason == ("fragmentation reduction: stdBefore=0.2500 stdAfter=0.0000 gain=0.2500")
    assert found.purpose is protocols.Purpose.DEFRAGMENT
    assert found.targets == ("b",)


def test_the_next_best_pod_is_taken_where_the_best_one_stays() -> None:
    pods = [pod("best", "a", 6, 0), pod("good", "a", 2, 0), *OTHER, pod("more", "b", 0, 2)]
    assert driving.names(suggested([A, B], pods)) == ["best"]
    assert driving.names(suggested([A, B], pods, kept={"best"})) == ["good"]
    assert driving.names(suggested([A, B], pods, kept_late={"best"})) == ["good"]
    assert driving.names(suggested([A, B], pods, answer=driving.stays))[:2] == ["best", "good"]


def test_without_node_fit_room_is_not_looked_at() -> None:
    full = [*UNEVEN, pod("memory", "b", 4, 10)]
    assert suggested([A, B], full) == []
    assert [one.targets for one in suggested([A, B], full, {"nodeFit": False})] == [("b",)]


def test_dry_run_is_passed_on() -> None:
    found = suggested([A, B], [*UNEVEN, *OTHER], {"dryRun": True})
    assert [one.dry_run for one in found] == [True]


def _gpus(**pieces: int) -> Mapping[int, int]:
    return {int(name[1:]): free for name, free in pieces.items()}


def _known(free: Mapping[int, int], **held: Mapping[int, int]) -> fragments.Fragments:
    return fragments.Fragments(
        devices={"gpu": free},
        held={f"uid-{name}": fragments.Held(devices={"gpu": of}) for name, of in held.items()},
    )


SPREAD = _known(_gpus(m0=50, m1=60), p={0: 50}, q={1: 40})
HALF = _known(_gpus(m0=50, m1=100), other={0: 50})
PODS = [pod("p", "a", 1, 1), pod("q", "a", 1, 1)]


@pytest.mark.parametrize(
    ("known", "written", "expected"),
    [
        pytest.param({"a": SPREAD, "b": HALF}, {}, ["p"], id="moved into a piece elsewhere"),
        pytest.param({"a": SPREAD, "b": HALF}, {"wholeUnits": False}, [], id="switched off"),
        pytest.param({"a": SPREAD}, {}, [], id="no device elsewhere"),
        pytest.param(
            {"a": _known(_gpus(m0=50, m1=60), q={1: 40}), "b": HALF},
            {},
            ["q"],
            id="a pod that holds nothing is no candidate",
        ),
        pytest.param({}, {}, [], id="nothing known"),
        pytest.param(
            {"a": SPREAD, "b": _known(_gpus(m0=100))},
            {},
            [],
            id="a whole one would break elsewhere",
        ),
        pytest.param(
            {"a": SPREAD, "b": _known(_gpus(m0=30), other={0: 70})}, {}, [], id="pieces too small"
        ),
        pytest.param(
            {"a": SPREAD, "b": _known(_gpus(m0=45), other={0: 55})},
            {},
            ["q"],
            id="the pod that fits",
        ),
        pytest.param(
            {"a": _known(_gpus(m0=50, m1=100), p={0: 50}), "b": HALF}, {}, [], id="one is whole"
        ),
        pytest.param(
            {"a": _known(_gpus(m0=20, m1=20), p={0: 80}, q={1: 80}), "b": HALF},
            {},
            [],
            id="too little is free",
        ),
        pytest.param(
            {"a": _known(_gpus(m0=50, m1=60), p={0: 25}, q={1: 20}), "b": HALF},
            {},
            [],
            id="others hold the rest of it",
        ),
    ],
)
def test_devices_become_whole(
    known: dict[str, fragments.Fragments], written: dict[str, Any], expected: list[str]
) -> None:
    assert driving.names(suggested([A, B], PODS, written, known=known)) == expected


def test_protected_pods_keep_their_devices_and_a_node_gives_one_pod() -> None:
    known = {"a": SPREAD, "b": HALF}
    assert driving.names(suggested([A, B], PODS, known=known, kept={"p"})) == ["q"]
    (found,) = suggested([A, B], PODS, known=known)
    assert found.reason == (
        "fragmentation reduction: gpu free in pieces of 50, 60, whole units gained: 1"
    )
    assert found.purpose is protocols.Purpose.DEFRAGMENT
    both = {"a": SPREAD, "b": _known(_gpus(m0=50, m1=50), x={0: 50}, y={1: 50})}
    assert len(suggested([A, B], PODS, known=both)) == 1


def _zones(free: Mapping[int, int], **held: Mapping[int, int]) -> fragments.Fragments:
    return fragments.Fragments(
        cpus=free,
        cpus_of_zone=dict.fromkeys(free, 8),
        held={f"uid-{name}": fragments.Held(cpus=of) for name, of in held.items()},
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(_zones({0: 4, 1: 8}, other={0: 4}), ["q"], id="into a zone in use"),
        pytest.param(_zones({0: 6, 1: 8}, other={0: 2}), ["p"], id="the zone has room for either"),
        pytest.param(_zones({0: 8, 1: 8}), [], id="a zone would no longer be whole"),
        pytest.param(_zones({0: 1, 1: 1}), [], id="no room"),
    ],
)
def test_numa_zones_become_whole(target: fragments.Fragments, expected: list[str]) -> None:
    known = {"a": _zones({0: 2, 1: 6}, p={0: 6}, q={1: 2}), "b": target}
    assert driving.names(suggested([A, B], PODS, known=known)) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(fragments.NOTHING, {}, id="nothing"),
        pytest.param(_known({}), {}, id="no devices"),
        pytest.param(_known(_gpus(m0=0, m1=0)), {}, id="nothing free"),
        pytest.param(_known(_gpus(m0=50, m1=50)), {"gpu": (50, 50)}, id="pieces make one"),
        pytest.param(_known(_gpus(m0=50, m1=49)), {}, id="pieces make less"),
        pytest.param(_zones({0: 4, 1: 4}), {"cpu": (4, 4)}, id="CPUs of zones"),
    ],
)
def test_scattered(known: fragments.Fragments, expected: Mapping[str, tuple[int, ...]]) -> None:
    assert whole_units.scattered(known) == expected


def test_several_shares_need_devices_of_their_own() -> None:
    asked = {"gpu": {0: 50, 1: 50}}
    assert whole_units.broken(_known(_gpus(m0=50, m1=50)), asked) == 0
    assert whole_units.broken(_known(_gpus(m0=50, m1=100)), asked) == 1
    assert whole_units.broken(_known(_gpus(m0=100)), asked) is None
    assert whole_units.broken(None, asked) is None


@settings(max_examples=25)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4),
        min_size=2,
        max_size=5,
    )
)
def test_every_move_makes_requests_more_even_in_sum(
    drawn: list[list[tuple[int, int]]],
) -> None:
    nodes = [node(f"n{at}") for at in range(len(drawn))]
    pods = [
        pod(f"p{at}-{n}", f"n{at}", cpu, memory)
        for at, sizes in enumerate(drawn)
        for n, (cpu, memory) in enumerate(sizes)
    ]
    seen = builders.picture_of(nodes, pods)
    moved: dict[str, str] = {}
    sums = [_unevenness(driving.after(seen, moved))]

    def answer(one: protocols.Suggestion) -> protocols.Answer:
        moved[one.pod.uid] = max(one.targets or ())
        sums.append(_unevenness(driving.after(seen, moved)))
        return protocols.Target(moved[one.pod.uid])

    found = driving.run(plugin(), driving.view(seen), answer)
    sources = [one.pod.node for one in found]
    assert len(sources) == len(set(sources))
    assert not set(sources) & set(moved.values())
    assert all(later < before - 0.02 for before, later in itertools.pairwise(sums))


def _unevenness(there: Mapping[str, list[podinfo.Pod]]) -> float:
    return sum(
        abs(
            sum(one.requests["cpu"] for one in pods) / 10_000
            - sum(one.requests["memory"] for one in pods) / (10 << 30)
        )
        / 2
        for pods in there.values()
    )
