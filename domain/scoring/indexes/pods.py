"""Pods on nodes by their labels: how many of them a selector selects on each node."""

import collections
from collections.abc import Mapping
from typing import Final

import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import terms
from domain.scoring.indexes import remembered

_MOST: Final = 512
_Labels = tuple[tuple[str, str], ...]
_Question = tuple[str, terms.Selector]


class PodIndex:
    """Pods on nodes, assumed ones included; its owner leaves out terminating ones."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[_Labels, dict[int, int]]] = {}
        self._counts: collections.OrderedDict[_Question, node_columns.Integers] = (
            collections.OrderedDict()
        )
        self._selecting: dict[str, dict[_Labels, list[_Question]]] = {}
        """Which remembered selectors select pods with these labels."""

    def add(self, row: int, namespace: str, labels: Mapping[str, str]) -> None:
        """Count a pod."""
        key = tuple(sorted(labels.items()))
        rows = self._pods.setdefault(namespace, {}).setdefault(key, {})
        rows[row] = rows.get(row, 0) + 1
        self._count(row, namespace, key, 1)

    def remove(self, row: int, namespace: str, labels: Mapping[str, str]) -> None:
        """Count a pod no more; it was added with the same row and labels."""
        key = tuple(sorted(labels.items()))
        by_labels = self._pods[namespace]
        rows = by_labels[key]
        self._count(row, namespace, key, -1)
        rows[row] -= 1
        if not rows[row]:
            del rows[row]
        if not rows:
            del by_labels[key]
            self._selecting.get(namespace, {}).pop(key, None)
        if not by_labels:
            del self._pods[namespace]
            self._selecting.pop(namespace, None)

    def matching(
        self, namespace: str, selector: terms.Selector, size: int
    ) -> node_columns.Integers:
        """Return the number of pods on each node that a selector selects in a namespace."""
        question = (namespace, selector)
        counts = self._counts.get(question)
        if counts is None:
            if len(self._counts) >= _MOST:
                (old, _), _ = self._counts.popitem(last=False)
                self._selecting.pop(old, None)
            self._selecting.pop(namespace, None)
            counts = self._counts[question] = self._counted(namespace, selector, size)
        else:
            self._counts.move_to_end(question)
            if len(counts) < size:
                counts = self._counts[question] = remembered.grown(counts, size)
        return remembered.read_only(counts, size)

    def _counted(
        self, namespace: str, selector: terms.Selector, size: int
    ) -> node_columns.Integers:
        chosen = [
            rows
            for labels, rows in self._pods.get(namespace, {}).items()
            if selector.matches(dict(labels))
        ]
        last = max((max(rows) for rows in chosen), default=0)
        counts = np.zeros(max(size, last + 1), dtype=np.int64)
        for rows in chosen:
            for row, number in rows.items():
                counts[row] += number
        return counts

    def _count(self, row: int, namespace: str, key: _Labels, change: int) -> None:
        for question in self._selectors(namespace, key):
            counts = self._counts[question]
            if len(counts) <= row:
                counts = self._counts[question] = remembered.grown(counts, row + 1)
            counts[row] += change

    def _selectors(self, namespace: str, key: _Labels) -> list[_Question]:
        by_labels = self._selecting.setdefault(namespace, {})
        found = by_labels.get(key)
        if found is None:
            labels = dict(key)
            found = by_labels[key] = [
                question
                for question in self._counts
                if question[0] == namespace and question[1].matches(labels)
            ]
        return found
