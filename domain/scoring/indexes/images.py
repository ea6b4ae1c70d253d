"""Images on nodes: how large, and on how many nodes.

kube-scheduler keeps one size per image, of whichever node it saw first, and since 1.35 it sees them
in no order. So a size is known only where nodes agree on it.
"""

import array
import collections
import dataclasses
from collections.abc import Iterable

import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import objects
from domain.scoring.indexes import remembered


class _State:
    """One image name and the nodes that have it; rows are the bits of one number."""

    __slots__ = ("name", "rows", "shown", "sizes")

    def __init__(self, name: str) -> None:
        self.name, self.rows = name, 0
        self.sizes: dict[int, int] = {}
        """Number of nodes by the size that they report."""
        self.shown: node_columns.Integers | None = None
        """The rows as an array, until they change."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Held:
    """The image names of one node, shared between nodes, and the sizes that it reports."""

    names: tuple[str, ...] = ()
    sizes: "array.array[int]" = dataclasses.field(default_factory=lambda: array.array("q"))


class ImageIndex:
    """Which nodes have an image and what sizes they report."""

    def __init__(self) -> None:
        self._states: dict[str, _State] = {}
        self._held: dict[int, _Held] = {}

    def set(self, row: int, images: Iterable[objects.Image]) -> None:
        """Note the images of a node."""
        sizes: dict[str, int] = {}
        for image in images:
            for name in image.names:
                sizes.setdefault(name, image.size_bytes)
        held = self._held.get(row, _Held())
        if len(sizes) == len(held.names) and all(
            sizes.get(name) == size for name, size in zip(held.names, held.sizes, strict=True)
        ):
            return
        self._dropped(row, held)
        if sizes:
            names = tuple(self._added(row, name, size) for name, size in sizes.items())
            self._held[row] = _Held(names, array.array("q", sizes.values()))

    def scaled(self, images: Iterable[str], nodes: int, size: int) -> node_columns.Integers | None:
        """Return the sizes of a pod's images on each node, each times the share of nodes with it.

        None where no node has any of them.
        """
        known = [*filter(self._states.__contains__, images)]
        if not known:
            return None
        total = np.zeros(size, dtype=np.int64)
        # A pod may have one image thousands of times, and each look goes through all nodes.
        for name, times in collections.Counter(known).items():
            state = self._states[name]
            share = state.rows.bit_count() / nodes
            total[_rows(state)] += times * int(float(next(iter(state.sizes))) * share)
        return remembered.read_only(total, size)

    def reported(self, images: Iterable[str]) -> bool:
        """Tell whether some node has one of the images."""
        return any(name in self._states for name in images)

    def agree(self, images: Iterable[str]) -> bool:
        """Tell whether nodes agree on the size of each image."""
        for name in images:
            state = self._states.get(name)
            if state is not None and len(state.sizes) != 1:
                return False
        return True

    def _added(self, row: int, name: str, size: int) -> str:
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = _State(name)
        state.rows |= 1 << row
        state.sizes[size] = state.sizes.get(size, 0) + 1
        state.shown = None
        return state.name

    def _dropped(self, row: int, held: _Held) -> None:
        for name, size in zip(held.names, held.sizes, strict=True):
            state = self._states[name]
            state.rows ^= 1 << row
            state.shown = None
            state.sizes[size] -= 1
            if not state.sizes[size]:
                del state.sizes[size]
            if not state.rows:
                del self._states[name]
        self._held.pop(row, None)


def _rows(state: _State) -> node_columns.Integers:
    if state.shown is None:
        length = (state.rows.bit_length() + 7) // 8
        bits = np.frombuffer(state.rows.to_bytes(length, "little"), dtype=np.uint8)
        state.shown = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
    return state.shown
