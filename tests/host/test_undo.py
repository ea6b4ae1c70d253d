"""Ten thousand random edits on real control groups, killed again and again, leave no trace.

Only groups below `koord-undo-<pid>` of cpu, cpuset, blkio and memory are made, written and removed,
and only processes in them are changed.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import cgroup_layout, edits
from domain.cpus import cpulists

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "blkio", "memory")
EDITS = 10_000
LIVES = 25
WATCHED = (
    *("cpu.", "cpuset.cpus", "cpuset.mems", "blkio.throttle.read", "blkio.throttle.write"),
    "memory.limit_in_bytes",
)


class Tree:
    """Real groups of pods, some of them with limits of their own from the beginning."""

    def __init__(self, base):
        self.base = base
        self.layout = cgroup_layout.Layout(str(ROOT), 1, "cgroupfs", base)
        self.classes = [f"{base}/kubepods/{name}" for name in ("burstable", "besteffort")]
        self.pods = [f"{above}/podu{n}" for above in self.classes for n in range(3)]
        self.containers = [f"{pod}/c{n}" for pod in self.pods for n in range(2)]
        self.groups = [f"{base}/kubepods", *self.classes, *self.pods, *self.containers]
        self.sleepers = []

    def create(self):
        for group in self.groups:
            for controller in CONTROLLERS:
                (ROOT / controller / group).mkdir(parents=True, exist_ok=True)
            folder = ROOT / "cpuset"
            for part in Path(group).parts:
                above, folder = folder, folder / part
                for name in ("cpuset.mems", "cpuset.cpus"):
                    if not (folder / name).read_text().strip():
                        (folder / name).write_text((above / name).read_text())
        self._limit()
        self._populate()

    def _limit(self):
        rng = random.Random(7)
        for group in self.pods:
            (ROOT / "cpu" / group / "cpu.shares").write_text(str(rng.randrange(2, 4000)))
            (ROOT / "cpu" / group / "cpu.cfs_quota_us").write_text(str(rng.randrange(2, 4) * 10**5))
        for group in self.containers[::2]:
            (ROOT / "cpu" / group / "cpu.cfs_quota_us").write_text("150000")
            (ROOT / "cpu" / group / "cpu.cfs_burst_us").write_text("30000")
            (ROOT / "memory" / group / "memory.limit_in_bytes").write_text(str(1 << 30))

    def _populate(self):
        for number, group in enumerate(self.containers):
            sleeper = subprocess.Popen(["sleep", "1000"])
            self.sleepers.append(sleeper)
            Path(f"/proc/{sleeper.pid}/oom_score_adj").write_text(str(number * 10))
            if number % 3 == 0:
                os.sched_setscheduler(sleeper.pid, os.SCHED_BATCH, os.sched_param(0))
            for controller in CONTROLLERS:
                (ROOT / controller / group / "cgroup.procs").write_text(str(sleeper.pid))

    def remove(self):
        for sleeper in self.sleepers:
            sleeper.kill()
            sleeper.wait()
        for controller in CONTROLLERS:
            for folder, _, _ in os.walk(ROOT / controller / self.base, topdown=False):
                with contextlib.suppress(FileNotFoundError):
                    Path(folder).rmdir()

    def snapshot(self):
        """Return every setting: the files of the groups, and what their processes have."""
        scores = [Path(f"/proc/{sleeper.pid}/oom_score_adj") for sleeper in self.sleepers]
        policies = {one.pid: os.sched_getscheduler(one.pid) for one in self.sleepers}
        return policies | {score: score.read_bytes() for score in scores} | self._files()

    def _files(self):
        return {
            file: file.read_bytes()
            for controller in CONTROLLERS
            for file in sorted((ROOT / controller / self.base).rglob("*"))
            if file.is_file()
            and file.name.startswith(WATCHED)
            and file.stat().st_mode & 0o200
            # How much time was throttled or charged is no setting.
            and not file.name.endswith(("_serviced", "_recursive", "service_bytes"))
        }


@pytest.fixture
def tree():
    if not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS):
        pytest.skip("this machine has no cgroup v1 with cpu, cpuset, blkio and memory")
    tree = Tree(f"koord-undo-{os.getpid()}")
    try:
        tree.create()
        yield tree
    finally:
        tree.remove()
    assert not any((ROOT / name / tree.base).exists() for name in CONTROLLERS)


def device():
    """A disk of this machine, whose limits nobody has below our groups."""
    disks = sorted(Path("/sys/block").glob("[vsnx][dv]*"))
    return (disks[0] / "dev").read_text().strip() if disks else ""


VICTIM = """
import random, sys
sys.path[:0] = {path!r}
from pathlib import Path
from agent.model import cgroup_layout, edits
from agent.apply import executor, journal
from agent.apply.properties import property_files
R = edits.Role
rng = random.Random({seed!r})
groups, containers, cpus, disk = {groups!r}, {containers!r}, {cpus!r}, {disk!r}
kept = journal.Journal(Path({folder!r}), "boot")
kept.load()
there = cgroup_layout.Layout("/sys/fs/cgroup", 1, "cgroupfs", {base!r})
acting = executor.Executor(property_files.Knobs(there), kept, writing=True)
if {clean!r}:
    acting.put_back("an earlier run left it behind")
values = {{
    R.CPUSET: lambda: rng.choice(cpus),
    R.CPU_QUOTA: lambda: str(rng.choice([-1, *range(20000, 400000, 7000)])),
    R.CPU_BURST: lambda: str(rng.randrange(0, 200000, 500)),
    R.CPU_SHARES: lambda: str(rng.randrange(2, 262144)),
    R.CPU_IDLE: lambda: rng.choice("01"),
    R.MEMORY_LIMIT: lambda: str(rng.choice([-1, *range(64 << 20, 1 << 30, 99 << 20)])),
    R.PROCESS_OOM_SCORE: lambda: str(rng.randrange(200, 1000)),
    R.PROCESS_POLICY: lambda: "idle",
}}
if disk:
    for role in (R.IO_READ_BPS, R.IO_WRITE_BPS, R.IO_READ_IOPS, R.IO_WRITE_IOPS):
        values[role] = lambda: f"{{disk}} {{rng.choice([0, 1 << 20, 1 << 30])}}"
of_containers = (R.CPU_IDLE, R.PROCESS_OOM_SCORE, R.PROCESS_POLICY)
second = 0
while True:
    second += 1
    wanted = {{}}
    for _ in range(rng.randrange(1, 16)):
        role = rng.choice(list(values))
        group = rng.choice(containers if role in of_containers else groups)
        value = None if rng.random() < 0.15 else values[role]()
        wanted[role, group] = edits.Edit(role, group, value, "random")
    acting.apply(wanted.values(), second)
    print(len(wanted), flush=True)
"""


class Lives:
    """Runs that make random edits until they are killed."""

    def __init__(self, tree, folder):
        self.tree, self.folder, self.edits = tree, folder, 0

    def one(self, seed):
        rng = random.Random(seed)
        both = sorted(cpulists.parse((ROOT / "cpuset/cpuset.cpus").read_text().strip()))
        source = VICTIM.format(
            path=[str(Path(edits.__file__).parents[2])],
            seed=seed,
            groups=self.tree.groups[1:],
            containers=self.tree.containers,
            cpus=[str(both[0]), str(both[-1]), cpulists.text(both)],
            disk=device(),
            folder=str(self.folder),
            base=self.tree.base,
            clean=rng.random() < 0.5,
        )
        victim = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
        least = self.edits + EDITS // LIVES
        try:
            while self.edits < least:
                line = victim.stdout.readline()
                assert line, "the victim died by itself"
                self.edits += int(line)
            with contextlib.suppress(subprocess.TimeoutExpired):
                victim.wait(rng.random() * 0.01)
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            victim.stdout.close()


def loaded(folder):
    kept = journal.Journal(folder, "boot")
    kept.load()
    return kept


def undo(tree, folder):
    acting = executor.Executor(property_files.Knobs(tree.layout), loaded(folder), writing=True)
    return acting.put_back("undo")


@pytest.mark.timeout(300)
def test_ten_thousand_edits_and_kills_leave_no_trace(tree, tmp_path):
    before = tree.snapshot()
    assert len(before) > 200
    lives = Lives(tree, tmp_path / "state")
    for seed in range(LIVES):
        lives.one(seed)
    assert lives.edits >= EDITS
    assert tree.snapshot() != before
    outcome = undo(tree, tmp_path / "state")
    print(f"{lives.edits} edits in {LIVES} lives, {len(outcome.records)} files put back")
    assert [record for record in outcome.records if record[0] != "put back"] == []
    assert tree.snapshot() == before
    assert undo(tree, tmp_path / "state").records == []


def test_what_somebody_else_wrote_in_between_stays(tree, tmp_path):
    before = tree.snapshot()
    Lives(tree, tmp_path / "state").one(99)
    # Values that no edit here ever sets, next to files of the same group that are ours.
    pod, container, process = tree.pods[0], tree.containers[0], tree.sleepers[0]
    acting = executor.Executor(
        property_files.Knobs(tree.layout), loaded(tmp_path / "state"), writing=True
    )
    ours = [(edits.Role.CPU_SHARES, pod, "5"), (edits.Role.PROCESS_OOM_SCORE, container, "150")]
    acting.apply([edits.Edit(role, group, value, "r") for role, group, value in ours], 0)
    foreign = {
        ROOT / "cpu" / pod / "cpu.shares": b"262144\n",
        Path(f"/proc/{process.pid}/oom_score_adj"): b"160\n",
    }
    for file, data in foreign.items():
        file.write_bytes(data)
    outcome = undo(tree, tmp_path / "state")
    after = tree.snapshot()
    assert after == {**before, **foreign}
    left = {write.group for what, write, _ in outcome.records if what == "left"}
    assert left == {pod, container}
