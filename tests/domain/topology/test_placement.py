"""Which domain and which nodes a gang gets, by one rule at a time."""

import pytest

from domain.gangs import option_texts
from domain.topology import layers, placement, rules, tree
from tests import processor_time
from tests.domain.topology import networks

FOUR = networks.network(s1b1="a1 a2", s1b2="b1 b2", s2b3="c1 c2", s2b4="d1 d2")
NAMES = ("a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2")
ONE_EACH = dict.fromkeys(NAMES, 1)
MUST_BLOCK = rules.Rules((rules.Gather(networks.BLOCK, must=True),))
MUST_SPINE = rules.Rules((rules.Gather(networks.SPINE, must=True),))
PREFER_BLOCK = rules.Rules((rules.Gather(networks.BLOCK),))
ANY = rules.Rules()


def placed(offer, asked=ANY, desired=2, network=FOUR):
    found = placement.place(network, offer, asked, desired)
    assert isinstance(found, placement.Placement), found
    return list(found.nodes)


def refused(offer, asked=ANY, desired=2, network=FOUR):
    found = placement.place(network, offer, asked, desired)
    assert isinstance(found, placement.Refusal), found
    return found.sentence


def multiples(**by_layer):
    return rules.Rules(
        tuple(rules.Gather(f"{name}Layer", multiple=of) for name, of in by_layer.items())
    )


ORDER = {
    "by name where all else is equal": (placement.Offer(ONE_EACH), "a1 a2"),
    "by score before the name": (
        placement.Offer(ONE_EACH, score={"d1": 1, "c2": 2}),
        "c2 c1",
    ),
    "fewer places before the score": (
        placement.Offer({**ONE_EACH, "x": 1, "y": 1}, score={"a1": 100, "d1": 50}),
        "d1 d2",
    ),
    "fewer places around where the domain has as many": (
        placement.Offer({"a1": 1, "a2": 1, "b1": 1, "b2": 1, "c1": 1, "c2": 1, "d1": 1}),
        "c1 c2",
    ),
    "more pods of the selector before fewer places": (
        placement.Offer({**ONE_EACH, "x": 1}, existing={"a2": 1}),
        "a2 a1",
    ),
    "more pods around where the domain has as many": (
        placement.Offer({"a1": 1, "a2": 1, "c1": 1, "c2": 1}, existing={"d1": 1}),
        "c1 c2",
    ),
    "pods on nodes that are full count for their domain": (
        placement.Offer({**ONE_EACH, "c1": 0, "x": 1, "y": 1}, existing={"b1": 1, "c1": 2}),
        "c2 y",
    ),
    "one node before one block": (placement.Offer({**ONE_EACH, "d2": 2}), "d2 d2"),
    "the smallest node that fits": (placement.Offer({"a1": 4, "b1": 3, "c1": 2}), "c1 c1"),
}


@pytest.mark.parametrize(("offer", "nodes"), ORDER.values(), ids=ORDER)
def test_candidates_are_taken_in_order(offer, nodes):
    network = FOUR.with_node("x", networks.labels("s1", "s1b1"))
    network = network.with_node("y", networks.labels("s2", "s2b3"))
    assert placed(offer, network=network) == nodes.split()


def test_closer_together_comes_before_fewer_places():
    # In b2 the nine members need two nodes, in b1 all five.
    network = networks.network(s1b1="a1 a2 a3 a4 a5", s1b2="b1 b2")
    offer = placement.Offer({"a1": 2, "a2": 2, "a3": 2, "a4": 2, "a5": 1, "b1": 5, "b2": 5})
    assert placed(offer, desired=9, network=network) == ["b1"] * 5 + ["b2"] * 4


def test_the_rest_goes_where_it_stays_together():
    network = networks.network(s1b1="a1 a2 a3 a4", s1b2="b1 b2 b3", s1b3="c1")
    slots = {f"{block}{n}": 1 for block in "ab" for n in range(1, 5)} | {"b4": 0, "c1": 2}
    assert placed(placement.Offer(slots), desired=6, network=network) == [
        *("a1", "a2", "a3", "a4"),
        *("c1", "c1"),
    ]


def test_children_with_pods_of_the_selector_are_filled_first():
    offer = placement.Offer({**ONE_EACH, "a1": 3}, existing={"b2": 1, "b1": 1})
    assert placed(offer, desired=5) == ["b1", "b2", "a1", "a1", "a1"]


def test_more_places_then_score_then_name_within_a_domain():
    offer = placement.Offer({"a1": 1, "a2": 1, "b1": 1, "b2": 2}, score={"a2": 5})
    assert placed(offer, desired=4) == ["b2", "b2", "b1", "a2"]


@pytest.mark.parametrize(
    ("asked", "desired", "nodes"),
    [
        (MUST_BLOCK, 2, "a1 a2"),
        (MUST_SPINE, 4, "a1 a2 b1 b2"),
        (PREFER_BLOCK, 4, "a1 a2 b1 b2"),
        (PREFER_BLOCK, 5, "a1 a2 b1 b2 c1"),
        (rules.Rules((*MUST_SPINE.gather, *PREFER_BLOCK.gather)), 3, "a1 a2 b1"),
        (rules.Rules((rules.Gather(layers.ROOT, must=True),)), 5, "a1 a2 b1 b2 c1"),
        (rules.Rules((rules.Gather("Rack"),)), 2, "a1 a2"),
    ],
    ids=["block", "spine", "prefer", "prefer is no must", "both", "cluster", "prefer unknown"],
)
def test_must_and_prefer(asked, desired, nodes):
    assert placed(placement.Offer(ONE_EACH), asked, desired) == nodes.split()


def test_the_deepest_layer_with_must_counts():
    both = rules.Rules((*MUST_SPINE.gather, *MUST_BLOCK.gather))
    assert refused(placement.Offer(ONE_EACH), both, 3) == (
        "no candidate topology nodes can accommodate job, desiredOfferSlot: 3, BlockLayer/s1b1: 2;"
        "BlockLayer/s1b2: 2;BlockLayer/s2b3: 2;BlockLayer/s2b4: 2"
    )


def test_a_must_that_the_network_does_not_know_is_refused_with_what_there_is():
    asked = rules.Rules((rules.Gather("Rack", must=True),))
    assert refused(placement.Offer(ONE_EACH), asked) == (
        "no candidate topology nodes can accommodate job, the network has no layer Rack; use one "
        "of SpineLayer, BlockLayer, NodeTopologyLayer"
    )


def test_no_domain_below_a_level_is_chosen_where_one_is_given():
    offer = placement.Offer({"a1": 2, "a2": 2, "b1": 1})
    found = [placement.place(FOUR, offer, ANY, 2, deepest) for deepest in (None, 3, 2, 1, 0)]
    assert [one.layer for one in found] == [
        layers.LEAF, layers.LEAF, networks.BLOCK, networks.SPINE, layers.ROOT,
    ]  # fmt: skip
    assert isinstance(placement.place(FOUR, offer, MUST_BLOCK, 2, 1), placement.Refusal)


def test_no_tree_and_no_place():
    assert refused(placement.Offer(ONE_EACH), network=tree.Tree()) == "no cluster network topology"
    assert refused(placement.Offer({})).endswith("ClusterTopologyLayer/: 0")
    assert refused(placement.Offer({}), MUST_BLOCK).endswith("no domain")


def test_the_refusal_names_the_ten_best_domains():
    network = networks.network(**{f"s1b{n:02}": f"n{n}" for n in range(14)})
    offer = placement.Offer({f"n{n}": 1 + n for n in range(14)})
    said = refused(offer, MUST_BLOCK, 20, network)
    assert "BlockLayer/s1b13: 14;BlockLayer/s1b12: 13;" in said
    assert said.endswith("BlockLayer/s1b04: 5;4 more")


MULTIPLES = {
    "blocks take pairs": (multiples(Block=2), {"a1": 3, "b1": 3}, 4, "a1 a1 b1 b1"),
    "nodes take pairs": (multiples(NodeTopology=2), {"a1": 3, "a2": 1, "b1": 2}, 4, "a1 a1 b1 b1"),
    "spines of blocks": (
        multiples(Spine=3, Block=2),
        {"a1": 4, "b1": 2, "c1": 4, "d1": 1},
        6,
        "a1 a1 a1 a1 b1 b1",
    ),
}


@pytest.mark.parametrize(("asked", "slots", "desired", "nodes"), MULTIPLES.values(), ids=MULTIPLES)
def test_each_domain_takes_a_multiple(asked, slots, desired, nodes):
    assert placed(placement.Offer(slots), asked, desired) == nodes.split()


def test_what_cannot_be_divided_is_refused_with_the_multiples():
    said = refused(placement.Offer({"a1": 3, "b1": 3}), multiples(Block=2), 5)
    assert said.endswith("ClusterTopologyLayer/: 4; podCountMultiple constraints: BlockLayer=2")


def test_a_multiple_above_does_not_hinder_a_domain_below():
    assert placed(placement.Offer({"a1": 7}), multiples(Spine=3), 5) == ["a1"] * 5


@pytest.mark.parametrize(
    "label",
    [networks.labels("s9"), networks.labels("", "b9"), {}],
    ids=["no block: a domain by itself", "no spine: outside", "neither: outside"],
)
def test_a_node_without_a_label(label):
    network = FOUR.with_node("z", label)
    offer = placement.Offer({"z": 9})
    if networks.SPINE_KEY not in label:
        assert "ClusterTopologyLayer/: 0" in refused(offer, network=network)
        assert network.outside() == ["z"]
    else:
        found = placement.place(network, offer, MUST_BLOCK, 2)
        assert found == placement.Placement(("z", "z"), layers.LEAF, "z")
        assert network.paths["z"] == ("s9", "z")


def test_blocks_of_one_name_below_two_spines_are_two_domains():
    network = tree.Tree.of(
        networks.LAYERS, [("a", networks.labels("s1", "b")), ("b", networks.labels("s2", "b"))]
    )
    assert "desiredOfferSlot" in refused(
        placement.Offer({"a": 1, "b": 1}), MUST_BLOCK, network=network
    )


RULES = {
    "two layers": (
        (
            '{"gatherStrategy":[{"layer":"SpineLayer","strategy":"PreferGather"},'
            '{"layer":"BlockLayer","strategy":"MustGather","podCountMultiple":2}]}'
        ),
        rules.Rules((rules.Gather("SpineLayer"), rules.Gather("BlockLayer", True, 2))),
    ),
    "no rule": ("{}", rules.Rules()),
    "no number of pods": (
        '{"gatherStrategy":[{"layer":"a","strategy":"PreferGather","podCountMultiple":-4}]}',
        rules.Rules((rules.Gather("a"),)),
    ),
    "unreadable": ("[", rules.Rules()),
}


@pytest.mark.parametrize(("text", "expected"), RULES.values(), ids=RULES)
def test_rules_are_taken_from_the_declaration(text, expected):
    assert rules.of(option_texts.topology(text)) == expected


def test_of_many_rules_as_many_count_as_there_may_be_layers():
    one = option_texts.GatherRule("a", must=True, multiple=(1 << 53) - 1)
    found = rules.of(option_texts.Topology((one,) * 1000))
    assert len(found.gather) == rules.MOST_RULES
    assert found.gather[0].multiple == rules.LARGEST_MULTIPLE


def test_512_members_on_5000_nodes_take_little_time():
    nodes = {
        f"n{number}": networks.labels(f"s{number // 500}", f"b{number // 20}")
        for number in range(5000)
    }
    network = tree.Tree.of(networks.LAYERS, nodes.items())
    offer = placement.Offer({name: number % 3 for number, name in enumerate(nodes)})
    with processor_time.below(1.0):
        assert len(placed(offer, desired=512, network=network)) == 512
        assert len(set(placed(offer, desired=20, network=network))) == 13
