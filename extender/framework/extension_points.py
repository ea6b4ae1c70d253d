"""Who has something to say about a pod at each extension point, found once for pods alike.

Most pods concern two or three of a dozen plug-ins, and a pod is taken through all the points.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from extender.framework import protocols
from extender.framework.nodes import numa

_MOST: Final = 1024
"""Sets of plug-ins that are remembered; a dozen of them form more, pods of a cluster do not."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Point = TypeVar("Point", bound=_Named)


@dataclasses.dataclass(frozen=True, slots=True)
class Weighted:
    """A scorer and how much it counts."""

    scorer: protocols.Scorer
    weight: int

    @property
    def name(self) -> str:
        """Return the name of the plug-in."""
        return self.scorer.name


class Points(msgspec.Struct, frozen=True):
    """Plug-ins by extension point, in the order in which they are asked."""

    filters: tuple[tuple[protocols.Filter, protocols.Prescreen | None], ...]
    """With the same plug-in where it tells at little cost that every node passes."""
    node_filters: tuple[protocols.NodeFilter, ...]
    is_aligned: bool
    """Whether a hint provider is among them."""
    scorers: tuple[Weighted, ...]
    reservers: tuple[protocols.Reserver, ...]
    permits: tuple[protocols.Permit, ...]


class PointsByNames(dict[tuple[str, ...], Points]):
    """By the names of those that prepared something of a pod: who is asked about it."""

    def __init__(self, every: Points, aligned: numa.Aligned) -> None:
        """Take all plug-ins of each point."""
        self._every, self._aligned = every, aligned
        self.passed = tuple([f"{plugin.name}: passed" for plugin, _ in every.filters])
        """What is written on a pod for every filter."""

    def __missing__(self, names: tuple[str, ...]) -> Points:
        if len(self) >= _MOST:
            self.clear()
        every = self._every
        self[names] = found = Points(
            tuple([entry for entry in every.filters if entry[0].name in names]),
            of(every.node_filters, names),
            not self._aligned.names.isdisjoint(names),
            of(every.scorers, names),
            of(every.reservers, names),
            of(every.permits, names),
        )
        return found


def of(plugins: Sequence[Point], names: Sequence[str]) -> tuple[Point, ...]:
    """Return the plug-ins of these names."""
    return tuple([plugin for plugin in plugins if plugin.name in names])
