"""Placements compared with an exhaustive search on networks of up to 64 nodes."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from domain.topology import layers, placement, rules, spread, tree
from tests.domain.topology import networks, oracle

MULTIPLES = some.sampled_from([1, 1, 1, 2, 3, 4])
SLOTS = some.integers(0, 4)


@some.composite
def drawn(draw, widths=(4, 4, 4), slots=SLOTS):
    """Return a network as nested domains, by the name of spine, block and node."""
    network, number = {}, 0
    for spine in range(draw(some.integers(1, widths[0]))):
        blocks = network[f"s{spine}"] = {}
        for block in range(draw(some.integers(1, widths[1]))):
            nodes = blocks[f"s{spine}b{block}"] = {}
            for free in draw(some.lists(slots, min_size=1, max_size=widths[2])):
                nodes[f"n{number}"] = free
                number += 1
    return network


def flat(network):
    """Return the full path of every node, and its free places."""
    return {
        (spine, block, node): free
        for spine, blocks in network.items()
        for block, nodes in blocks.items()
        for node, free in nodes.items()
    }


def built(network):
    places = flat(network)
    named = [(node, networks.labels(spine, block)) for spine, block, node in places]
    offer = placement.Offer({path[-1]: free for path, free in places.items()})
    return tree.Tree.of(networks.LAYERS, named), offer


def wanted(must, multiples):
    """Return the rules: a layer for MustGather, or none, and a multiple by level."""
    return rules.Rules(
        tuple(
            rules.Gather(name, must == level, multiples[level])
            for level, name in enumerate(networks.LAYERS.names)
        )
    )


def paths(network, nodes):
    by_name = {path[-1]: path for path in flat(network)}
    return [by_name[node] for node in nodes]


def check(network, must, multiples, desired):
    """Place, and compare everything with the search; return whether it was placed."""
    grown, offer = built(network)
    found = placement.place(grown, offer, wanted(must, multiples), desired)
    search = oracle.Search(network, multiples)
    best = search.answer(max(must, 0), desired)
    if best is None:
        assert isinstance(found, placement.Refusal), found
        assert str(desired) in found.sentence
        return False
    assert isinstance(found, placement.Placement), (found, best)
    level, closeness = best
    placed = paths(network, found.nodes)
    assert len(placed) == desired
    assert found.layer == networks.LAYERS.names[level]
    assert len({path[:level] for path in placed}) == 1
    assert oracle.closeness(placed, level) == closeness
    for path, free in flat(network).items():
        assert placed.count(path) <= free
    for depth in range(level, 4):
        for prefix in {path[:depth] for path in placed}:
            held = sum(path[:depth] == prefix for path in placed)
            assert held % multiples[depth] == 0
    apart = spread.spread(grown, found.nodes)
    assert apart.mean_distance == pytest.approx(oracle.mean_distance(placed))
    assert dict(apart.spans) == {
        networks.LAYERS.names[depth]: len({path[:depth] for path in placed}) for depth in (1, 2, 3)
    }
    return True


@given(drawn(), some.integers(1, 12), some.sampled_from([-1, -1, 1, 2, 3]))
def test_nothing_is_closer_together_than_what_is_placed(network, desired, must):
    check(network, must, (1, 1, 1, 1), desired)


@given(
    drawn(widths=(3, 3, 3)),
    some.integers(1, 12),
    some.sampled_from([-1, 1, 2]),
    some.tuples(some.just(1), MULTIPLES, MULTIPLES, MULTIPLES),
)
def test_multiples_are_kept_and_nothing_that_fits_is_refused(network, desired, must, multiples):
    check(network, must, multiples, desired)


@given(drawn(widths=(2, 2, 2), slots=some.integers(0, 2)), some.integers(1, 6))
def test_the_search_itself_finds_what_trying_every_count_finds(network, desired):
    places = flat(network)
    assume(sum(places.values()) >= desired)
    best = oracle.Search(network, (1, 1, 1, 1)).best((), desired)
    every = [
        [path for path, count in zip(places, counts, strict=True) for _ in range(count)]
        for counts in oracle.enumerated(list(places.values()), desired)
    ]
    assert best == max(oracle.closeness(placed, 0) for placed in every)


def test_64_nodes_with_a_hundred_places():
    network = {
        f"s{spine}": {
            f"s{spine}b{block}": {
                f"n{spine}{block}{node}": (spine + 3 * block + 7 * node) % 4 for node in range(4)
            }
            for block in range(4)
        }
        for spine in range(4)
    }
    assert len(flat(network)) == 64
    assert all(check(network, -1, (1, 1, 1, 1), desired) for desired in (1, 5, 9, 20, 31, 80))
    assert not check(network, 1, (1, 1, 1, 1), 60)


def test_the_depth_of_the_tree_is_what_layers_say():
    assert networks.LAYERS.names == (layers.ROOT, networks.SPINE, networks.BLOCK, layers.LEAF)
    assert networks.LAYERS.depth == 3
