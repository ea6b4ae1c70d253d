"""Calls of the kernel that concern one process, each held to the process that is meant."""

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Callable
from typing import Final, Protocol

from agent.host import files

HIDDEN: Final = (
    "its processes have no number here (cgroup.procs says 0): they are in another pid namespace, "
    "and naming them takes hostPID"
)
_PR_SCHED_CORE: Final = 62
_GET, _CREATE, _SHARE_TO, _SHARE_FROM = range(4)
_THREAD, _THREAD_GROUP = 0, 1
# The kernel gives the first namespace of cgroups this inode.
_FIRST_CGROUPS: Final = 0xEFFFFFFB
_NO_HANDLES: Final = frozenset({errno.ENOSYS, errno.EPERM})


class Kernel(Protocol):
    """The calls that concern a process; each raises OSError."""

    def while_in(self, group: str, pid: int, act: Callable[[], None]) -> None:
        """Act while the process of this number is in the group; ProcessLookupError where not."""

    def policy(self, pid: int) -> int:
        """Return the scheduling policy."""

    def set_policy(self, pid: int, policy: int) -> None:
        """Set a policy that takes no priority."""

    def cookie(self, pid: int) -> int:
        """Return the core scheduling cookie, 0 for none."""

    def new_cookie(self, pid: int) -> None:
        """Give a thread group a cookie of its own."""

    def share_cookie(self, source: int, target: int) -> None:
        """Give a thread group the cookie of another process; 0 is this process."""


class Host:
    """The kernel of this host."""

    def __init__(self) -> None:
        import ctypes  # noqa: PLC0415 - 179 KiB, an agent counts its memory until this is asked for

        self._ctypes = ctypes
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._namespaced = not _names_cgroups()

    def while_in(self, group: str, pid: int, act: Callable[[], None]) -> None:
        """Act while the process of this number is in the group; ProcessLookupError where not."""
        handle = _handle(_foreign(pid))
        try:
            listed = files.read(f"/proc/{pid}/cgroup")
            if not is_in(group, listed, namespaced=self._namespaced):
                raise ProcessLookupError(errno.ESRCH, f"process {pid} is not in {group} any more")
            if handle is not None:
                # The process whose group was read still has the number.
                signal.pidfd_send_signal(handle, 0)
            act()
        except files.VanishedError as error:
            raise ProcessLookupError(errno.ESRCH, str(error)) from error
        except files.ReadingError as error:
            raise OSError(errno.EIO, str(error)) from error
        finally:
            if handle is not None:
                os.close(handle)

    def kill(self, group: str, pid: int) -> None:
        """End a process of a group at once (SIGKILL)."""
        self.while_in(group, pid, lambda: os.kill(pid, signal.SIGKILL))

    def policy(self, pid: int) -> int:
        """Return the scheduling policy."""
        return os.sched_getscheduler(_foreign(pid))

    def set_policy(self, pid: int, policy: int) -> None:
        """Set a policy that takes no priority."""
        _foreign(pid)
        os.sched_setscheduler(pid, policy, os.sched_param(0))

    def cookie(self, pid: int) -> int:
        """Return the core scheduling cookie, 0 for none."""
        found = self._ctypes.c_ulonglong()
        self._prctl(_GET, _foreign(pid), _THREAD, self._ctypes.byref(found))
        return found.value

    def new_cookie(self, pid: int) -> None:
        """Give a thread group a cookie of its own."""
        self._prctl(_CREATE, _foreign(pid), _THREAD_GROUP)

    def share_cookie(self, source: int, target: int) -> None:
        """Give a thread group the cookie of another process; 0 is this process."""
        _foreign(target)
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


def _names_cgroups() -> bool:
    """Tell whether paths of cgroups start at the root, as in the first cgroup namespace."""
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/cgroup").st_ino == _FIRST_CGROUPS  # noqa: PTH116 - no path is kept
    return False


def _foreign(pid: int) -> int:
    """Return the number of a process; 0 would mean this one to every call of the kernel."""
    if pid <= 0:
        raise OSError(errno.EINVAL, HIDDEN)
    return pid


def _handle(pid: int) -> int | None:
    """Return a descriptor that stays with the process (pidfd), None where there are none."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_HANDLES:
            return None
        raise


def is_in(group: str, listed: bytes, *, namespaced: bool) -> bool:
    """Tell whether the groups that a process has (/proc/PID/cgroup) name this one.

    In a cgroup namespace a path starts where that begins: `/../../pod/container`. So the
    last name counts; of a process in the namespace's own cgroup or one above it, it is unknown.
    """
    wanted = group.rpartition("/")[2]
    groups: dict[str, str] = {}
    for line in listed.decode("utf-8", "replace").splitlines():
        _, _, rest = line.partition(":")
        names, colon, path = rest.partition(":")
        if colon:
            groups |= dict.fromkeys(names.split(","), path)
    name = groups.get("cpu", groups.get("", "(none)")).rpartition("/")[2]
    return name == wanted or (namespaced and name in ("", ".."))
