"""Which nodes have GPUs with the labels that a pod selects, by digests of labels."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from api.koordinator import devices
from domain.devices import inventory, pod_devices
from domain.devices.allocation import candidates
from extender.framework import verdicts, views
from extender.plugins.device_share import columns
from extender.plugins.device_share.allocation import NAME

MOST: Final = 1 << 16
"""Answers that are remembered."""


class Selection:
    """Answers by the text of the hint and by the labels of GPUs; remembered to save work."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bool] = {}

    def serves(self, hint: str, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Tell which nodes have GPUs that a hint selects."""
        found: verdicts.Flags = self.each((hint,), view, rows)[0]
        return found

    def each(self, hints: Sequence[str], view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Tell by hint and node whether the node has GPUs that the hint selects."""
        found = np.ones((len(hints), rows.size), dtype=np.bool_)
        if not any(hints):
            return found
        digests, first, place = np.unique(
            view.figures[NAME][columns.LABELS, rows], return_index=True, return_inverse=True
        )
        known = [
            (digest, int(rows[at])) for digest, at in zip(digests.tolist(), first, strict=True)
        ]
        for number, hint in enumerate(hints):
            if hint:
                serving = [self._serves(hint, digest, view, row) for digest, row in known]
                found[number] = np.array(serving, dtype=np.bool_)[place]
        return found

    def _serves(self, hint: str, digest: int, view: views.View, row: int) -> bool:
        key = (hint, digest)
        if key not in self._known:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = _selected(hint, view.sparse(NAME, row))
        return self._known[key]


def _selected(hint: str, found: object | None) -> bool:
    if not isinstance(found, inventory.NodeDevices):
        return False
    selector = pod_devices.gpu_selector(hint)
    known = found.inventory.devices.get(devices.GPU, {}).values()
    return any(candidates.selected(selector, one) for one in known)
