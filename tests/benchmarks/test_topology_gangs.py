"""The benchmark of gangs in a network: what it compares is what it says, on a small network."""

import random

import pytest

from benchmarks import topology_gangs as bench


def network():
    return bench.Network(2, 3, 5, random.Random(1))


@pytest.mark.parametrize("name", bench.VARIANTS)
def test_every_variant_places_whole_gangs_and_takes_no_gpu_twice(name):
    made, listed = network(), bench.gangs(12, random.Random(2), largest=8)
    offered = dict(made.free)
    stay = [gang._replace(leaves_after=0) for gang in listed]
    found = bench.run(bench.VARIANTS[name], stay, made)
    placed = [gang for gang, one in zip(stay, found, strict=True) if one is not None]
    assert placed
    assert min(made.free.values()) >= 0
    taken = sum(offered.values()) - sum(made.free.values())
    assert taken == sum(gang.members * gang.gpus for gang in placed)


def test_gangs_that_leave_give_everything_back():
    made = network()
    before = dict(made.free)
    gang = bench.Gang(4, 2, leaves_after=1)
    bench.run(bench.by_topology, [gang, bench.Gang(99, 8)], made)
    assert made.free == before


def test_rules_are_kept_by_topology_only():
    gang = bench.Gang(4, 4, bench._MUST_BLOCK)
    made = network()
    held = {name: bench.outcome(made, gang, place(made, gang)) for name, place in
            bench.VARIANTS.items()}  # fmt: skip
    assert held["topology"].keeps
    assert not held["spread"].keeps
    assert held["topology"].distance < held["packed"].distance


def test_small_networks_are_searched_exhaustively():
    found = bench.small(1)
    assert len(found) > 10
    assert all(one.is_best for one in found)
    assert all(one.closest <= one.closest_below <= one.ours[0] + 1e-9 for one in found)
