"""The files behind the roles of an edit: read, compared and written in the kernel's own words."""

import os

from agent import edits, files, layout, roles
from domain import cpulists


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
        return self._layout.path(roles.FILES[role], group)

    def render(self, role: edits.Role, value: str) -> str:
        """Return the text that sets a value on this host."""
        return roles.render(role, value, self._layout.version)

    def same(self, role: edits.Role, one: str, other: str) -> bool:
        """Tell whether two texts mean the same."""
        return roles.same(role, one, other)

    def wider(self, role: edits.Role, current: str, target: str) -> str | None:
        """Return what to write before the groups below change; None where nothing needs to be.

        A group may only have what the one above has: what grows is written from the top, what
        shrinks from below, and cpus that move do both.
        """
        if role in roles.GROWING:
            before, after = roles.amount(role, current), roles.amount(role, target)
            grows = before is not None and after is not None and after > before
            return target if grows else None
        if role is not edits.Role.CPUSET:
            return None
        now, then = roles.cpus(current), roles.cpus(target)
        if not now or not then or then <= now:
            return None
        return cpulists.text(now | then)

    def children(self, role: edits.Role, group: str) -> list[str]:
        """List the groups directly below one; none where it is gone."""
        try:
            with os.scandir(self._layout.folder(roles.FILES[role], group)) as entries:
                return [f"{group}/{e.name}" for e in entries if e.is_dir(follow_symlinks=False)]
        except OSError:
            return []
