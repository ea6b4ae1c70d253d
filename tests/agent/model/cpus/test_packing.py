"""Cpus for somebody who says how many: those that belong together."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_of

from agent.model import state
from agent.model.cpus import packing
from tests import draws


def machine(sockets, nodes, cores, threads=2):
    """Threads of one core are half the machine apart."""
    count = sockets * nodes * cores
    return tuple(
        state.Processor(core + thread * count, core, core // (nodes * cores), core // cores % nodes)
        for thread in range(threads)
        for core in range(count)
    )


ONE = machine(1, 1, 4)
TWO = machine(2, 1, 2)


@pytest.mark.parametrize(
    ("processors", "count", "expected"),
    [
        (ONE, 2, {0, 4}),
        (ONE, 3, {0, 4, 1}),
        (ONE, 8, set(range(8))),
        (ONE, 9, set()),
        (ONE, 0, set()),
        (ONE, -1, set()),
        (TWO, 4, {0, 1, 4, 5}),
        (TWO, 5, {0, 1, 4, 5, 2}),
        (TWO, 6, {0, 1, 4, 5, 2, 6}),
        (machine(1, 2, 2), 4, {0, 1, 4, 5}),
        (ONE[1:], 2, {1, 5}),
        (ONE[1:], 1, {4}),
        ((*TWO, state.Processor(8, 4, 2, 2)), 1, {8}),
    ],
    ids=[
        "a core", "a core and a half", "everything", "too many", "none", "less than none",
        "a socket", "a socket and one", "a socket and a core", "a NUMA node",
        "a whole core before half of one", "half a core before a whole one", "the smallest socket",
    ],
)  # fmt: skip
def test_packing(processors, count, expected):
    assert packing.pick(processors, count) == expected


SHAPES = any_of.tuples(*[any_of.integers(1, 3)] * 4)


@settings(max_examples=draws.at_least(30), deadline=None)
@given(SHAPES, any_of.integers(-1, 90), any_of.sets(any_of.integers(0, 80), max_size=5))
def test_as_many_as_wanted_and_no_core_is_broken_without_need(shape, count, offline):
    processors = tuple(p for p in machine(*shape) if p.cpu not in offline)
    taken = packing.pick(processors, count)
    assert len(taken) == (count if 0 < count <= len(processors) else 0)
    assert taken <= {p.cpu for p in processors}
    cores = {}
    for one in processors:
        cores.setdefault(one.core, set()).add(one.cpu)
    broken = [cpus for cpus in cores.values() if cpus & taken and not cpus <= taken]
    if not offline:
        assert len(broken) <= 1
    assert packing.pick(tuple(reversed(processors)), count) == taken
