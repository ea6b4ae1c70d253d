"""GPUs of one topology scope: the narrowest of node, NUMA node and PCIe switch that has enough."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from domain import identity_memo
from domain.devices import inventory
from domain.devices.allocation import candidates, device_scores

Granted = inventory.Granted

NO_TREE: Final = candidates.Refusal("node(s) missing GPU Device Topology Tree", final=True)
SHARED: Final = candidates.Refusal("node(s) Unsupported Multi-Shared GPU", final=True)
TOO_FEW_THERE: Final = candidates.Refusal("Insufficient Topology Scoped GPU Devices")
TOO_FEW: Final = candidates.Refusal("Insufficient GPU Devices")
LEVELS: Final[Mapping[str, int]] = {"": 0, "Node": 1, "NUMANode": 2, "PCIe": 3, "Device": 4}
"""Depth of a scope in the tree; nothing is as deep as Device."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """A part of a machine."""

    minors: tuple[int, ...]
    children: tuple["Scope", ...] = ()


def tree(known: inventory.ByMinor) -> Scope | None:
    """Return the scopes of a node; None where the place of a GPU is not known."""
    by_numa: dict[int, dict[str, list[int]]] = {}
    for minor, device in sorted(known.items()):
        if device.place is None:
            return None
        switches = by_numa.setdefault(device.place.numa, {})
        switches.setdefault(device.place.pcie, []).append(minor)
    children = []
    for _numa, switches in sorted(by_numa.items()):
        inner = tuple(Scope(tuple(minors)) for _pcie, minors in sorted(switches.items()))
        children.append(Scope(tuple(sorted(m for one in inner for m in one.minors)), inner))
    return Scope(tuple(sorted(known)), tuple(children))


_TREES: Final = identity_memo.IdentityMemo(tree, most=512)


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    depth: int
    occupied: int
    """How many of the scopes on the way are in use already."""
    minors: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int]:
        return self.depth, self.occupied


@dataclasses.dataclass(frozen=True, slots=True)
class _Search:
    pool: candidates.Pool
    wanted: candidates.Wanted
    shared: bool
    required: int
    scoring: device_scores.Scoring | None

    def within(self, scope: Scope, depth: int = 0, occupied: int = 0) -> _Found | None:
        """Return the best GPUs of a scope, those of its narrowest part that has enough."""
        if len(scope.minors) < self.wanted.count:
            return None
        depth += 1
        occupied += not self.pool.used.isdisjoint(scope.minors)
        inner = [self.within(child, depth, occupied) for child in scope.children]
        found = [one for one in inner if one is not None]
        if found:
            # Of equal ones max returns the first.
            return max(found, key=lambda one: one.rank)
        if self.required > depth:
            return None
        return self._taken(scope, depth, occupied)

    def _taken(self, scope: Scope, depth: int, occupied: int) -> _Found | None:
        fitting = [minor for minor in scope.minors if self._fits(minor)]
        if len(fitting) < self.wanted.count:
            return None
        if not self.shared:
            return _Found(depth, occupied, tuple(fitting[: self.wanted.count]))
        return _Found(depth, occupied, (max(fitting, key=self._score),))

    def _fits(self, minor: int) -> bool:
        total = self.pool.total.get(minor)
        if not total or not any(total.values()):
            return False
        return candidates.fits(self.wanted.per_device, self.pool.free[minor])

    def _score(self, minor: int) -> int:
        if self.scoring is None:
            return 0
        total, free = self.pool.total[minor], self.pool.free[minor]
        return device_scores.device(self.scoring, self.wanted.per_device, total, free)


def allocate(
    choice: candidates.Choice, pool: candidates.Pool, wanted: candidates.Wanted
) -> tuple[Granted, ...] | candidates.Refusal:
    """Return the GPUs of the narrowest scope that has enough, rather of one in use already."""
    scopes = _TREES.get(pool.known)
    if scopes is None:
        return NO_TREE
    shared = choice.pod.shares_gpus
    if shared and wanted.count > 1:
        return SHARED
    required = LEVELS[wanted.hint.required_topology_scope]
    found = _Search(pool, wanted, shared, required, choice.scoring).within(scopes)
    if found is None:
        return TOO_FEW_THERE if required else TOO_FEW
    return tuple(Granted(minor, wanted.per_device) for minor in found.minors)
