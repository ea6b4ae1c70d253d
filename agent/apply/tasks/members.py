"""Which processes and threads a cgroup has, and what is done to all of them."""

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Final

from agent.apply.properties import partial_properties
from agent.apply.tasks import kernel as kernels
from agent.host import files
from agent.model import cgroup_layout

_LONGEST: Final = 1 << 22
_GONE: Final = frozenset({errno.ESRCH, errno.ENOENT})


class Members:
    """The processes of groups of one host."""

    def __init__(self, arranged: cgroup_layout.Layout, kernel: kernels.Kernel) -> None:
        self._layout = arranged
        self.kernel = kernel

    def pids(self, group: str) -> list[int]:
        """Return the processes of a group; raises ReadingError."""
        path = self._layout.path(cgroup_layout.File.PROCESSES, group)
        try:
            found = [int(word) for word in files.read(path, limit=_LONGEST).split()]
        except ValueError as error:
            raise files.ReadingError(f"{path} holds something other than numbers") from error
        if 0 in found:
            raise files.ReadingError(f"{path}: {kernels.HIDDEN}")
        return found

    def threads(self, group: str) -> list[int]:
        """Return the threads of all processes of a group; raises ReadingError."""
        return [thread for pid in self.pids(group) for thread in self.threads_of(pid) or [pid]]

    def threads_of(self, pid: int) -> list[int]:
        """Return the threads of a process; none where it ended or they cannot be seen."""
        try:
            # The kernel lists them in this order; the folder of a test need not.
            return sorted(map(int, os.listdir(f"{self._layout.proc}/{pid}/task")))  # noqa: PTH208 - names are all that is wanted of thousands of threads
        except OSError:
            return []

    def of_each(
        self,
        group: str,
        look: Callable[[int], str | None],
        members: Callable[[str], list[int]] | None = None,
    ) -> str:
        """Return what all processes of a group have, or that they differ; None does not count."""
        found = set()
        for pid in (members or self.pids)(group):
            try:
                if (seen := look(pid)) is not None:
                    found.add(seen)
            except OSError as error:
                if error.errno not in _GONE:
                    raise files.ReadingError(f"process {pid} of {group}: {error}") from error
        if not found:
            raise files.VanishedError(f"{group} has no process that it concerns")
        return found.pop() if len(found) == 1 else partial_properties.MIXED

    def to_each(self, group: str, act: Callable[[int], None]) -> None:
        """Do something to every process; one that ends meanwhile is no failure."""
        try:
            pids = self.pids(group)
        except files.VanishedError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from error
        except files.ReadingError as error:
            raise OSError(errno.EIO, str(error)) from error
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                act(pid)
