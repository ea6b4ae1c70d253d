"""NUMA hints are merged as the kubelet's topology manager merges them."""

import functools
import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from extender.framework import hints
from extender.framework.hints import NumaHint, Policy, Topology

NODES = 4


def _every_permutation(topology, resources):
    """Return the best of all permutations, compared two by two: the kubelet's own procedure."""
    lists = [_offered(topology, found) for found in resources]
    wanted = max((_narrowest(found) for found in lists), default=0)
    best = None
    for permutation in itertools.product(*lists):
        best = _better(best, _joined(topology, permutation), wanted)
    mask, preferred = best or (topology.everywhere, False)
    return mask, preferred


def _offered(topology, found):
    """Return what a resource offers as pairs; a mask of None restricts nothing."""
    if found is None:
        return [(None, True)]
    pairs = [(hint.mask, hint.preferred) for hint in found] or [(None, False)]
    if topology.policy is not Policy.SINGLE_NUMA_NODE:
        return pairs
    return [(mask, like) for mask, like in pairs if like and mask.bit_count() == 1]


def _narrowest(pairs):
    return min((mask.bit_count() for mask, _ in pairs if mask is not None), default=0)


def _joined(topology, permutation):
    masks = [mask for mask, _ in permutation if mask is not None]
    preferred = all(like for _, like in permutation) and len(set(masks)) <= 1
    return functools.reduce(int.__and__, masks, topology.everywhere), preferred


def _better(current, candidate, wanted):
    if not candidate[0]:
        return current
    if current is None:
        return candidate
    if current[1] != candidate[1]:
        return current if current[1] else candidate
    narrower = candidate if _is_narrower(candidate, current) else current
    old, new = current[0].bit_count(), candidate[0].bit_count()
    if current[1] or old > wanted:
        return narrower
    if old == wanted:
        return narrower if new == wanted else current
    if new > wanted:
        return current
    if new == wanted or new > old:
        return candidate
    return current if new < old else narrower


def _is_narrower(one, other):
    return (one[0].bit_count(), one[0]) < (other[0].bit_count(), other[0])


HINT = st.builds(NumaHint, st.integers(1, (1 << NODES) - 1), st.booleans())
RESOURCE = st.none() | st.lists(HINT, max_size=4).map(tuple)


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    resources=st.lists(RESOURCE, max_size=4),
    policy=st.sampled_from([one for one in Policy if one is not Policy.NONE]),
)
def test_the_merged_hint_is_the_best_of_every_permutation(resources, policy):
    topology = Topology(policy, NODES)
    merged = hints.merge(topology, resources)
    mask, preferred = _every_permutation(topology, resources)
    assert (merged.mask, merged.preferred) == (mask, preferred)
    assert merged.admitted == (preferred or policy is Policy.BEST_EFFORT)


@hypothesis.given(resources=st.permutations([(NumaHint(1, True),), None, (NumaHint(3, False),)]))
def test_the_order_of_resources_does_not_matter(resources):
    assert hints.merge(Topology(Policy.RESTRICTED, 2), resources).mask == 1


ONE, TWO, BOTH = NumaHint(0b01, True), NumaHint(0b10, True), NumaHint(0b11, False)


@pytest.mark.parametrize(
    ("policy", "resources", "expected"),
    [
        pytest.param(Policy.NONE, [(), ()], (0b11, True, True), id="none looks at no hint"),
        pytest.param(Policy.RESTRICTED, [], (0b11, True, True), id="nothing to align"),
        pytest.param(Policy.RESTRICTED, [None], (0b11, True, True), id="any NUMA node will do"),
        pytest.param(
            Policy.SINGLE_NUMA_NODE, [(ONE, TWO), (TWO, BOTH)], (0b10, True, True), id="one fits"
        ),
        pytest.param(
            Policy.SINGLE_NUMA_NODE, [(ONE,), (TWO,)], (0b11, False, False), id="apart, single"
        ),
        pytest.param(
            Policy.RESTRICTED, [(ONE, BOTH), (TWO, BOTH)], (0b01, False, False), id="apart"
        ),
        pytest.param(
            Policy.BEST_EFFORT, [(ONE, BOTH), (TWO, BOTH)], (0b01, False, True), id="best effort"
        ),
        pytest.param(Policy.RESTRICTED, [()], (0b11, False, False), id="cannot be aligned"),
        pytest.param(Policy.BEST_EFFORT, [()], (0b11, False, True), id="cannot, best effort"),
        pytest.param(Policy.RESTRICTED, [(ONE, TWO)], (0b01, True, True), id="the lowest of two"),
    ],
)
def test_policies(policy, resources, expected):
    merged = hints.merge(Topology(policy, 2), resources)
    assert (merged.mask, merged.preferred, merged.admitted) == expected


def test_many_resources_on_many_numa_nodes_are_merged_at_once():
    every = tuple(NumaHint(mask, mask.bit_count() == 1) for mask in range(1, 1 << 8))
    merged = hints.merge(Topology(Policy.RESTRICTED, 8), [every] * 6)
    assert (merged.mask, merged.preferred) == (1, True)
