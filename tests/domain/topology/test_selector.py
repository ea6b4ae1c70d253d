"""In which order nodes are for a lone pod that has a network-topology-selector."""

import hypothesis
import pytest
from hypothesis import strategies as st

from domain.topology import selector, tree
from tests.domain.topology import networks, oracle

LINES = {
    "names": ("a2 a1 c1", {}, "c1 a1 a2"),
    "fewer nodes left in the block": ("a1 a2 b1 c1 d1", {}, "c1 d1 b1 a1 a2"),
    "pods on the node": ("a1 a2 b1 c1", {"a2": 1, "b1": 1}, "b1 a2 a1 c1"),
    "pods in the block": ("a1 b1 c1", {"a2": 1}, "a1 b1 c1"),
    "pods in the spine": ("a1 c1 d1", {"b1": 1}, "a1 c1 d1"),
    "pods on nodes that are full": ("c1 d1 b1", {"a1": 1, "a2": 1, "c1": 0}, "b1 c1 d1"),
    "outside the tree comes last": ("x a1 a0", {"x": 1, "y": 1}, "a1 x a0"),
    "nothing in the tree": ("y x", {"a1": 1}, "x y"),
    "no node": ("", {"a1": 1}, ""),
}


@pytest.mark.parametrize(("feasible", "existing", "order"), LINES.values(), ids=LINES)
def test_the_order_of_nodes_for_a_lone_pod(feasible, existing, order):
    network = networks.network(s1b1="a1 a2", s1b2="b1", s2b3="c1", s2b4="d1")
    names = feasible.split()
    places = selector.Order(network).positions(names, existing).tolist()
    assert [name for _, name in sorted(zip(places, names, strict=True))] == order.split()
    assert places == oracle.positions(network, names, existing)


@hypothesis.given(st.data())
def test_many_nodes_at_once_are_in_the_same_order_as_one_compared_with_another(data):
    names = [f"n{number}" for number in range(12)]
    spines, blocks = st.sampled_from(["", "s1", "s2"]), st.sampled_from(["", "b1", "b2", "b3"])
    where = [(name, networks.labels(data.draw(spines), data.draw(blocks))) for name in names]
    layers = data.draw(st.sampled_from([networks.LAYERS, type(networks.LAYERS)()]))
    network = tree.Tree.of(layers, where)
    feasible = data.draw(st.lists(st.sampled_from([*names, "gone"]), unique=True))
    counts = st.dictionaries(st.sampled_from([*names, "away"]), st.integers(0, 3))
    existing = data.draw(counts)
    found = selector.Order(network).positions(feasible, existing).tolist()
    assert found == oracle.positions(network, feasible, existing)
