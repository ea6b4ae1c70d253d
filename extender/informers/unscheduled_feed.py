"""Feeds unscheduled pods into the cluster state as soon as a plug-in wants to know them."""

import collections
from typing import Final

from extender.state import ledger, records, unscheduled
from kube.informers import store

_SLICE: Final = 200
"""How many pods are passed on in one go: calls must not wait for very many."""


class UnscheduledFeed:
    """Begins and ends to tell, in slices where there are many pods already."""

    def __init__(self, books: ledger.Ledger, pods: store.Store[records.PodRecord]) -> None:
        self._books = books
        self._pods = pods
        self._left: collections.deque[str] = collections.deque()
        """Keys of pods that may have to be told."""
        self._unwanted: collections.deque[str] = collections.deque()
        """Uids of pods that were told and may have to be taken back."""

    def catch_up(self, kinds: frozenset[str]) -> bool:
        """Tell the next pods if plug-ins want these kinds; whether all have been told."""
        told = self._books.unscheduled
        wanted = kinds & unscheduled.KINDS
        if wanted != told.wanted:
            told.wanted = wanted
            self._unwanted = collections.deque(told.uids())
            self._left = collections.deque(self._pods.keys() if wanted else ())
        for _ in range(min(_SLICE, len(self._unwanted))):
            uid = self._unwanted.popleft()
            known = told.known(uid)
            if known is not None and not told.wants(known):
                told.remove(uid)
        for _ in range(min(_SLICE, len(self._left))):
            self._add(self._left.popleft())
        return not self._left and not self._unwanted

    def _add(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is not None and not pod.node:
            self._books.waits(pod)
