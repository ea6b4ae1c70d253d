"""The files behind the roles of an edit: read, compared and written in the kernel's own words."""

import os

from agent import edits, files, layout
from domain import cpulists

_FILES = {
    edits.Role.CPUSET: layout.File.CPUSET,
    edits.Role.CPU_QUOTA: layout.File.CPU_QUOTA,
}
PERIOD_US = 100_000


class Knobs:
    """Access to the properties of groups on one host."""

    def __init__(self, arranged: layout.Layout) -> None:
        self._layout = arranged

    @property
    def inherits(self) -> bool:
        """Whether a new group is born with the cpus of the one above written into it."""
        return self._layout.version == 1

    def read(self, role: edits.Role, group: str) -> str:
        """Return the text of a property, without the newline."""
        data = files.read(self.path(role, group))
        try:
            return data.decode("ascii").strip()
        except UnicodeDecodeError as error:
            raise files.ReadingError(f"{self.path(role, group)} is no text") from error

    def write(self, role: edits.Role, group: str, text: str) -> None:
        """Write a property; an empty text needs a newline to reach the kernel at all."""
        files.write(self.path(role, group), text or "\n")

    def path(self, role: edits.Role, group: str) -> str:
        """Return where a property lies."""
        return self._layout.path(_FILES[role], group)

    def render(self, role: edits.Role, value: str) -> str:
        """Return the text that sets a value on this host."""
        if role is edits.Role.CPU_QUOTA and self._layout.version == 2:
            return f"{'max' if value == '-1' else value} {PERIOD_US}"
        return value

    def same(self, role: edits.Role, one: str, other: str) -> bool:
        """Tell whether two texts mean the same."""
        if one == other:
            return True
        if role is edits.Role.CPUSET:
            left, right = cpus(one), cpus(other)
            return left is not None and left == right
        return _quota(one) == _quota(other)

    def wider(self, role: edits.Role, current: str, target: str) -> str | None:
        """Return what to write before the groups below change; None where nothing needs to be.

        A group may only have what the one above has: what grows is written from the top, what
        shrinks from below, and cpus that move do both.
        """
        if role is edits.Role.CPU_QUOTA:
            return None
        now, then = cpus(current), cpus(target)
        if not now or not then or then <= now:
            return None
        return cpulists.text(now | then)

    def children(self, role: edits.Role, group: str) -> list[str]:
        """List the groups directly below one; none where it is gone."""
        try:
            with os.scandir(self._layout.folder(_FILES[role], group)) as entries:
                return [f"{group}/{e.name}" for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:
            return []


def cpus(text: str) -> frozenset[int] | None:
    """Read a cpu list that stands in a file; None where it is none."""
    try:
        return cpulists.parse(text)
    except cpulists.CpuListError:
        return None


def _quota(text: str) -> tuple[str, str]:
    words = text.split()
    first = words[0] if words else ""
    return ("max" if first == "-1" else first, words[1] if len(words) > 1 else str(PERIOD_US))
