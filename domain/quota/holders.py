"""Pods that hold nodes, pods that wait for one, and the nodes, as reclaim sees them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from api.kubernetes import core
from domain.quota import model, placement


class Tree(Protocol):
    """What is read of the trees of quotas; `domain.quota.tree.forest.Forest` is one."""

    def path(self, name: str) -> Sequence[str]:
        """Return a quota and those above it; empty outside of trees."""

    def figures(self, name: str) -> model.Figures | None:
        """Return the figures of a quota."""

    def shortage(
        self, name: str, requests: model.Pairs, *, preemptible: bool
    ) -> model.Shortage | None:
        """Return why a pod has to wait."""


class Holder(msgspec.Struct, frozen=True, gc=False):
    """A pod that has a node."""

    uid: str
    key: str
    quota: str
    requests: model.Pairs
    node: str
    priority: int = 0
    started_at: float = 0.0
    preemptible: bool = True
    leaving: bool = False

    @property
    def order(self) -> tuple[int, float, str]:
        """Return its order as a victim: lowest priority first, of equal ones the youngest."""
        return self.priority, -self.started_at, self.uid


class Waiter(msgspec.Struct, frozen=True, gc=False):
    """A pod that was let in and for which the scheduler finds no node."""

    uid: str
    key: str
    quota: str
    requests: model.Pairs
    preemptible: bool = True
    requires: placement.Requirements = placement.NONE


class Site(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    name: str
    labels: Mapping[str, str]
    allocatable: model.Pairs
    taints: tuple[core.Taint, ...] = ()
    schedulable: bool = True
    free: Mapping[str, int] | None = None
    """What `free` returns of it, where the caller knows that already."""


def free(allocatable: model.Pairs, held: Iterable[Holder]) -> dict[str, int]:
    """Return what is free on a node once pods have left that are being deleted."""
    left = {model.PODS: 1 << 30, **dict(allocatable)}
    for holder in held:
        if not holder.leaving:
            add(left, holder.requests, -1)
    return left


def add(used: dict[str, int], requests: model.Pairs, times: int) -> None:
    """Add the requests of a pod, so many times, to amounts that are counted."""
    for name, amount in (*requests, (model.PODS, 1)):
        if name in used:
            used[name] += times * amount


def overdrawn(figures: model.Figures) -> tuple[str, ...]:
    """Return the resources of which a quota uses more than it may."""
    used = figures.used
    return tuple(name for name, most in figures.limit.items() if used.get(name, 0) > most)
