"""Requested shares of nodes compared with thresholds in percent. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final

import numpy as np

from descheduler.framework.nodes import node_room

Percent = Mapping[str, float]
_ALL: Final = 100.0


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What may be requested of each node, one row per node and one column per resource."""

    resources: tuple[str, ...]
    amounts: node_room.Shares

    def not_above(self, requested: node_room.Counts) -> node_room.Flags:
        """Return where no more than this is requested of any resource."""
        found: node_room.Flags = np.all(requested <= self.amounts, axis=1)
        return found

    def above(self, requested: node_room.Counts) -> node_room.Flags:
        """Return where more than this is requested of some resource."""
        found: node_room.Flags = np.any(requested > self.amounts, axis=1)
        return found


def limits(room: node_room.Room, percent: Percent) -> Limits:
    """Return the amounts that percentages of what is allocatable stand for."""
    resources = tuple(sorted(percent))
    _, allocatable = room.amounts(resources)
    percentages = np.array([percent[name] for name in resources], np.float64)
    return Limits(resources, allocatable * percentages / _ALL)


def around_mean(room: node_room.Room, percent: Percent, sign: int) -> Limits:
    """Return limits at a distance in percent below (-1) or above (1) the mean share."""
    resources = tuple(sorted(percent))
    shares = room.shares(resources)
    mean = shares.mean(axis=0) * _ALL if len(shares) else np.zeros(len(resources))
    distances = np.array([percent[name] for name in resources])
    bounded = np.clip(mean + sign * distances, 0.0, _ALL)
    return limits(room, dict(zip(resources, bounded.tolist(), strict=True)))


def described(room: node_room.Room, node: str, kept: Limits) -> str:
    """Return what is requested of a node beside its limits, for people."""
    requested, allocatable = room.amounts(kept.resources)
    row = room.row(node)
    shares = node_room.parts(requested, allocatable)[row] * _ALL
    bounds = np.divide(
        kept.amounts[row],
        allocatable[row],
        out=np.zeros(len(kept.resources)),
        where=allocatable[row] > 0,
    )
    return ", ".join(
        f"{name} {share:.0f}% of {bound * _ALL:.0f}%"
        for name, share, bound in zip(kept.resources, shares, bounds, strict=True)
    )
