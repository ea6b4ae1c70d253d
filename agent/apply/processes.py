"""Properties of every process in a group: scheduling policy, out-of-memory score, cookie, cache.

What a process had before cannot be told for all of them in one word: a group whose processes
differ reads as `mixed`, and a group that was mixed before us is not put back but reported.
Reading and writing others' processes needs the host's process ids and, for most of it, a
capability; without them the kernel refuses and the refusal is reported. A number is acted on only
while the process that has it is a member of the group: it may have ended, and another one be
called so since.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Mapping
from typing import Final

from agent.apply.properties import partial_properties
from agent.apply.tasks import kernel as kernels
from agent.apply.tasks import members, resctrl
from agent.host import files
from agent.model import cgroup_layout, edits

MIXED: Final = partial_properties.MIXED
MOST_GIVERS = 8
IDLE, OTHER = "idle", "other"


class Policy:
    """Whether the threads of processes run only when no other task of their group wants the cpu."""

    def __init__(self, arranged: cgroup_layout.Layout, kernel: kernels.Kernel) -> None:
        self._processes = members.Members(arranged, kernel)

    def read(self, group: str) -> str:
        """Return `idle`, `other` or `mixed`; policies that other programs chose do not count."""
        words = {os.SCHED_IDLE: IDLE, os.SCHED_OTHER: OTHER}
        return self._processes.of_each(
            group, lambda pid: words.get(self._policy(pid)), self._processes.threads
        )

    def write(self, group: str, text: str) -> None:
        """Change threads between the ordinary and the idle policy; others keep theirs."""
        before, after = os.SCHED_OTHER, os.SCHED_IDLE
        if text != IDLE:
            before, after = after, before

        # A policy belongs to a thread: that of a process is only the one of its first.
        def others(pid: int) -> list[int]:
            return [
                one for one in self._processes.threads_of(pid) or [pid] if self._has(one, before)
            ]

        def change(pid: int) -> None:
            for thread in others(pid):
                with contextlib.suppress(ProcessLookupError):
                    self._processes.kernel.set_policy(thread, after)

        def change_member(pid: int) -> None:
            if others(pid):
                self._processes.kernel.while_in(group, pid, lambda: change(pid))

        self._processes.to_each(group, change_member)

    def _has(self, thread: int, policy: int) -> bool:
        with contextlib.suppress(ProcessLookupError):
            return self._policy(thread) == policy
        return False

    def _policy(self, pid: int) -> int:
        return self._processes.kernel.policy(pid)


class OomScore:
    """Who is killed first when memory runs out."""

    def __init__(self, arranged: cgroup_layout.Layout, kernel: kernels.Kernel) -> None:
        self._processes = members.Members(arranged, kernel)
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
        kernel = self._processes.kernel

        def change(pid: int) -> None:
            kernel.while_in(group, pid, lambda: files.write(self._path(pid), text))

        self._processes.to_each(group, change)

    def _path(self, pid: int) -> str:
        return f"{self._proc}/{pid}/oom_score_adj"


class Cookies:
    """Which processes may run side by side on the threads of one core.

    A name stands for a cookie as long as a process that has it lives.
    """

    def __init__(self, arranged: cgroup_layout.Layout, kernel: kernels.Kernel) -> None:
        self._processes = members.Members(arranged, kernel)
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

            def take(pid: int) -> None:
                if kernel.cookie(pid):
                    kernel.while_in(group, pid, lambda: kernel.share_cookie(0, pid))

            self._processes.to_each(group, take)
            return
        giver, had = self._living(text), list[int]()

        def give(pid: int) -> None:
            if not giver or kernel.cookie(pid) != self._named[text]:
                kernel.while_in(group, pid, lambda: given(pid))
            had.append(pid)

        def given(pid: int) -> None:
            nonlocal giver
            if not giver:
                kernel.new_cookie(pid)
                giver, self._named[text] = pid, kernel.cookie(pid)
            else:
                kernel.share_cookie(giver, pid)

        self._processes.to_each(group, give)
        self._givers[text] = (*had, *self._givers.get(text, ()))[:MOST_GIVERS]

    def _living(self, name: str) -> int:
        """Return a process that still has the cookie of a name, 0 for none."""
        for pid in self._givers.get(name, ()):
            # A process that has ended has none.
            with contextlib.suppress(OSError):
                if self._processes.kernel.cookie(pid) == self._named[name]:
                    return pid
        return 0


_KINDS: Final[
    Mapping[edits.Role, Callable[[cgroup_layout.Layout, kernels.Kernel], partial_properties.Place]]
] = {
    edits.Role.PROCESS_POLICY: Policy,
    edits.Role.PROCESS_OOM_SCORE: OomScore,
    edits.Role.PROCESS_RESCTRL: resctrl.Resctrl,
    edits.Role.PROCESS_COOKIE: Cookies,
}


def place(
    arranged: cgroup_layout.Layout, role: edits.Role, kernel: kernels.Kernel
) -> partial_properties.Place:
    """Return the place of a role of processes."""
    return _KINDS[role](arranged, kernel)
