"""Why a gang has no plan yet: what it lacks, and its place in the queue."""

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from domain.gangs import sentences, table
from extender.gangs import in_force, queue

_PATIENCE_SECONDS: Final = 2.0
"""How long a member says nothing while its gang gathers."""
_LINE_SECONDS: Final = 10.0
"""The same while its gang is in line, which it is behind a burst of others that are planned one
after the other: two writes for each member would make all of them wait for longer."""

Entries = tuple[table.Entry | None, ...]


class Sayings:
    """Chooses the sentences."""

    def __init__(self, parts: in_force.Parts) -> None:
        self._telling = parts.telling
        self._incomplete: dict[tuple[str, ...], Entries] = {}

    def say(self, group: table.Group, said: sentences.Said, patience: float = 0.0) -> None:
        """Have all members without a node say the same."""
        members = [member for entry in group.gangs for member in _pending(entry)]
        self._telling.say(members, said, patience=patience)

    def in_line(
        self,
        line: Sequence[queue.Waiting],
        groups: Mapping[str, table.Group],
        planned: Collection[str],
    ) -> Iterator[None]:
        """Tell groups that have not been planned yet where they stand in line, in steps."""
        for place, one in enumerate(line, start=1):
            if one.group not in planned:
                said = sentences.in_line(place, len(line))
                self.say(groups[one.group], said, _LINE_SECONDS)
            yield

    def incomplete(
        self, found: table.Table, complete: Collection[tuple[str, ...]]
    ) -> Iterator[None]:
        """Tell members what their gang lacks before it is planned; once for every change of it.

        In steps: of all gangs together that takes long.
        """
        seen: dict[tuple[str, ...], Entries] = {}
        for listed in found.groups:
            yield
            if listed in complete:
                continue
            entries = tuple(map(found.get, listed))
            if not any(entry.counts.pending for entry in entries if entry is not None):
                continue
            seen[listed] = entries
            if not same(self._incomplete.get(listed, ()), entries):
                self._say_missing(found.group(listed))
        self._incomplete = seen

    def _say_missing(self, group: table.Group | None) -> None:
        for entry in group.gangs if group is not None else ():
            assert group is not None
            said = sentences.gathering(group, entry.gang.id)
            if said is not None:
                self._telling.say(_pending(entry), said, patience=_PATIENCE_SECONDS)


def same(one: Entries, other: Entries) -> bool:
    """Whether nothing about some gangs has changed: entries are never changed in place."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _pending(entry: table.Entry) -> list[tuple[str, str]]:
    return [(one.uid, one.key) for one in entry.members if one.state <= table.State.NOMINATED]
