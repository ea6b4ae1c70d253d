"""Which nodes have GPUs with the labels that a pod selects, by digests of labels."""

from typing import Final

import numpy as np

from api.koordinator import devices
from domain.devices import candidates, inventory, pod_devices
from extender.framework import verdicts, views
from extender.plugins.device_share import tracker
from extender.plugins.device_share.allocation import NAME

MOST: Final = 1 << 16
"""Answers that are remembered."""


class Selection:
    """Answers by the text of the hint and by the labels of GPUs; remembered to save work."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bool] = {}

    def serves(self, hint: str, view: views.View, rows: verdicts.Rows) -> verdicts.Flags:
        """Tell which nodes have GPUs that a hint selects."""
        if not hint:
            return np.ones(rows.size, dtype=np.bool_)
        digests, first, place = np.unique(
            view.figures[NAME][tracker.LABELS, rows], return_index=True, return_inverse=True
        )
        found = np.array(
            [
                self._serves(hint, digest, view, int(rows[at]))
                for digest, at in zip(digests.tolist(), first.tolist(), strict=True)
            ],
            dtype=np.bool_,
        )
        return found[place]

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
