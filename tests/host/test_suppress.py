"""Suppression on real control groups of version 1, in a subtree of our own.

Only groups below `koord-test-<pid>` of the cpu and cpuset controllers are made, written and
removed; usage figures come from a generated tree, since nobody's memory group may be touched.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.host import files
from agent.model import cgroup_layout, edits
from agent.observe.cgroups import cgroup_files
from domain.cpus import cpulists

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset")
POD = "kubepods-besteffort-podu1.slice"
CONTAINER = "cri-containerd-c1.scope"
CLASS = "kubepods.slice/kubepods-besteffort.slice"


class Tree:
    """Real groups as a kubelet would have made them, with a process in the innermost one."""

    def __init__(self, base):
        self.base = base
        self.layout = cgroup_layout.Layout(str(ROOT), 1, "systemd", base)
        self.groups = [f"{base}/{CLASS}", f"{base}/{CLASS}/{POD}"]
        self.groups.append(f"{self.groups[1]}/{CONTAINER}")

    def create(self):
        for group in self.groups:
            self.make(group)

    def make(self, group):
        for controller in CONTROLLERS:
            (ROOT / controller / group).mkdir(parents=True, exist_ok=True)
        # A new cpuset group of version 1 is empty; a runtime copies what is above.
        folder = ROOT / "cpuset"
        for part in Path(group).parts:
            above, folder = folder, folder / part
            for name in ("cpuset.mems", "cpuset.cpus"):
                if not (folder / name).read_text().strip():
                    (folder / name).write_text((above / name).read_text())

    def enter(self, pid, group):
        for controller in CONTROLLERS:
            (ROOT / controller / group / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for controller in CONTROLLERS:
            top = ROOT / controller / self.base
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(FileNotFoundError):
                    Path(folder).rmdir()

    def cpus(self):
        return [
            (ROOT / "cpuset" / group / "cpuset.cpus").read_text().strip() for group in self.groups
        ]

    def quota(self):
        return int((ROOT / "cpu" / self.groups[0] / "cpu.cfs_quota_us").read_text())


@pytest.fixture
def tree():
    if not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS):
        pytest.skip("this machine has no cgroup v1 with cpu and cpuset")
    if len(all_cpus()) < 2:
        pytest.skip("this machine has one cpu only")
    tree = Tree(f"koord-test-{os.getpid()}")
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        tree.create()
        tree.enter(sleeper.pid, tree.groups[-1])
        yield tree
    finally:
        sleeper.kill()
        sleeper.wait()
        tree.remove()
    assert not (ROOT / "cpu" / tree.base).exists()
    assert not (ROOT / "cpuset" / tree.base).exists()


def all_cpus():
    return cpulists.parse((ROOT / "cpuset" / "cpuset.cpus").read_text().strip())


def start(tree, folder):
    kept = journal.Journal(folder, "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(tree.layout), kept, writing=True), kept


def narrow(tree, cpus, quota="50000"):
    wanted = [edits.Edit(edits.Role.CPUSET, group, cpus, "busy") for group in tree.groups]
    return [*wanted, edits.Edit(edits.Role.CPU_QUOTA, tree.groups[0], quota, "busy")]


def test_limits_reach_the_kernel_and_are_put_back(tree, tmp_path):
    before, first = tree.cpus(), str(min(all_cpus()))
    acting, kept = start(tree, tmp_path)
    outcome = acting.apply(narrow(tree, first), 0)
    assert outcome.failures == 0
    assert tree.cpus() == [first] * 3
    assert tree.quota() == 50_000
    best_effort = cgroup_files.Cgroups(tree.layout, files.Kept()).best_effort()
    assert [group.depth for group in best_effort.groups] == [0, 1, 2]
    assert best_effort.quota_us == 50_000
    assert best_effort.cpus == {min(all_cpus())}
    last = str(max(all_cpus()))
    assert acting.apply(narrow(tree, last, "70000"), 1).failures == 0
    assert tree.cpus() == [last] * 3
    outcome = acting.put_back("stop")
    assert outcome.failures == 0
    assert tree.cpus() == before
    assert tree.quota() == -1
    assert len(kept) == 0


def test_groups_that_a_container_made_inside_itself_do_not_hold_the_class(tree, tmp_path):
    """The kernel refuses to take a cpu from a group while one below has it."""
    before, first = tree.cpus(), str(min(all_cpus()))
    assert before[0] != first
    for name in ("inner", "deeper"):
        tree.groups.append(f"{tree.groups[-1]}/{name}")
        tree.make(tree.groups[-1])
        (ROOT / "cpuset" / tree.groups[-1] / "cpuset.cpus").write_text(before[0])
    kept = files.Kept()
    found = cgroup_files.Cgroups(tree.layout, kept).best_effort().groups
    kept.close()
    acting, _ = start(tree, tmp_path)
    wanted = [edits.Edit(edits.Role.CPUSET, group.path, first, "busy") for group in found]
    assert acting.apply(wanted, 0).failures == 0
    assert tree.cpus() == [first] * 5
    acting.put_back("stop")
    assert tree.cpus() == [before[0]] * 5


def test_a_container_born_under_suppression_is_set_free(tree, tmp_path):
    before, first = tree.cpus(), str(min(all_cpus()))
    acting, _ = start(tree, tmp_path)
    acting.apply(narrow(tree, first), 0)
    tree.groups.append(f"{tree.groups[1]}/cri-containerd-c2.scope")
    tree.make(tree.groups[-1])
    assert tree.cpus()[-1] == first
    acting.apply(narrow(tree, first), 1)
    acting.put_back("stop")
    assert tree.cpus() == [*before, before[0]]


def test_a_removed_container_does_not_hinder_the_others(tree, tmp_path):
    acting, _ = start(tree, tmp_path)
    first = str(min(all_cpus()))
    tree.groups.append(f"{tree.groups[1]}/cri-containerd-c2.scope")
    tree.make(tree.groups[-1])
    acting.apply(narrow(tree, first), 0)
    gone = tree.groups.pop()
    for controller in CONTROLLERS:
        (ROOT / controller / gone).rmdir()
    assert acting.apply([edits.Edit(edits.Role.CPUSET, gone, "0", "x")], 1).failures == 0
    assert acting.put_back("stop").failures == 0


VICTIM = """
import sys, itertools
from pathlib import Path
sys.path[:0] = {path!r}
from agent.model import cgroup_layout, edits
from agent.apply import executor, journal
from agent.apply.properties import property_files
groups, base, folder = {groups!r}, {base!r}, {folder!r}
kept = journal.Journal(Path(folder), "boot")
there = cgroup_layout.Layout("/sys/fs/cgroup", 1, "systemd", base)
acting = executor.Executor(property_files.Knobs(there), kept, writing=True)
sets = {sets!r}
for second in itertools.count():
    cpus = sets[second % len(sets)]
    wanted = [edits.Edit(edits.Role.CPUSET, group, cpus, "busy") for group in groups]
    wanted.append(edits.Edit(edits.Role.CPU_QUOTA, groups[0], str(50000 + second % 7 * 1000), "x"))
    acting.apply(wanted, second)
    if second == 0:
        print("writing", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.021, 0.05])
def test_killed_in_the_middle_the_next_start_puts_back(tree, tmp_path, delay):
    before = tree.cpus()
    cpus = sorted(all_cpus())
    sets = [str(cpus[0]), str(cpus[1]), cpulists.text(cpus[:2])]
    source = VICTIM.format(
        path=[str(Path(edits.__file__).parents[2])],
        groups=tree.groups,
        base=tree.base,
        folder=str(tmp_path / "state"),
        sets=sets,
    )
    victim = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    try:
        assert victim.stdout.readline() == b"writing\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(delay)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
    acting, kept = start(tree, tmp_path / "state")
    assert len(kept) == 4
    assert acting.put_back("an earlier run left it behind").failures == 0
    assert tree.cpus() == before
    assert tree.quota() == -1
    again, left = start(tree, tmp_path / "state")
    assert again.put_back("nothing").records == []
    assert len(left) == 0
