"""What the pods of each node request, summed up once for all that compare nodes. Pure.

Pods of one template share one mapping of requests, so that those of 150,000 pods are read from some
thousand of them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.model import picture, podinfo

_MOST_KEYS: Final = 256
"""Resources whose zeros are returned as well: a node may offer thousands that no pod requests."""
_MOST: Final = 1 << 62
"""Largest sum."""

Requested = Mapping[str, podinfo.Amounts]
"""By name of the node."""


def requested(seen: picture.Picture) -> Requested:
    """Return what is requested of each node, of all resources that some node offers.

    Pods that have ended request nothing, and a node without pods has no entry.
    """
    found: Requested | None = seen.memo.get(__name__)
    if found is None:
        found = seen.memo[__name__] = _summed(seen)
    return found


def _summed(seen: picture.Picture) -> Requested:
    keys = sorted({key for node in seen.nodes.values() for key in node.allocatable})
    if len(keys) > _MOST_KEYS:
        return _one_by_one(seen, frozenset(keys))
    at: dict[int, int] = {}
    kinds: list[podinfo.Amounts] = []
    rows: list[int] = []
    starts: list[int] = []
    names: list[str] = []
    for name, pods in seen.on_node.items():
        before = len(rows)
        for pod in pods:
            if pod.phase in podinfo.ENDED:
                continue
            row = at.get(id(pod.requests))
            if row is None:
                row = at[id(pod.requests)] = len(kinds)
                kinds.append(pod.requests)
            rows.append(row)
        if len(rows) > before:
            names.append(name)
            starts.append(before)
    if not names or not keys:
        return {}
    amounts = _bounded(kinds, keys, int(np.diff([*starts, len(rows)]).max()))
    sums = np.add.reduceat(amounts[rows], starts, axis=0).tolist()
    return {name: dict(zip(keys, row, strict=True)) for name, row in zip(names, sums, strict=True)}


def _one_by_one(seen: picture.Picture, keys: frozenset[str]) -> Requested:
    """Return the sums without a number for each pod of resources that it does not request."""
    found = {}
    for name, pods in seen.on_node.items():
        running = [pod for pod in pods if pod.phase not in podinfo.ENDED]
        sums: dict[str, int] = {}
        for pod in running:
            for key, amount in pod.requests.items():
                if key in keys:
                    sums[key] = sums.get(key, 0) + amount
        if running:
            found[name] = {key: max(-_MOST, min(amount, _MOST)) for key, amount in sums.items()}
    return found


def _bounded(
    kinds: Sequence[podinfo.Amounts], keys: Sequence[str], pods: int
) -> npt.NDArray[np.int64]:
    """Return a row for each kind of pod; so many of them still fit into a sum.

    Amounts that no node has are written by people; they must not end the round for all nodes.
    """
    most = _MOST // pods
    listed = [[max(-most, min(one.get(key, 0), most)) for key in keys] for one in kinds]
    return np.array(listed, dtype=np.int64).reshape(len(kinds), len(keys))
