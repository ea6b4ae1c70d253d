"""What was chosen for pods that are alike on nodes that are alike, remembered to save work.

Nodes are told apart by the digest of all that an allocation depends on. What is remembered is
compared with what is free before it is given again, and devices are named anew for every node.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from domain.devices import inventory
from domain.devices.allocation import candidates
from extender.framework import views
from extender.plugins.device_share import columns
from extender.plugins.device_share.allocation import NAME, Wanted

MOST: Final = 1024
"""Choices that are remembered."""


class Key(NamedTuple):
    """What a choice depends on."""

    prepared: Wanted
    mask: int
    """The NUMA nodes from which devices may come."""
    alike: int
    """Digest of the node."""


class Chosen(NamedTuple):
    """What was chosen, by type of device."""

    taken: inventory.Allocation
    """What was asked of each device."""
    recorded: inventory.Allocation
    """What the pod is recorded to hold of it, without names of devices."""


def key(prepared: Wanted, view: views.View, row: int, mask: int) -> Key | None:
    """Return what a choice depends on; None where digests do not say it.

    A node may be shown as it is not: without what a Reservation holds, or after a what-if.
    """
    if view.lent is not None or view.revisions is None:
        return None
    return Key(prepared, mask, view.figures[NAME].item(columns.ALIKE, row))


_Given = tuple[Key, tuple[tuple[object, ...], ...]]
"""What a choice depends on, and the devices that were given by type."""


class Choices:
    """The last choices, and what was said of each."""

    def __init__(self) -> None:
        self._chosen: collections.OrderedDict[Key, Chosen] = collections.OrderedDict()
        self._told: collections.OrderedDict[_Given, Mapping[str, str]] = collections.OrderedDict()

    def get(self, known: Key, node: inventory.NodeDevices) -> inventory.Allocation | None:
        """Return what a pod is given on a node, None where that is to be chosen."""
        found = self._chosen.get(known)
        if found is None or not _is_free(found.taken, node):
            return None
        self._chosen.move_to_end(known)
        return {
            kind: tuple([_named(one, node.inventory.devices[kind]) for one in granted])
            for kind, granted in found.recorded.items()
        }

    def put(self, known: Key, taken: inventory.Allocation, recorded: inventory.Allocation) -> None:
        """Remember a choice; virtual functions are chosen every time."""
        if any(one.functions for granted in taken.values() for one in granted):
            return
        self._chosen[known] = Chosen(taken, recorded)
        if len(self._chosen) > MOST:
            self._chosen.popitem(last=False)

    def told(
        self,
        known: Key | None,
        given: inventory.Allocation,
        tell: Callable[[], Mapping[str, str]],
    ) -> Mapping[str, str]:
        """Return the devices that were given, and what `tell` says of the others."""
        if known is None:
            return {**_minors(given), **tell()}
        key = (
            known,
            tuple([(kind, *[one.minor for one in granted]) for kind, granted in given.items()]),
        )
        found = self._told.get(key)
        if found is None:
            found = self._told[key] = {**_minors(given), **tell()}
            if len(self._told) > MOST:
                self._told.popitem(last=False)
        self._told.move_to_end(key)
        return found


def _minors(given: inventory.Allocation) -> dict[str, str]:
    return {kind: ",".join([str(one.minor) for one in found]) for kind, found in given.items()}


def _is_free(taken: inventory.Allocation, node: inventory.NodeDevices) -> bool:
    for kind, granted in taken.items():
        free = node.free.get(kind, {})
        for one in granted:
            left = free.get(one.minor)
            if not left or not any(left.values()) or not candidates.fits(one.amounts, left):
                return False
    return True


def _named(one: inventory.Granted, known: inventory.ByMinor) -> inventory.Granted:
    """Return what is held of a device with the name of the device of this node."""
    return inventory.Granted(one.minor, one.amounts, (), one.template, known[one.minor].id)
