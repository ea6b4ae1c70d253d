"""Tells the cluster state of pods without a node as soon as a plug-in wants to know them."""

import collections
from typing import Final

from extender.state import deltas, ledger, records
from kube.informers import store

_SLICE: Final = 200
"""How many pods are passed on in one go: calls must not wait for very many."""


class UnscheduledFeed:
    """Begins and ends to tell, in slices where there are many pods already."""

    def __init__(self, books: ledger.Ledger, pods: store.Store[records.PodRecord]) -> None:
        self._books = books
        self._pods = pods
        self._left: collections.deque[str] = collections.deque()

    def catch_up(self, kinds: frozenset[str]) -> bool:
        """Tell the next pods if plug-ins want these kinds; whether all have been told."""
        told = self._books.unscheduled
        wanted = deltas.UNSCHEDULED_POD in kinds
        if wanted is not told.wanted:
            told.wanted = wanted
            self._left = collections.deque(self._pods.keys() if wanted else told.uids())
        for _ in range(min(_SLICE, len(self._left))):
            word = self._left.popleft()
            if wanted:
                self._add(word)
            else:
                told.remove(word)
        return not self._left

    def _add(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is not None and not pod.node:
            self._books.waits(pod)
