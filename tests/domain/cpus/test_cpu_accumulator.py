"""Which CPUs a pod with its own cpuset gets."""

import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from domain.cpus import cpu_accumulator, cpu_topology, cpu_usage
from tests import draws, processor_time
from tests.reference import cases, cpu_topologies

FULL = cpu_accumulator.BindPolicy.FULL_PCPUS
SPREAD = cpu_accumulator.BindPolicy.SPREAD_BY_PCPUS
MOST = cpu_accumulator.NumaStrategy.MOST_ALLOCATED
LEAST = cpu_accumulator.NumaStrategy.LEAST_ALLOCATED
CORE = cpu_usage.ExclusivePolicy.PCPU_LEVEL
NODE = cpu_usage.ExclusivePolicy.NUMA_NODE_LEVEL
SHARED = cpu_usage.ExclusivePolicy.NONE

TWO_SOCKETS = {
    "sockets": 2,
    "numaPerSocket": 1,
    "coresPerNuma": 6,
    "threadsPerCore": 2,
    "layout": "offset",
}
FOUR_NODES = {**TWO_SOCKETS, "numaPerSocket": 2, "layout": "adjacent"}
LARGE = {**FOUR_NODES, "numaPerSocket": 4, "coresPerNuma": 16, "layout": "offset"}


def _cpus(shape: dict[str, Any], held: str, policy: cpu_usage.ExclusivePolicy = SHARED) -> Any:
    topology = cpu_topologies.described(shape)
    usage = cpu_usage.count([(cpu_topologies.mask(held), policy)])
    return cpu_accumulator.Cpus(topology, usage, topology.mask & ~usage.held())


def test_recorded_choices_are_made() -> None:
    def answer(case: cases.Case) -> Any:
        given = case.given
        usage = cpu_usage.count(
            (cpu_topologies.mask(one["cpuset"]), _exclusive(one.get("exclusivePolicy")))
            for one in given["allocated"]
        )
        taken = cpu_accumulator.take(
            cpu_accumulator.Cpus(
                cpu_topologies.described(given["topology"]),
                usage,
                cpu_topologies.mask(given["available"]),
                shared=given["maxRefCount"] > 1,
            ),
            cpu_accumulator.CpuRequest(
                given["need"],
                cpu_accumulator.bind_policy(given["bindPolicy"]),
                _exclusive(given["exclusivePolicy"]),
                cpu_accumulator.numa_strategy(given["numaStrategy"]),
            ),
            cpu_topologies.mask(given.get("preferred")),
        )
        if taken is None:
            return {"error": "not enough cpus available to satisfy request"}
        return {"cpuset": cpu_topologies.text(taken), "size": taken.bit_count()}

    cases.check("cpu_accumulator", answer, lambda case: case.expected, {})


def _exclusive(name: str | None) -> cpu_usage.ExclusivePolicy:
    return cpu_usage.exclusive_policy(name or "")


@pytest.mark.parametrize(
    ("shape", "held", "request_", "expected"),
    [
        pytest.param(TWO_SOCKETS, "0-1,12-13", (4, FULL, LEAST), "6-7,18-19", id="emptiest"),
        pytest.param(TWO_SOCKETS, "0-1,12-13", (4, FULL, MOST), "2-3,14-15", id="fullest"),
        pytest.param(TWO_SOCKETS, "0-1,12-13", (10, FULL, MOST), "6-10,18-22", id="one-node"),
        pytest.param(TWO_SOCKETS, "0-1,12-13", (14, FULL, MOST), "2,6-11,14,18-23", id="sockets"),
        pytest.param(TWO_SOCKETS, "0-2", (5, SPREAD, MOST), "3-5,12-13", id="one-of-each-core"),
        pytest.param(FOUR_NODES, "0-3,24-35", (20, FULL, LEAST), "4-23", id="one-socket"),
    ],
)
def test_cpus_come_from_as_few_places_as_possible(
    shape: dict[str, Any], held: str, request_: tuple[int, Any, Any], expected: str
) -> None:
    count, bind, strategy = request_
    request = cpu_accumulator.CpuRequest(count, bind, strategy=strategy)
    taken = cpu_accumulator.take(_cpus(shape, held), request)
    assert taken == cpu_topologies.mask(expected)


@pytest.mark.parametrize(
    ("policy", "bind", "count", "expected"),
    [
        pytest.param(CORE, SPREAD, 3, "3-5", id="core-on-the-same-node"),
        pytest.param(CORE, SPREAD, 4, "6-9", id="core-on-another-node"),
        pytest.param(NODE, FULL, 4, "6-7,18-19", id="node"),
        pytest.param(NODE, FULL, 21, "3-23", id="node-if-possible"),
    ],
)
def test_an_exclusive_policy_keeps_away_from_pods_of_the_same_policy(
    policy: Any, bind: Any, count: int, expected: str
) -> None:
    cpus = _cpus(TWO_SOCKETS, "0-2", policy)
    taken = cpu_accumulator.take(cpus, cpu_accumulator.CpuRequest(count, bind, policy, MOST))
    assert taken is not None
    assert cpu_topologies.text(taken) == expected


@st.composite
def _situations(draw: st.DrawFn) -> tuple[Any, Any, int]:
    shape = draw(st.sampled_from([TWO_SOCKETS, FOUR_NODES, {**FOUR_NODES, "offline": "1,5,24"}]))
    topology = cpu_topologies.described(shape)
    held = draw(
        st.lists(
            st.tuples(
                st.integers(0, topology.mask).map(lambda mask: mask & topology.mask),
                st.sampled_from(cpu_usage.ExclusivePolicy),
            ),
            max_size=3,
        )
    )
    most = draw(st.integers(1, 3))
    usage = cpu_usage.count(held)
    request = cpu_accumulator.CpuRequest(
        draw(st.integers(0, 50)),
        draw(st.sampled_from(cpu_accumulator.BindPolicy)),
        draw(st.sampled_from(cpu_usage.ExclusivePolicy)),
        draw(st.sampled_from(cpu_accumulator.NumaStrategy)),
    )
    free = topology.mask & ~usage.full(most)
    preferred = draw(st.integers(0, topology.mask))
    return cpu_accumulator.Cpus(topology, usage, free, shared=most > 1), request, preferred


@hypothesis.given(_situations())
@hypothesis.settings(max_examples=draws.at_least(120))
def test_as_many_free_cpus_are_taken_as_were_asked_for(situation: tuple[Any, Any, int]) -> None:
    cpus, request, preferred = situation
    taken = cpu_accumulator.take(cpus, request, preferred)
    assert taken == cpu_accumulator.take(cpus, request, preferred)
    if taken is None:
        assert request.count > cpus.free.bit_count()
        return
    assert taken.bit_count() == request.count
    assert not taken & ~cpus.free
    first = preferred & cpus.free
    assert (taken & first).bit_count() == min(request.count, first.bit_count())


@hypothesis.given(st.lists(st.integers(0, 255), max_size=6), st.integers(0, 255))
def test_reference_counts_count_and_release_restores_them(held: list[int], more: int) -> None:
    usage = cpu_usage.count((cpus, SHARED) for cpus in held)
    for cpu in range(8):
        assert usage.count(1 << cpu) == sum(cpus >> cpu & 1 for cpus in held)
    added = cpu_usage.count((cpus, SHARED) for cpus in [*held, more])
    assert added.without(more).levels == usage.levels


def test_a_choice_on_256_cpus_takes_a_fifth_of_a_millisecond() -> None:
    requests = [
        cpu_accumulator.CpuRequest(count, bind, exclusive)
        for count, bind, exclusive in itertools.product(
            (4, 20, 40), cpu_accumulator.BindPolicy, cpu_usage.ExclusivePolicy
        )
    ]
    cpus = _cpus(LARGE, "3-39", CORE)
    assert cpus.topology.mask.bit_count() == 256
    with processor_time.below(0.0002 * 10 * len(requests)):
        for request in requests * 10:
            cpu_accumulator.take(cpus, request)


def test_ids_are_bounded_and_the_first_entry_counts() -> None:
    cpu = cpu_topology.Cpu
    topology = cpu_topology.build(
        [cpu(0, 0, 0, 0), cpu(0, 9, 9, 9), cpu(-1, 0, 0, 0), cpu(1 << 40, 0, 0, 0), cpu(7, 1, 0, 0)]
    )
    assert topology.mask == 0b10000001
    assert [core.cpus for core in topology.cores] == [(0,), (7,)]
    assert not cpu_topology.build([]).valid
