"""The file system that divides caches: mounted where it is not, and taken away again."""

import errno
import os
from collections.abc import Callable

from agent.host import files
from agent.model import cgroup_layout, edits

KIND = "resctrl"


class Resctrl:
    """Whether resctrl is mounted; the kernel forgets every group when it is not any more."""

    def __init__(
        self,
        arranged: cgroup_layout.Layout,
        mount: Callable[[str], None] | None = None,
        unmount: Callable[[str], None] | None = None,
    ) -> None:
        self._layout = arranged
        self._mount, self._unmount = mount or mount_resctrl, unmount or unmount_resctrl

    def read(self, group: str) -> str:
        """Return `present` or `absent`."""
        schemata = self._layout.path(cgroup_layout.File.RESCTRL_SCHEMATA, group)
        root = schemata.rpartition("/")[0]
        if os.access(schemata, os.F_OK):
            return edits.PRESENT
        if not os.access(root, os.F_OK):
            raise files.VanishedError(f"{root} is not there: the kernel divides no caches")
        return edits.ABSENT

    def write(self, group: str, text: str) -> None:
        """Mount or unmount it."""
        change = self._mount if text == edits.PRESENT else self._unmount
        change(self._layout.path(cgroup_layout.File.RESCTRL_SCHEMATA, group).rpartition("/")[0])


def mount_resctrl(path: str) -> None:
    """Mount resctrl; raises OSError, which names CAP_SYS_ADMIN where that is missing."""
    _call("mount", KIND.encode(), path.encode(), KIND.encode(), 0, None)


def unmount_resctrl(path: str) -> None:
    """Unmount resctrl."""
    _call("umount2", path.encode(), 0)


def _call(name: str, *arguments: object) -> None:
    import ctypes  # noqa: PLC0415 - 179 KiB, an agent counts its memory until this is asked for

    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        needs = " (it takes CAP_SYS_ADMIN)" if code == errno.EPERM else ""
        raise OSError(code, f"{name} of {KIND}: {os.strerror(code)}{needs}")
