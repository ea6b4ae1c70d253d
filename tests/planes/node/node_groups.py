"""The part of this machine's control groups that one node may use, and nothing outside it.

Every hierarchy gets one group named after the test process. A group whose test process is gone,
for it crashed, is emptied and removed by the next run.
"""

import contextlib
import os
import pathlib
import re
import signal

from tests.planes import raw

ROOT = pathlib.Path("/sys/fs/cgroup")
NAME = re.compile(r"koord-node-(\d+)-(\d+)")
# A node has its processors to itself; here it gets most of them when others want them as well.
SHARES = "10240"


def hierarchies():
    """Every mounted hierarchy of version 1, and the unified one beside them."""
    mounted = (path for path in ROOT.iterdir() if not path.is_symlink())
    return sorted(path for path in mounted if (path / "cgroup.procs").is_file())


class Groups:
    """One group in each hierarchy."""

    def __init__(self):
        self.name = f"koord-node-{os.getpid()}-{started(os.getpid())}"

    @property
    def folders(self):
        return [hierarchy / self.name for hierarchy in hierarchies()]

    def create(self):
        for folder in self.folders:
            folder.mkdir()
            # A new group of the cpuset hierarchy is empty and takes no process.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if folder.parent.name == "cpuset":
                    (folder / name).write_text((folder.parent / name).read_text())
            if folder.parent.name == "cpu":
                (folder / "cpu.shares").write_text(SHARES)

    def entering(self):
        """A shell line after which the shell, and what it becomes, is in the groups."""
        procs = " ".join(str(folder / "cgroup.procs") for folder in self.folders)
        return f'for file in {procs}; do echo $$ >"$file" || exit 1; done'

    async def remove(self):
        for folder in self.folders:
            await _remove(folder)


async def remove_stale():
    """Remove what test processes that no longer live have left behind."""
    for hierarchy in hierarchies():
        for folder in hierarchy.glob("koord-node-*"):
            match = NAME.fullmatch(folder.name)
            if match and started(int(match[1])) != match[2]:
                await _remove(folder)


def started(pid):
    """When a process was started, in ticks since boot as text; empty where there is none."""
    with contextlib.suppress(OSError):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[19]
    return ""


async def _remove(top):
    """Remove a group and those inside it, after ending whoever is still in there."""

    async def gone():
        return _emptied(top)

    await raw.eventually(gone, 30.0)


def _emptied(top):
    for folder in (pathlib.Path(path) for path, _, _ in os.walk(top, topdown=False)):
        with contextlib.suppress(OSError):
            for pid in (folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not top.exists()


def figure(folder, name):
    """A number in a file of a group."""
    return int((folder / name).read_text())


def fields(folder, name):
    """The numbers in a file of a group by their names."""
    lines = (line.split() for line in (folder / name).read_text().splitlines())
    return {line[0]: int(line[1]) for line in lines}
