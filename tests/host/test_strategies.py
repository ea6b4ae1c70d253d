"""Strategies on real control groups: batch limits land and hold, and bursting ends throttling."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from agent import enforced, layout, observation, planner, ticks
from api import core
from domain import node_slo
from process import clock as clocks
from process import metrics

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
ONLINE = (
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podonline.slice/"
    "cri-containerd-online.scope"
)
BATCH = (
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podbatch.slice/"
    "cri-containerd-batch.scope"
)
LIMITS = {
    "online": {"cpu": "100m"},
    "batch": {"kubernetes.io/batch-cpu": "200", "kubernetes.io/batch-memory": "64Mi"},
}
QUALITY = {"online": ("LS", "Burstable"), "batch": ("BE", "BestEffort")}
# Wants about a third of a cpu, a bit at a time.
REQUESTS = """
import time
while True:
    until = time.process_time() + 0.02
    while time.process_time() < until: pass
    time.sleep(0.04)
"""
GREEDY = "while True: pass"
TICK = 0.5


def pod(name):
    quality, kubernetes_qos = QUALITY[name]
    asked = {"requests": LIMITS[name], "limits": LIMITS[name]}
    raw = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"koordinator.sh/qosClass": quality},
        },
        "spec": {"containers": [{"name": "app", "resources": asked}]},
        "status": {
            "phase": "Running",
            "qosClass": kubernetes_qos,
            "containerStatuses": [{"name": "app", "containerID": f"containerd://{name}"}],
        },
    }
    return msgspec.convert(raw, core.Pod)


def make(base, group):
    """Create the folders of a group in every hierarchy, with the cpus of those above."""
    for controller in CONTROLLERS:
        folder = ROOT / controller
        for part in Path(f"{base}/{group}").parts:
            above, folder = folder, folder / part
            if folder.exists():
                continue
            folder.mkdir()
            for name in ("cpuset.mems", "cpuset.cpus") if controller == "cpuset" else ():
                (folder / name).write_text((above / name).read_text())


@pytest.fixture
def base():
    if not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS):
        pytest.skip("this machine has no cgroup v1 with cpu, cpuacct, cpuset and memory")
    base = f"koord-test-strategies-{os.getpid()}"
    running = []
    try:
        for group, program in ((ONLINE, REQUESTS), (BATCH, GREEDY)):
            make(base, group)
            running.append(subprocess.Popen([sys.executable, "-c", program]))
            for controller in CONTROLLERS:
                procs = ROOT / controller / base / group / "cgroup.procs"
                procs.write_text(str(running[-1].pid))
        # Whatever else runs here, these processes get the time that their quotas leave them.
        (ROOT / "cpu" / base / "cpu.shares").write_text("262144")
        yield base
    finally:
        for process in running:
            process.kill()
            process.wait()
        for controller in CONTROLLERS:
            for folder, _, _ in os.walk(ROOT / controller / base, topdown=False):
                with contextlib.suppress(FileNotFoundError):
                    Path(folder).rmdir()
    assert not list(ROOT.glob(f"*/{base}"))


class Node:
    """An agent that ticks on the groups of the test; of the rest of the machine it sees nothing."""

    def __init__(self, base, folder):
        self.base, self.clock = base, clocks.SystemClock()
        self.proc = folder / "proc"
        (self.proc / "sys" / "kernel" / "random").mkdir(parents=True)
        (self.proc / "sys" / "kernel" / "random" / "boot_id").write_text("b\n")
        (self.proc / "stat").write_text("cpu  0 0 0 100 0 0 0 0 0 0\n")
        (self.proc / "meminfo").write_text(
            "MemTotal: 100 kB\nMemFree: 90 kB\nMemAvailable: 90 kB\n"
        )
        self.observer = observation.Observer(observation.Roots(str(self.proc)), TICK)
        self.observer.layout = layout.Layout(str(ROOT), 1, "systemd", base)
        self.spec = {}
        self.loop = ticks.Ticks(
            self.observer,
            self.known,
            self.clock,
            ticks.Figures(metrics.Registry()),
            ticks.Habits(
                folder / "state",
                writing=True,
                gates=frozenset({"BatchResource", "CPUBurst"}),
                default=planner.Mode.ENFORCE,
                tick_seconds=TICK,
            ),
        )

    def known(self):
        complete = node_slo.of_spec(self.spec)
        capacity = {"cpu": "2", "memory": "4Gi"}
        status = {"capacity": capacity, "allocatable": capacity}
        return observation.Known(
            node=msgspec.convert({"metadata": {"name": "n"}, "status": status}, core.Node),
            pods=(self.pods[0], self.pods[1]),
            thresholds=enforced.thresholds(complete),
            enforced=enforced.read(complete),
        )

    pods = (pod("online"), pod("batch"))

    async def seconds(self, count):
        for _ in range(round(count / TICK)):
            await self.clock.sleep(TICK)
            self.loop.tick()

    def text(self, controller, name, group):
        return (ROOT / controller / self.base / group / name).read_text().strip()

    def throttled_ms(self):
        fields = dict(line.split() for line in self.text("cpu", "cpu.stat", ONLINE).splitlines())
        return int(fields["throttled_time"]) / 1e6

    def used_seconds(self):
        return int(self.text("cpuacct", "cpuacct.usage", BATCH)) / 1e9


async def test_batch_limits_land_and_hold(base, tmp_path):
    node = Node(base, tmp_path)
    await node.seconds(1)
    for group in (BATCH, str(Path(BATCH).parent)):
        assert node.text("cpu", "cpu.shares", group) == "204"
        assert node.text("cpu", "cpu.cfs_quota_us", group) == "20000"
        assert node.text("memory", "memory.limit_in_bytes", group) == str(64 << 20)
    before, at = node.used_seconds(), node.clock.monotonic()
    await node.seconds(3)
    used = (node.used_seconds() - before) / (node.clock.monotonic() - at)
    assert used <= 0.25
    node.loop.stop()
    assert node.text("cpu", "cpu.shares", BATCH) == "1024"
    assert node.text("cpu", "cpu.cfs_quota_us", BATCH) == "-1"
    assert int(node.text("memory", "memory.limit_in_bytes", BATCH)) > 1 << 60
    assert node.loop.problem is None


async def test_bursting_ends_throttling(base, tmp_path, record_property):
    node = Node(base, tmp_path)
    for group in (str(Path(ONLINE).parent), ONLINE):
        (ROOT / "cpu" / base / group / "cpu.cfs_quota_us").write_text("10000")

    async def throttled(seconds):
        before, at = node.throttled_ms(), node.clock.monotonic()
        await node.seconds(seconds)
        return (node.throttled_ms() - before) / (node.clock.monotonic() - at)

    await node.seconds(1)
    held = await throttled(3)
    node.spec = {
        "cpuBurstStrategy": {"policy": "auto", "cfsQuotaBurstPercent": 500},
        "resourceUsedThresholdWithBE": {"enable": True},
    }
    await node.seconds(6)
    free = await throttled(3)
    burst = node.text("cpu", "cpu.cfs_burst_us", ONLINE)
    grown = int(node.text("cpu", "cpu.cfs_quota_us", ONLINE))
    node.loop.stop()
    record_property("throttled_ms_per_second", f"{held:.0f} without, {free:.0f} with bursting")
    print(f"throttled {held:.0f} ms per second without bursting, {free:.0f} with it")
    assert held > 100
    assert free < held / 2
    assert burst == "10000"
    assert 10_000 < grown <= 50_000
    assert node.text("cpu", "cpu.cfs_quota_us", ONLINE) == "10000"
    assert node.text("cpu", "cpu.cfs_burst_us", ONLINE) == "0"
