"""Bounded memory that tenants share: no group of keys takes the places of another. Pure.

Plain limits are first come, first served: one namespace with 5,000 hopeless pods takes everything.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Slots(Generic[T]):
    """Values by key in at most so many places, shared by group.

    While there is room, a group may take as many places as it likes. When there is none, a group
    with fewer places than another gets one of that other's.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._groups: collections.OrderedDict[str, collections.OrderedDict[str, T]] = (
            collections.OrderedDict()
        )
        self._group_of: dict[str, str] = {}

    def __len__(self) -> int:
        """How many places are taken."""
        return len(self._group_of)

    def __contains__(self, key: object) -> bool:
        return key in self._group_of

    def get(self, key: str) -> T | None:
        """Return the value of a key."""
        group = self._group_of.get(key)
        return None if group is None else self._groups[group][key]

    def replace(self, key: str, value: T) -> None:
        """Give a key that has a place another value."""
        self._groups[self._group_of[key]][key] = value

    def pop(self, key: str) -> T | None:
        """Give a place back."""
        group = self._group_of.pop(key, None)
        if group is None:
            return None
        value = self._groups[group].pop(key)
        if not self._groups[group]:
            del self._groups[group]
        return value

    def offer(self, key: str, group: str, value: T) -> tuple[bool, str]:
        """Take a place for a new key; return whether there is one, and whose place it was.

        Who came first stays: the last comer of the largest group leaves, or the new key does.
        """
        lost = ""
        if len(self) >= self._most:
            lost = self._last_of_largest(group)
            if not lost:
                return False, ""
            self.pop(lost)
        self._put(key, group, value)
        return True, lost

    def push(self, key: str, group: str, value: T) -> str:
        """Take a place, the latest in its group; return the key that lost its place.

        Who came last stays: the oldest of the largest group leaves, of its own where equal.
        """
        self.pop(key)
        if not self._most:
            return key
        self._put(key, group, value)
        if len(self) <= self._most:
            return ""
        own = len(self._groups[group])
        largest = max(self._groups, key=lambda name: len(self._groups[name]))
        if own == len(self._groups[largest]) > 1:
            largest = group
        elif largest == group:
            largest = next(name for name in self._groups if name != group)
        lost = next(iter(self._groups[largest]))
        self.pop(lost)
        return lost

    def served(self, group: str) -> None:
        """Note that a group had its turn: the others come first next time."""
        if group in self._groups:
            self._groups.move_to_end(group)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys that have a place now, a key of each group in turn, the oldest first."""
        return in_turn(self._groups)

    def mapping(self) -> Mapping[str, T]:
        """Return all values by key, in the order of turns."""
        return {key: self._groups[self._group_of[key]][key] for key in self}

    def _put(self, key: str, group: str, value: T) -> None:
        self._groups.setdefault(group, collections.OrderedDict())[key] = value
        self._group_of[key] = group

    def _last_of_largest(self, group: str) -> str:
        """Return who has to leave for a newcomer of a group; empty where none has to."""
        if not self._groups:
            return ""
        largest = max(self._groups, key=lambda name: len(self._groups[name]))
        if len(self._groups[largest]) <= len(self._groups.get(group, ())) + 1:
            return ""
        return next(reversed(self._groups[largest]))


def in_turn(groups: Mapping[str, Iterable[T]]) -> Iterator[T]:
    """Yield a value of each group in turn; what the groups hold now."""
    waiting = collections.deque(collections.deque(values) for values in groups.values())
    while waiting:
        values = waiting.popleft()
        if values:
            yield values.popleft()
            waiting.append(values)


def has_room(taken: Mapping[str, int], group: str, most: int) -> bool:
    """Whether a group may take one more of places that are shared evenly where they run short."""
    wanted = {**taken, group: taken.get(group, 0) + 1}
    left, share = most, 0
    amounts = sorted(wanted.values())
    for number, amount in enumerate(amounts):
        share = left // (len(amounts) - number)
        if amount > share:
            break
        share, left = amount, left - amount
    return wanted[group] <= share or sum(amounts) <= most
