"""How a gang wants to be gathered: the annotation network-topology-spec. Pure."""

import math
from typing import Final

import msgspec

from domain.gangs import option_texts
from domain.topology import layers as chains

MOST_RULES: Final = chains.MOST_LAYERS
"""Rules that are read of one gang; no chain has more layers."""
LARGEST_MULTIPLE: Final = 1 << 20


class Gather(msgspec.Struct, frozen=True):
    """One rule: what holds in the domains of one layer."""

    layer: str
    must: bool = False
    """Whether the whole gang has to be in one domain; otherwise that is preferred."""
    multiple: int = 1
    """Each domain takes a multiple of so many members (podCountMultiple)."""


class Rules(msgspec.Struct, frozen=True):
    """All rules of a gang; without any, the smallest domain that fits is preferred."""

    gather: tuple[Gather, ...] = ()

    def must(self) -> tuple[str, ...]:
        """Return the layers in which one domain has to hold the whole gang."""
        return tuple(rule.layer for rule in self.gather if rule.must)

    def own(self, layers: chains.Layers) -> tuple[int, ...]:
        """Return the podCountMultiple by level, 1 where there is none."""
        found = [1] * (layers.depth + 1)
        for rule in self.gather:
            level = layers.level(rule.layer)
            if level is not None and rule.multiple > 1:
                found[level] = rule.multiple
        return tuple(found)

    def multiples(self, layers: chains.Layers) -> tuple[int, ...]:
        """Return by level of how many members a domain takes a multiple.

        What is split further takes multiples of what its parts take: a layer has the least common
        multiple of its own number and those below it.
        """
        found = list(self.own(layers))
        for level in reversed(range(layers.depth)):
            found[level] = math.lcm(found[level], found[level + 1])
        return tuple(found)


def of(topology: option_texts.Topology | None) -> Rules:
    """Return the rules that a gang declares, within bounds; none prefers the smallest domain."""
    declared = topology.rules if topology is not None else ()
    return Rules(
        tuple(
            Gather(rule.layer, rule.must, min(max(1, rule.multiple), LARGEST_MULTIPLE))
            for rule in declared[:MOST_RULES]
        )
    )
