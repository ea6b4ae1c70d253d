"""The tree follows nodes and layers; distances and the order for lone pods are read from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from api.koordinator import topology
from domain.topology import layers, spread, tree
from tests.domain.topology import networks

CHAINS = {
    "nodes only": ([networks.layer(layers.LEAF)], (layers.ROOT, layers.LEAF)),
    "parents listed last": (
        list(reversed(networks.LISTED)),
        (layers.ROOT, "SpineLayer", "BlockLayer", layers.LEAF),
    ),
    "the cluster named as parent": (
        [networks.layer("Rack", layers.ROOT, "rack"), networks.layer(layers.LEAF, "Rack")],
        (layers.ROOT, "Rack", layers.LEAF),
    ),
}


def read(*listed):
    return layers.read(topology.NetworkSpec(network_topology_spec=tuple(listed)))


@pytest.mark.parametrize(("listed", "names"), CHAINS.values(), ids=CHAINS)
def test_layers_are_linked_from_the_nodes_upwards(listed, names):
    assert read(*listed).names == names


BROKEN = {
    "no layer of nodes": ([networks.layer("Rack")], "spec.networkTopologySpec: Required value"),
    "unknown parent": (
        [networks.layer(layers.LEAF, "Rack")],
        r'\[0\].parentTopologyLayer: Not found: "Rack": name a layer',
    ),
    "twice": (
        [*networks.LISTED, networks.LISTED[1]],
        r'\[3\].topologyLayer: Duplicate value: "BlockLayer": give each',
    ),
    "a circle": (
        [networks.layer("A", "B"), networks.layer("B", "A"), networks.layer(layers.LEAF, "A")],
        "A is above itself; leave parentTopologyLayer out",
    ),
    "beside": (
        [*networks.LISTED, networks.layer("Zone")],
        "Zone not between the nodes and the cluster; the layers form one chain",
    ),
    "the cluster listed": (
        [networks.layer(layers.ROOT), *networks.LISTED],
        r'\[0\].topologyLayer: Invalid value: "ClusterTopologyLayer": it is built in; leave',
    ),
    "no name": ([networks.layer(""), *networks.LISTED], r"\[0\].topologyLayer: Required value"),
    "too many": (
        [networks.layer(f"L{n}", f"L{n + 1}" if n < 15 else "") for n in range(16)]
        + [networks.layer(layers.LEAF, "L0")],
        "Too many: 17: list at most 15",
    ),
    "none": ([], "Required value: one layer has to be NodeTopologyLayer"),
}


@pytest.mark.parametrize(("listed", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_chain_names_the_field_and_the_remedy(listed, said):
    with pytest.raises(ValueError, match=said):
        read(*listed)


def test_what_is_most_likely_a_mistake():
    listed = (
        networks.layer("Zone", "", "zone"),
        networks.layer("Row", "Zone"),
        networks.layer("Rack", "Row", "rack", "zone"),
        networks.layer(layers.LEAF, "Rack", "host"),
    )
    assert [(one.field[-12:], one.text) for one in layers.remarks(listed)] == [
        ("[1].labelKey", "Row names no label of nodes, so no node is in the tree; name one"),
        ("[2].labelKey", "label zone names the domains of Zone already"),
        ("[3].labelKey", "nodes are named by themselves; the labels are not read"),
    ]
    assert list(layers.remarks(networks.LISTED)) == []


def test_the_first_label_that_is_not_empty_counts():
    found = read(networks.layer("Rack", "", "a", "b"), networks.layer(layers.LEAF, "Rack"))
    assert found.path("n", {"a": "", "b": "r2"}) == ("r2",)
    assert found.path("n", {"a": "r1", "b": "r2"}) == ("r1",)
    assert found.path("n", {}) == ("n",)


LABELS = some.none() | some.builds(
    networks.labels, some.sampled_from(["", "s1", "s2"]), some.sampled_from(["", "b1", "b2"])
)
CHOICES = some.sampled_from([None, networks.LAYERS, read(*CHAINS["nodes only"][0])])
STEPS = some.lists(
    some.tuples(some.sampled_from("abcdef"), LABELS) | some.tuples(some.just("layers"), CHOICES),
    max_size=20,
)


@given(STEPS)
def test_a_followed_tree_equals_one_that_is_built_and_every_change_has_its_inverse(steps):
    here, known, linked = tree.Tree(), {}, None
    for name, value in steps:
        before = here
        if name == "layers":
            back = linked
            here, linked = here.with_layers(value), value
            assert here.with_layers(back) == before
        else:
            was = known.get(name)
            here = here.with_node(name, value)
            known = {**known, name: value}
            assert here.with_node(name, was) == before
        present = [(node, labels) for node, labels in known.items() if labels is not None]
        assert here == tree.Tree.of(linked, present)
        assert sum(path == () for path in here.domains()) == (linked is not None)
        assert here.domains().get((), 0) == len(here.paths)


def test_a_change_of_no_label_is_no_change():
    network = networks.network(s1b1="a")
    assert network.with_node("a", networks.labels("s1", "s1b1")) is network
    assert network.with_layers(networks.LAYERS) is network


def test_domains_and_names_that_two_parents_share():
    network = tree.Tree.of(
        networks.LAYERS,
        [
            ("a", networks.labels("s1", "b")),
            ("b", networks.labels("s2", "b")),
            ("c", networks.labels("s2", "c")),
            ("d", {}),
        ],
    )
    assert network.domains() == {
        (): 3,
        ("s1",): 1,
        ("s1", "b"): 1,
        ("s2",): 2,
        ("s2", "b"): 1,
        ("s2", "c"): 1,
    }
    assert list(network.shared_names()) == [("BlockLayer", "b", ("s1", "s2"))]
    assert network.outside() == ["d"]
    assert tree.Tree().domains() == {}
    assert tree.Tree().outside() == []
    assert list(tree.Tree().shared_names()) == []


SPREADS = {
    "nothing": ("", 0.0, (0, 0, 0)),
    "one": ("a1", 0.0, (1, 1, 1)),
    "one node": ("a1 a1", 0.0, (1, 1, 1)),
    "one block": ("a1 a2", 1.0, (1, 1, 2)),
    "one spine": ("a1 b1", 2.0, (1, 2, 2)),
    "two spines": ("a1 c1", 3.0, (2, 2, 2)),
    "some of each": ("a1 a1 a2 b1", (0 + 2 * 1 + 3 * 2) / 6, (1, 2, 3)),
    "outside the tree": ("a1 x y", 3.0, (3, 3, 3)),
}


@pytest.mark.parametrize(("nodes", "distance", "spans"), SPREADS.values(), ids=SPREADS)
def test_distances_and_domains(nodes, distance, spans):
    network = networks.network(s1b1="a1 a2", s1b2="b1", s2b3="c1")
    found = spread.spread(network, nodes.split())
    assert found.mean_distance == pytest.approx(distance)
    assert tuple(count for _, count in found.spans) == spans
    assert [name for name, _ in found.spans] == ["SpineLayer", "BlockLayer", "NodeTopologyLayer"]
    assert spread.spread(tree.Tree(), nodes.split()) == spread.Spread(0.0, ())
