"""Properties of every process in a group: scheduling policy, out-of-memory score, cookie, cache.

What a process had before cannot be told for all of them in one word: a group whose processes
differ reads as `mixed`, and a group that was mixed before us is not put back but reported.
Reading and writing others' processes needs the host's process ids and, for most of it, a
capability; without them the kernel refuses and the refusal is reported.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from agent import edits, files, layout
from agent.apply import places

MIXED = "mixed"
MOST_GIVERS = 8
IDLE, OTHER = "idle", "other"
_PR_SCHED_CORE: Final = 62
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)
_THREAD, _THREAD_GROUP = 0, 1
_GONE = {errno.ESRCH, errno.ENOENT}


class Kernel(Protocol):
    """The calls that concern a process; each raises OSError."""

    def policy(self, pid: int) -> int:
        """Return the scheduling policy."""

    def set_policy(self, pid: int, policy: int) -> None:
        """Set a policy that takes no priority."""

    def cookie(self, pid: int) -> int:
        """Return the core scheduling cookie, 0 for none."""

    def new_cookie(self, pid: int) -> None:
        """Give a thread group a cookie that nobody else has."""

    def share_cookie(self, source: int, target: int) -> None:
        """Give a thread group the cookie of another process; 0 is this process."""


class Host:
    """The kernel of this host."""

    def __init__(self) -> None:
        import ctypes  # noqa: PLC0415 - an agent counts its memory until somebody asks

        self._ctypes = ctypes
        self._libc = ctypes.CDLL(None, use_errno=True)

    def policy(self, pid: int) -> int:
        """Return the scheduling policy."""
        return os.sched_getscheduler(pid)

    def set_policy(self, pid: int, policy: int) -> None:
        """Set a policy that takes no priority."""
        os.sched_setscheduler(pid, policy, os.sched_param(0))

    def cookie(self, pid: int) -> int:
        """Return the core scheduling cookie, 0 for none."""
        found = self._ctypes.c_ulonglong()
        self._prctl(_GET, pid, _THREAD, self._ctypes.byref(found))
        return found.value

    def new_cookie(self, pid: int) -> None:
        """Give a thread group a cookie that nobody else has."""
        self._prctl(_CREATE, pid, _THREAD_GROUP)

    def share_cookie(self, source: int, target: int) -> None:
        """Give a thread group the cookie of another process; 0 is this process."""
        if not source:
            self._prctl(_SHARE_TO, target, _THREAD_GROUP)
            return
        failures: list[OSError] = []

        def hand_on() -> None:
            try:
                self._prctl(_SHARE_FROM, source, _THREAD)
                self._prctl(_SHARE_TO, target, _THREAD_GROUP)
            except OSError as error:
                failures.append(error)

        # The borrowed cookie belongs to a thread and ends with it.
        thread = threading.Thread(target=hand_on)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    def _prctl(self, command: int, pid: int, scope: int, address: object = 0) -> None:
        if self._libc.prctl(_PR_SCHED_CORE, command, pid, scope, address) != 0:
            code = self._ctypes.get_errno()
            raise OSError(code, os.strerror(code), f"process {pid}")


class _Processes:
    """The processes of groups of one host."""

    def __init__(self, arranged: layout.Layout, kernel: Kernel) -> None:
        self._layout = arranged
        self.kernel = kernel

    def pids(self, group: str) -> list[int]:
        """Return the processes of a group; raises ReadingError."""
        path = self._layout.path(layout.File.PROCESSES, group)
        try:
            return [int(word) for word in files.read(path, limit=1 << 22).split()]
        except ValueError as error:
            raise files.ReadingError(f"{path} holds something other than numbers") from error

    def threads(self, group: str) -> list[int]:
        """Return the threads of all processes of a group; raises ReadingError."""
        found: list[int] = []
        for pid in self.pids(group):
            try:
                found += map(int, os.listdir(f"{self._layout.proc}/{pid}/task"))  # noqa: PTH208 - names are all that is wanted of thousands of threads
            except OSError:
                # It ended, which its own call will tell, or its threads cannot be seen.
                found.append(pid)
        return found

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
        return found.pop() if len(found) == 1 else MIXED

    def to_each(
        self,
        group: str,
        act: Callable[[int], None],
        members: Callable[[str], list[int]] | None = None,
    ) -> None:
        """Do something to every process; one that ends meanwhile is no failure."""
        try:
            pids = (members or self.pids)(group)
        except files.VanishedError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from error
        except files.ReadingError as error:
            raise OSError(errno.EIO, str(error)) from error
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                act(pid)


class Policy:
    """Whether the threads of processes run only when nobody else in their group wants the cpu."""

    def __init__(self, arranged: layout.Layout, kernel: Kernel) -> None:
        self._processes = _Processes(arranged, kernel)

    def read(self, group: str) -> str:
        """Return `idle`, `other` or `mixed`; policies that somebody chose do not count."""
        words = {os.SCHED_IDLE: IDLE, os.SCHED_OTHER: OTHER}
        return self._processes.of_each(
            group, lambda pid: words.get(self._policy(pid)), self._processes.threads
        )

    def write(self, group: str, text: str) -> None:
        """Change threads between the ordinary and the idle policy; others keep theirs."""
        before, after = os.SCHED_OTHER, os.SCHED_IDLE
        if text != IDLE:
            before, after = after, before

        def change(pid: int) -> None:
            if self._policy(pid) == before:
                self._processes.kernel.set_policy(pid, after)

        # A policy belongs to a thread: that of a process is only the one of its first.
        self._processes.to_each(group, change, self._processes.threads)

    def _policy(self, pid: int) -> int:
        return self._processes.kernel.policy(pid)


class OomScore:
    """Who is killed first when memory runs out."""

    def __init__(self, arranged: layout.Layout, kernel: Kernel) -> None:
        self._processes = _Processes(arranged, kernel)
        self._proc = arranged.proc

    def read(self, group: str) -> str:
        """Return the score of all processes, or `mixed`."""

        def look(pid: int) -> str:
            try:
                return files.read(self._path(pid)).decode("ascii", "replace").strip()
            except files.VanishedError as error:
                raise ProcessLookupError(errno.ESRCH, str(error)) from error

        return self._processes.of_each(group, look)

    def write(self, group: str, text: str) -> None:
        """Give every process the score."""
        self._processes.to_each(group, lambda pid: files.write(self._path(pid), text))

    def _path(self, pid: int) -> str:
        return f"{self._proc}/{pid}/oom_score_adj"


class Resctrl:
    """The resctrl group that the threads of a group of processes belong to."""

    def __init__(self, arranged: layout.Layout, kernel: Kernel) -> None:
        self._processes = _Processes(arranged, kernel)
        self._layout = arranged

    def read(self, group: str) -> str:
        """Return the one resctrl group, empty for the root group, or `mixed`."""
        wanted = self._threads(group)
        if not wanted:
            raise files.VanishedError(f"{group} has no process")
        left = set(wanted)
        found = set()
        for name in self._groups():
            members = self._members(name) & left
            if members:
                found.add(name)
                left -= members
        if left:
            found.add("")
        return found.pop() if len(found) == 1 else MIXED

    def write(self, group: str, text: str) -> None:
        """Move every thread; the kernel takes one id per write."""
        try:
            threads = self._threads(group) - (self._members(text) if text else set())
        except files.VanishedError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from error
        except files.ReadingError as error:
            raise OSError(errno.EIO, str(error)) from error
        path = self._tasks(text)
        for thread in sorted(threads):
            with contextlib.suppress(ProcessLookupError):
                files.write(path, f"{thread}\n")

    def _threads(self, group: str) -> set[int]:
        found: set[int] = set()
        for pid in self._processes.pids(group):
            with contextlib.suppress(OSError):
                found.update(int(name) for name in os.listdir(f"{self._layout.proc}/{pid}/task"))  # noqa: PTH208 - names are all that is wanted of thousands of threads
        return found

    def _members(self, name: str) -> set[int]:
        data = files.read(self._tasks(name), limit=1 << 22)
        return {int(word) for word in data.split()}

    def _groups(self) -> Iterable[str]:
        root = self._tasks("").rpartition("/")[0]
        reserved = {"info", "mon_data", "mon_groups"}
        try:
            with os.scandir(root) as found:
                return [
                    entry.name for entry in found if entry.is_dir() and entry.name not in reserved
                ]
        except OSError as error:
            raise files.VanishedError(f"{root}: {error}") from error

    def _tasks(self, name: str) -> str:
        return self._layout.path(layout.File.RESCTRL_SCHEMATA, name).rpartition("/")[0] + "/tasks"


class Cookies:
    """Which processes may run side by side on the threads of one core.

    A name stands for a cookie as long as a process that has it lives.
    """

    def __init__(self, arranged: layout.Layout, kernel: Kernel) -> None:
        self._processes = _Processes(arranged, kernel)
        self._named: dict[str, int] = {}
        self._givers: dict[str, tuple[int, ...]] = {}

    def read(self, group: str) -> str:
        """Return the name of the cookie, empty for none; one that we did not give is `mixed`."""
        names = {cookie: name for name, cookie in self._named.items()}

        def look(pid: int) -> str:
            cookie = self._processes.kernel.cookie(pid)
            return names.get(cookie, MIXED) if cookie else ""

        return self._processes.of_each(group, look)

    def write(self, group: str, text: str) -> None:
        """Give every process the cookie of that name, or take it away."""
        kernel = self._processes.kernel
        if not text:
            self._processes.to_each(group, lambda pid: kernel.share_cookie(0, pid))
            return
        giver, members = self._living(text), []

        def give(pid: int) -> None:
            nonlocal giver
            if not giver:
                kernel.new_cookie(pid)
                giver, self._named[text] = pid, kernel.cookie(pid)
            elif kernel.cookie(pid) != self._named[text]:
                kernel.share_cookie(giver, pid)
            members.append(pid)

        self._processes.to_each(group, give)
        self._givers[text] = (*members, *self._givers.get(text, ()))[:MOST_GIVERS]

    def _living(self, name: str) -> int:
        """Return a process that still has the cookie of a name, 0 for none."""
        for pid in self._givers.get(name, ()):
            with contextlib.suppress(OSError):
                if self._processes.kernel.cookie(pid) == self._named[name]:
                    return pid
        return 0


_KINDS: Final[Mapping[edits.Role, Callable[[layout.Layout, Kernel], places.Place]]] = {
    edits.Role.PROCESS_POLICY: Policy,
    edits.Role.PROCESS_OOM_SCORE: OomScore,
    edits.Role.PROCESS_RESCTRL: Resctrl,
    edits.Role.PROCESS_COOKIE: Cookies,
}


def place(arranged: layout.Layout, role: edits.Role, kernel: Kernel) -> places.Place:
    """Return the place of a role of processes."""
    return _KINDS[role](arranged, kernel)
