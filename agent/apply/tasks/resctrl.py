"""The resctrl group that the threads of a cgroup belong to."""

import contextlib
import errno
import os
from typing import Final

from agent.apply.properties import partial_properties
from agent.apply.tasks import kernel as kernels
from agent.apply.tasks import members
from agent.host import files
from agent.model import cgroup_layout

_LONGEST: Final = 1 << 22
_RESERVED: Final = frozenset({"info", "mon_data", "mon_groups"})


class Resctrl:
    """Who is in which resctrl group, read once however many cgroups ask.

    So it is made anew for every round of edits.
    """

    def __init__(self, arranged: cgroup_layout.Layout, kernel: kernels.Kernel) -> None:
        self._members = members.Members(arranged, kernel)
        self._layout = arranged
        self._groups: dict[int, str] | None = None

    def read(self, group: str) -> str:
        """Return the one resctrl group, empty for the root group, or `mixed`."""
        pids = self._members.pids(group)
        threads = [thread for pid in pids for thread in self._members.threads_of(pid)]
        if not threads:
            raise files.VanishedError(f"{group} has no process")
        known = self._known()
        found = {known.get(thread, "") for thread in threads}
        return found.pop() if len(found) == 1 else partial_properties.MIXED

    def write(self, group: str, text: str) -> None:
        """Move every thread; the kernel takes one id per write."""
        try:
            known = self._known()
        except files.VanishedError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from error
        except files.ReadingError as error:
            raise OSError(errno.EIO, str(error)) from error
        path = self._tasks(text)

        def move(threads: list[int]) -> None:
            for thread in threads:
                with contextlib.suppress(ProcessLookupError):
                    files.write(path, f"{thread}\n")
                    known[thread] = text

        def move_member(pid: int) -> None:
            others = [one for one in self._members.threads_of(pid) if known.get(one, "") != text]
            if others:
                self._members.kernel.while_in(group, pid, lambda: move(others))

        self._members.to_each(group, move_member)

    def _known(self) -> dict[int, str]:
        """Return the group of every thread that is in one other than the root group."""
        if self._groups is None:
            self._groups = {
                int(word): name
                for name in self._names()
                for word in files.read(self._tasks(name), limit=_LONGEST).split()
            }
        return self._groups

    def _names(self) -> list[str]:
        root = self._tasks("").rpartition("/")[0]
        try:
            with os.scandir(root) as found:
                return [one.name for one in found if one.is_dir() and one.name not in _RESERVED]
        except OSError as error:
            raise files.VanishedError(f"{root}: {error}") from error

    def _tasks(self, name: str) -> str:
        return (
            self._layout.path(cgroup_layout.File.RESCTRL_SCHEMATA, name).rpartition("/")[0]
            + "/tasks"
        )
