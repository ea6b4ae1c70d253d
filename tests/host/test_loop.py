"""The whole loop on real control groups: a greedy best-effort process is held back and let go."""

import contextlib
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from agent.loop import ticks
from agent.model import cgroup_layout, state
from agent.observe import observation
from api.kubernetes import core
from process.runtime import clock as clocks
from process.runtime import metrics
from tests.planes.host import kubepods

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset")
CLASS = "kubepods.slice/kubepods-besteffort.slice"
POD = {
    "metadata": {
        "name": "greedy",
        "namespace": "default",
        "uid": "u1",
        "labels": {"koordinator.sh/qosClass": "BE"},
    },
    "status": {
        "phase": "Running",
        "qosClass": "BestEffort",
        "containerStatuses": [{"name": "app", "containerID": "containerd://c1"}],
    },
}


@pytest.fixture
def greedy():
    if not all((ROOT / name / "cgroup.procs").exists() for name in CONTROLLERS):
        pytest.skip("this machine has no cgroup v1 with cpu, cpuacct and cpuset")
    base = f"koord-test-loop-{os.getpid()}"
    innermost = f"{base}/{CLASS}/kubepods-besteffort-podu1.slice/cri-containerd-c1.scope"
    burner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        for controller in CONTROLLERS:
            folder = ROOT / controller
            for part in Path(innermost).parts:
                above, folder = folder, folder / part
                folder.mkdir()
                for name in ("cpuset.mems", "cpuset.cpus") if controller == "cpuset" else ():
                    (folder / name).write_text((above / name).read_text())
            (folder / "cgroup.procs").write_text(str(burner.pid))
        yield base
    finally:
        burner.kill()
        burner.wait()
        for controller in CONTROLLERS:
            for folder, _, _ in os.walk(ROOT / controller / base, topdown=False):
                with contextlib.suppress(FileNotFoundError):
                    Path(folder).rmdir()
    assert not list(ROOT.glob(f"*/{base}"))


async def test_a_greedy_process_is_held_back_and_let_go(greedy, tmp_path):
    cores = os.cpu_count()
    capacity = {"status": {"capacity": {"cpu": str(cores)}, "allocatable": {"cpu": str(cores)}}}
    wish = {"thresholds": None}
    pod = msgspec.convert(POD, core.Pod)
    observer = observation.Observer(observation.Roots(), 0.5)
    hybrid = kubepods.has_both()
    observer.layout = cgroup_layout.Layout(str(ROOT), 1, "systemd", greedy, hybrid=hybrid)

    def known():
        node = msgspec.convert(capacity, core.Node)
        return observation.Known(node=node, pods=(pod,), **wish)

    clock = clocks.SystemClock()
    loop = ticks.Ticks(
        observer,
        known,
        clock,
        ticks.Figures(metrics.Registry()),
        ticks.Habits(tmp_path / "state", writing=True),
    )

    async def used(seconds):
        for _ in range(round(seconds / 0.5)):
            await clock.sleep(0.5)
            loop.tick()
        at = clock.monotonic()
        return observer.samples.average(("pod", "u1", "cpu"), at - seconds / 2, at)

    free = await used(3)
    # Nothing is left for best effort under a threshold of zero, so it gets the least there is.
    wish["thresholds"] = state.Thresholds(True, 0, None, "cfsQuota")
    held = await used(3)
    quota = (ROOT / "cpu" / greedy / CLASS / "cpu.cfs_quota_us").read_text().strip()
    wish["thresholds"] = state.Thresholds(False)
    again = await used(3)
    loop.stop()
    assert quota == "2000"
    assert held == pytest.approx(0.02, abs=0.015)
    assert free > 5 * held
    assert again > 5 * held
    assert (ROOT / "cpu" / greedy / CLASS / "cpu.cfs_quota_us").read_text().strip() == "-1"
    assert loop.problem is None
