"""Tests on real control groups of version 2: skipped everywhere but in the guest made for them."""

import os
import pathlib
import subprocess

import pytest

_ASKED = bool(os.environ.get("KOORD_GUEST"))
ROOT = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = "+cpuset +cpu +io +memory +pids"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/guest/" not in item.nodeid:
            continue
        item.add_marker(pytest.mark.host)
        item.add_marker(pytest.mark.timeout(900))
        if not _ASKED:
            item.add_marker(pytest.mark.skip(reason="needs cgroup v2 for itself; run make host-v2"))


class Groups:
    """Groups as a kubelet with systemd makes them, at the root of a machine of our own."""

    root = ROOT
    top = "kubepods.slice"
    best_effort = f"{top}/kubepods-besteffort.slice"
    burstable = f"{top}/kubepods-burstable.slice"

    def __init__(self):
        self.made = []
        self.processes = []

    def make(self, group):
        """Create a group and everything above it, with the controllers switched on."""
        folder = self.root
        for part in pathlib.PurePosixPath(group).parts:
            (folder / "cgroup.subtree_control").write_text(CONTROLLERS)
            folder = folder / part
            if not folder.exists():
                folder.mkdir()
                self.made.append(folder)
        return group

    def pod(self, uid, kind="besteffort", containers=1):
        """Create the group of a pod and those of its containers; returns them."""
        above = {"besteffort": self.best_effort, "burstable": self.burstable}[kind]
        pod = f"{above}/kubepods-{kind}-pod{uid}.slice"
        made = [self.make(f"{pod}/cri-containerd-{uid}c{n}.scope") for n in range(containers)]
        return [pod, *made]

    def start(self, group, *command):
        """Start a process in a group."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.processes.append(process)
        (self.root / group / "cgroup.procs").write_text(str(process.pid))
        return process

    def burn(self, group):
        """Start a process that wants all of one cpu."""
        return self.start(group, "/bin/sh", "-c", "while :; do :; done")

    def read(self, group, name):
        return (self.root / group / name).read_text().strip()

    def write(self, group, name, text):
        (self.root / group / name).write_text(text)

    def used(self, group):
        """Return the cpu time of a group in seconds."""
        fields = dict(line.split() for line in self.read(group, "cpu.stat").splitlines())
        return int(fields["usage_usec"]) / 1e6

    def remove(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        for folder in reversed(self.made):
            folder.rmdir()


@pytest.fixture
def groups():
    made = Groups()
    yield made
    made.remove()
