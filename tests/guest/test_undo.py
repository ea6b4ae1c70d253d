"""Random edits on real groups of version 2, killed again and again, leave no trace."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import edits
from agent.observe.cgroups import cgroup_files

EDITS = 2000
LIVES = 5
FILES = (
    *("cpuset.cpus", "cpu.max", "cpu.max.burst", "cpu.weight", "cpu.idle"),
    *("memory.min", "memory.low", "memory.high", "memory.max", "memory.oom.group"),
    *("io.max", "io.weight"),
)
SYSCTLS = [
    pathlib.Path("/proc/sys/vm", name) for name in ("min_free_kbytes", "watermark_scale_factor")
]
DISK = pathlib.Path("/sys/block/vda/dev")
VICTIM = """
import random, sys
sys.path[:0] = {path!r}
from pathlib import Path
from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.model import edits
from agent.observe.cgroups import cgroup_files
R = edits.Role
rng = random.Random({seed!r})
kept = journal.Journal(Path({folder!r}), "boot")
kept.load()
there = cgroup_files.detect("/sys/fs/cgroup")
acting = executor.Executor(property_files.Knobs(there), kept, writing=True)
if {clean!r}:
    acting.put_back("an earlier run left it behind")
def size():
    return str(rng.choice([0, -1, *range(1 << 20, 1 << 30, 99 << 20)]))
values = {{
    R.CPUSET: lambda: rng.choice(["0", "1", "0-1", "2-3"]),
    R.CPU_QUOTA: lambda: str(rng.choice([-1, *range(20000, 400000, 7000)])),
    R.CPU_BURST: lambda: str(rng.randrange(0, 200000, 500)),
    R.CPU_SHARES: lambda: str(rng.randrange(2, 262144)),
    R.CPU_IDLE: lambda: rng.choice("01"),
    R.MEMORY_MIN: lambda: size().replace("-1", "0"),
    R.MEMORY_LOW: lambda: size().replace("-1", "0"),
    R.MEMORY_HIGH: size,
    R.MEMORY_LIMIT: lambda: size().replace("0", "-1") if rng.random() < 0.3 else "-1",
    R.MEMORY_OOM_GROUP: lambda: rng.choice("01"),
    R.PROCESS_OOM_SCORE: lambda: str(rng.randrange(200, 1000)),
    R.PROCESS_POLICY: lambda: "idle",
    R.VM_MIN_FREE_KBYTES: lambda: str(rng.randrange(10240, 30000)),
    R.VM_WATERMARK_SCALE: lambda: str(rng.randrange(10, 400)),
    R.IO_WEIGHT: lambda: "{disk} " + str(rng.randrange(1, 1000)),
}}
for role in (R.IO_READ_BPS, R.IO_WRITE_BPS, R.IO_READ_IOPS, R.IO_WRITE_IOPS):
    values[role] = lambda: "{disk} " + str(rng.choice([0, 1 << 20, 1 << 30]))
of_containers = (R.CPU_IDLE, R.PROCESS_OOM_SCORE, R.PROCESS_POLICY)
of_host = (R.VM_MIN_FREE_KBYTES, R.VM_WATERMARK_SCALE)
second = 0
while True:
    second += 1
    wanted = {{}}
    for _ in range(rng.randrange(1, 16)):
        role = rng.choice(list(values))
        group = rng.choice({containers!r} if role in of_containers else {groups!r})
        group = "" if role in of_host else group
        value = None if rng.random() < 0.15 else values[role]()
        wanted[role, group] = edits.Edit(role, group, value, "random")
    acting.apply(wanted.values(), second)
    print(len(wanted), flush=True)
"""


def snapshot(groups):
    """Return every setting: of the groups, of their processes and of the host."""
    found = {process.pid: os.sched_getscheduler(process.pid) for process in groups.processes}
    files = [file for file in sorted((groups.root / groups.top).rglob("*")) if file.name in FILES]
    scores = [pathlib.Path(f"/proc/{pid}/oom_score_adj") for pid in found]
    return found | {file: _setting(file) for file in (*files, *scores, *SYSCTLS)}


def _setting(file):
    """Return what a file sets: a group with processes takes no empty list, which stands for all."""
    data = file.read_bytes()
    if file.name == "cpuset.cpus" and not data.strip():
        return file.with_name("cpuset.cpus.effective").read_bytes()
    return data


def life(groups, names, folder, seed):
    """Let a run make random edits and kill it at some moment; returns how many it made."""
    rng = random.Random(seed)
    source = VICTIM.format(
        path=[str(pathlib.Path(edits.__file__).parents[2])],
        seed=seed,
        folder=str(folder),
        groups=names,
        containers=[name for name in names if name.endswith(".scope")],
        disk=DISK.read_text().strip(),
        clean=rng.random() < 0.5,
    )
    victim = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    count = 0
    try:
        while count < EDITS // LIVES:
            line = victim.stdout.readline()
            assert line, "the victim died by itself"
            count += int(line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(rng.random() * 0.1)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
    return count


def test_edits_and_kills_leave_no_trace(groups, tmp_path):
    names = [name for uid in ("u1", "u2") for name in groups.pod(uid, containers=2)]
    names += groups.pod("u3", "burstable")
    names += [groups.best_effort, groups.burstable]
    groups.write(names[0], "cpu.weight", "17")
    groups.write(names[1], "cpu.max", "150000 100000")
    groups.write(names[1], "memory.high", str(1 << 29))
    for number, name in enumerate(name for name in names if name.endswith(".scope")):
        process = groups.start(name, "sleep", "1000")
        pathlib.Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(number * 10))
    # Only a disk whose cost the kernel counts has weights of its own.
    (groups.root / "io.cost.qos").write_text(f"{DISK.read_text().strip()} enable=1")
    arranged = cgroup_files.detect(str(groups.root))
    assert (arranged.version, arranged.driver) == (2, "systemd")
    before = snapshot(groups)
    assert len(before) > 80
    made = sum(life(groups, names, tmp_path / "state", seed) for seed in range(LIVES))
    assert made >= EDITS
    assert snapshot(groups) != before
    kept = journal.Journal(tmp_path / "state", "boot")
    kept.load()
    outcome = executor.Executor(property_files.Knobs(arranged), kept, writing=True).put_back("undo")
    print(f"{made} edits in {LIVES} lives, {len(outcome.records)} files put back")
    assert [record for record in outcome.records if record[0] != "put back"] == []
    assert snapshot(groups) == before
    (groups.root / "io.cost.qos").write_text(f"{DISK.read_text().strip()} enable=0")


@pytest.mark.parametrize(
    ("role", "value", "file", "expected"),
    [
        (edits.Role.CPU_QUOTA, "150000", "cpu.max", "150000 100000"),
        (edits.Role.CPU_QUOTA, "-1", "cpu.max", "max 100000"),
        (edits.Role.CPU_SHARES, "1024", "cpu.weight", "39"),
        (edits.Role.CPU_SHARES, "2", "cpu.weight", "1"),
        (edits.Role.CPU_IDLE, "1", "cpu.idle", "1"),
        (edits.Role.CPUSET, "1", "cpuset.cpus", "1"),
        (edits.Role.MEMORY_HIGH, str(1 << 28), "memory.high", str(1 << 28)),
        (edits.Role.MEMORY_LIMIT, "-1", "memory.max", "max"),
        (edits.Role.MEMORY_MIN, str(1 << 20), "memory.min", str(1 << 20)),
        (edits.Role.MEMORY_LOW, str(1 << 20), "memory.low", str(1 << 20)),
    ],
)
def test_values_reach_the_kernel(groups, tmp_path, role, value, file, expected):
    _, container = groups.pod("u1")
    if expected.startswith("max"):
        groups.write(container, file, "200000 100000" if "cpu" in file else str(1 << 30))
    before = groups.read(container, file)
    kept = journal.Journal(tmp_path / "state", "boot")
    acting = executor.Executor(
        property_files.Knobs(cgroup_files.detect(str(groups.root))), kept, writing=True
    )
    outcome = acting.apply([edits.Edit(role, container, value, "test")], 0)
    assert [what for what, _, _ in outcome.records] == ["written"]
    assert groups.read(container, file) == expected
    acting.put_back("stop")
    assert groups.read(container, file) == before
