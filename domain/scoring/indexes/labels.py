"""Names and labels of nodes: preferred and required node affinity, and values of one label."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from domain.scoring import columns as node_columns
from domain.scoring import terms
from domain.scoring.indexes import remembered

_MOST: Final = 256


class LabelIndex:
    """What terms and labels say of each node."""

    def __init__(self) -> None:
        self._nodes: dict[int, tuple[str, Mapping[str, str]]] = {}
        self._numbers: dict[str, dict[str, int]] = {}
        self._weights = remembered.Remembered[terms.Preferences](self._weight, self._rows, _MOST)
        self._matches = remembered.Remembered[terms.NodeRequirements](
            self._match, self._rows, _MOST, np.bool_
        )
        self._values = remembered.Remembered[str](self._number, self._rows, _MOST)
        self._presence = remembered.Remembered[str](self._has, self._rows, _MOST, np.bool_)

    def set(self, row: int, name: str, labels: Mapping[str, str]) -> None:
        """Note the name and labels of a node."""
        if self._nodes.get(row) != (name, labels):
            self._nodes[row] = (name, labels)
            self._changed(row)

    def remove(self, row: int) -> None:
        """Forget a node."""
        if self._nodes.pop(row, None) is not None:
            self._changed(row)

    def weights(self, preferences: terms.Preferences, size: int) -> node_columns.Integers:
        """Return the sum of the weights of the terms that each node matches."""
        return self._weights.get(preferences, size)

    def matching(self, requirements: terms.NodeRequirements, size: int) -> node_columns.Flags:
        """Tell of each node whether it satisfies what a pod requires."""
        return self._matches.get(requirements, size)

    def values(self, key: str, size: int) -> node_columns.Integers:
        """Return a small number for each node's value of a label; none counts as an empty one.

        Rows without a node have 0, which is no value's number.
        """
        return self._values.get(key, size)

    def having(self, key: str, size: int) -> node_columns.Flags:
        """Tell of each node whether it has a label."""
        return self._presence.get(key, size)

    def _changed(self, row: int) -> None:
        for kept in (self._weights, self._matches, self._values, self._presence):
            kept.changed(row)

    def _rows(self) -> Iterator[int]:
        return iter(self._nodes)

    def _weight(self, preferences: terms.Preferences, row: int) -> int:
        node = self._nodes.get(row)
        if node is None:
            return 0
        return sum(weight for term, weight in preferences if term.matches(*node))

    def _match(self, requirements: terms.NodeRequirements, row: int) -> int:
        node = self._nodes.get(row)
        return node is not None and requirements.matches(*node)

    def _number(self, key: str, row: int) -> int:
        if row not in self._nodes:
            return 0
        numbers = self._numbers.setdefault(key, {})
        return numbers.setdefault(self._labels(row).get(key, ""), len(numbers) + 1)

    def _has(self, key: str, row: int) -> int:
        return key in self._labels(row)

    def _labels(self, row: int) -> Mapping[str, str]:
        return self._nodes[row][1] if row in self._nodes else {}
