"""Where in the network a gang is placed: the smallest domain that fits, and the nodes in it. Pure.

The rules are those of the annotation network-topology-spec. Of several domains of the lowest layer
that fits, the one with more pods of the same selector is taken; then the one in which the members
are closer together, the one with fewer places left, the one with the higher score, and the name.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from domain.topology import gathering, subtree
from domain.topology import rules as gather
from domain.topology import tree as trees

Offer = subtree.Offer
NO_TREE: Final = "no cluster network topology"
_NO_DOMAIN: Final = "no candidate topology nodes can accommodate job"
_MOST_NAMED: Final = 10
_LONGEST_NAME: Final = 100


class Placement(msgspec.Struct, frozen=True):
    """The nodes of a gang, one entry per member; members take them in the order of their names."""

    nodes: tuple[str, ...]
    layer: str
    """Of the domain that holds all of them."""
    domain: str
    """Its name, empty for the cluster."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a gang has no place in the network."""

    sentence: str
    most: int = 0
    """Members that the best domain has places for."""


def place(
    tree: trees.Tree,
    offer: Offer,
    rules: gather.Rules,
    desired: int,
    deepest: int | None = None,
) -> Placement | Refusal:
    """Place so many members at once; an offer counts only nodes that are in the tree.

    `deepest` is the lowest level of which a domain may be chosen, that of nodes where it is None.
    """
    layers = tree.layers
    if layers is None:
        return Refusal(NO_TREE)
    if unknown := [name for name in rules.must() if layers.level(name) is None]:
        return Refusal(
            f"{_NO_DOMAIN}, the network has no layer {_short(unknown[0])}; use one of "
            + ", ".join(layers.names[1:])
        )
    found = subtree.levels(tree, offer, rules)
    start = max((layers.level(name) or 0 for name in rules.must()), default=0)
    multiples = rules.multiples(layers)
    candidates = [
        one
        for one in _lowest(found[start], desired, layers.depth if deepest is None else deepest)
        if one.slots >= desired and not desired % multiples[one.level]
    ]
    if not candidates:
        return _refusal(tree, rules, found[start], desired)
    sharing = gathering.Gathering(layers.depth)
    best = min(candidates, key=lambda one: _order(one, sharing, desired))
    nodes = sharing.share(best, desired)[1]
    return Placement(
        tuple(node for node, count in nodes for _ in range(count)),
        layers.names[best.level],
        best.name,
    )


def _lowest(start: Sequence[subtree.Domain], desired: int, deepest: int) -> list[subtree.Domain]:
    """Return the domains that fit, of the lowest layer that has any below those that fit."""
    fitting = [one for one in start if one.offered >= desired and one.level <= deepest]
    while fitting and fitting[0].level < deepest:
        below = [one for each in fitting for one in each.children if one.offered >= desired]
        if not below:
            break
        fitting = below
    return fitting


def _order(
    domain: subtree.Domain, sharing: gathering.Gathering, desired: int
) -> tuple[object, ...]:
    around = domain.walk()
    return (
        [-one.existing for one in around],
        [-one for one in sharing.share(domain, desired)[0]],
        [one.offered for one in around],
        -domain.score,
        domain.name,
        domain.path,
    )


def _refusal(
    tree: trees.Tree, rules: gather.Rules, start: Sequence[subtree.Domain], desired: int
) -> Refusal:
    assert tree.layers is not None
    largest = sorted(start, key=lambda one: (-one.offered, one.path))
    offers = ";".join(
        f"{tree.layers.names[one.level]}/{_short(one.name)}: {one.offered}"
        for one in largest[:_MOST_NAMED]
    )
    more = f";{len(largest) - _MOST_NAMED} more" if len(largest) > _MOST_NAMED else ""
    sentence = f"{_NO_DOMAIN}, desiredOfferSlot: {desired}, {offers or 'no domain'}{more}"
    multiples = [f"{_short(one.layer)}={one.multiple}" for one in rules.gather if one.multiple > 1]
    if multiples:
        sentence += f"; podCountMultiple constraints: {','.join(multiples)}"
    return Refusal(sentence, largest[0].offered if largest else 0)


def _short(name: str) -> str:
    return name[:_LONGEST_NAME]
