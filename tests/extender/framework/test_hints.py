"""NUMA hints of all providers are merged by the topology policy of a node."""

import hypothesis
import pytest
from hypothesis import strategies as st

from extender.framework.nodes import hints
from extender.framework.nodes.hints import NumaHint, Policy, Topology


@hypothesis.given(
    resources=st.permutations([(NumaHint(1, True),), None, (NumaHint(1, True), NumaHint(3, False))])
)
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
            Policy.RESTRICTED, [(ONE, BOTH), (TWO, BOTH)], (0b11, False, False), id="apart"
        ),
        pytest.param(
            Policy.BEST_EFFORT, [(ONE, BOTH), (TWO, BOTH)], (0b11, False, True), id="best effort"
        ),
        pytest.param(Policy.RESTRICTED, [()], (0b11, False, False), id="cannot be aligned"),
        pytest.param(Policy.BEST_EFFORT, [()], (0b11, False, True), id="cannot, best effort"),
        pytest.param(Policy.RESTRICTED, [(ONE, TWO)], (0b01, True, True), id="the lowest of two"),
    ],
)
def test_policies(policy, resources, expected):
    merged = hints.merge(Topology(policy, 2), resources)
    assert (merged.mask, merged.preferred, merged.admitted) == expected


def test_numa_nodes_keep_their_ids():
    topology = Topology(Policy.RESTRICTED, numa_nodes=2, ids=0b1_0000_0001)
    assert topology.everywhere == 0b1_0000_0001
    assert hints.merge(topology, [(NumaHint(1 << 8, True),)]).mask == 1 << 8


def test_a_better_score_wins_among_masks_as_wide():
    offered = (NumaHint(0b01, True, 10), NumaHint(0b10, True, 90))
    assert hints.merge(Topology(Policy.RESTRICTED, 2), [offered]).mask == 0b10
