"""Whether pods came or went, told by the groups that hold them: three looks at a folder."""

from pathlib import Path

from agent.model import cgroup_layout

_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


class Newcomers:
    """Remembers how the groups of the Kubernetes classes looked the last time."""

    def __init__(self) -> None:
        self._marks: tuple[tuple[int, int], ...] = ()

    def changed(self, arranged: cgroup_layout.Layout | None) -> bool:
        """Return whether a group has come or gone since the last call; the first call says no.

        A kernel's folder counts the groups in its links; one that came while another one went
        between two calls is not noticed. Other file systems tell by the time of the change.
        """
        if arranged is None:
            return False
        before = self._marks
        self._marks = tuple(_mark(arranged, kind) for kind in _CLASSES)
        return bool(before) and before != self._marks


def _mark(arranged: cgroup_layout.Layout, kind: str) -> tuple[int, int]:
    folder = arranged.folder(cgroup_layout.File.CPU_USAGE, arranged.qos_group(kind))
    try:
        found = Path(folder).stat()
    except OSError:
        return (0, 0)
    return found.st_nlink, found.st_mtime_ns
