"""End containers at once, where their pod has to leave and the API server does not answer."""

import contextlib
import errno
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from agent.apply.tasks import kernel as kernels
from agent.apply.tasks import members
from agent.decide import eviction
from agent.host import files
from agent.model import cgroup_layout, edits, state

_ROUNDS: Final = 5
"""How often the processes of a group are listed: some may be born while others are killed."""


class Kernel(kernels.Kernel, Protocol):
    """A kernel that ends processes."""

    def kill(self, group: str, pid: int) -> None:
        """End a process of a group at once (SIGKILL)."""


class Rules(msgspec.Struct, frozen=True):
    """When containers may be killed."""

    percent: int
    """How much of the node's memory is used, at least."""
    features: frozenset[str]
    """The features that evict for memory; what others want can wait for the API server."""


class Killer:
    """Kills what the kernel would choose blindly: by cgroup.kill, or one process after another."""

    def __init__(
        self,
        picture: Callable[[], state.NodeState | None],
        arranged: Callable[[], cgroup_layout.Layout | None],
        rules: Rules,
        kernel: Callable[[], Kernel] = kernels.Host,
    ) -> None:
        self._picture, self._arranged = picture, arranged
        self._rules, self._kernel = rules, kernel

    def may(self, wish: edits.Eviction) -> bool:
        """Tell whether memory is critical now and the pod has containers on this host."""
        picture = self._picture()
        return (
            wish.feature in self._rules.features
            and eviction.critical(picture, self._rules.percent)
            and bool(eviction.containers(picture, wish.uid))
        )

    def kill(self, wish: edits.Eviction) -> str:
        """End the containers of a pod; return what was done, raise OSError."""
        groups, arranged = eviction.containers(self._picture(), wish.uid), self._arranged()
        if arranged is None or not groups:
            raise OSError("its containers are not known")
        for group in groups:
            try:
                files.write(arranged.path(cgroup_layout.File.KILL, group), "1")
            except FileNotFoundError:
                self._each(arranged, group)
        return f"killed {_named(groups)}"

    def _each(self, arranged: cgroup_layout.Layout, group: str) -> None:
        kernel = self._kernel()
        inside = members.Members(arranged, kernel)
        for _ in range(_ROUNDS):
            with contextlib.suppress(FileNotFoundError):
                inside.to_each(group, lambda pid: kernel.kill(group, pid))
            try:
                left = inside.pids(group)
            except files.VanishedError:
                return
            except files.ReadingError as error:
                raise OSError(errno.EIO, str(error)) from error
            if not left:
                return


def _named(groups: Sequence[str]) -> str:
    return ", ".join(group.rpartition("/")[2] for group in groups)
