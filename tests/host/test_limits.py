"""Limits of best effort on a real kernel: its memory, and its cpus by the machine's own layout."""

import os
import pathlib

import pytest
import pytest_asyncio

from agent.model import cgroup_layout
from domain.cpus import cpulists
from tests.planes.host import kubepods

F = cgroup_layout.File
MIB = kubepods.MIB
LIMIT = 32 if kubepods.version() == 1 else 12
CPUS = pathlib.Path("/sys/devices/system/cpu")
PEAK = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-limits-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path)
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


def figures(node, group):
    """Return how often a group met its limit, how many were killed for it, and its highest use."""
    folder = pathlib.Path(node.groups.layout.folder(F.MEMORY_LIMIT, group))
    if node.groups.version == 1:
        met = int((folder / "memory.failcnt").read_text())
        events = (folder / "memory.oom_control").read_text()
    else:
        events = (folder / "memory.events").read_text()
        met = None
    said = dict(line.split() for line in events.splitlines())
    peak = folder / PEAK[node.groups.version]
    return met if met is not None else int(said["max"]), int(said["oom_kill"]), peak


async def test_a_batch_container_holds_no_more_than_its_limit(node):
    asked = {"kubernetes.io/batch-memory": f"{LIMIT}Mi"}
    pod, batch = node.pod("batch", "BestEffort", {"requests": asked, "limits": asked})
    _, other = node.pod("other", "BestEffort")
    before = node.groups.text(F.MEMORY_LIMIT, batch)
    node.enforce()
    await node.seconds(1)
    assert node.groups.text(F.MEMORY_LIMIT, batch) == str(LIMIT * MIB)
    for group in (batch, other):
        node.groups.hold(group, 2 * LIMIT * MIB)

    def killed():
        return figures(node, batch)[1] > 0

    await node.until(killed, 60)
    await node.until(lambda: node.groups.memory(other) > 1.8 * LIMIT * MIB, 60)
    met, kills, peak = figures(node, batch)
    # The limit of the pod is the same and may be met first.
    met += figures(node, pod)[0]
    held = int(peak.read_text()) / MIB
    print(
        f"of {2 * LIMIT} MiB it held {held:.1f}, limit {LIMIT}; met it {met} times, {kills} killed"
    )
    assert met > 0
    assert held <= LIMIT
    assert figures(node, other)[1] == 0
    node.uninstall()
    assert node.groups.text(F.MEMORY_LIMIT, batch) == before


def siblings(cpu):
    """Return the cpus of one core, as this machine says."""
    return cpulists.parse((CPUS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip())


def cpus(node, group=""):
    found = node.groups.text(F.CPUSET, group or node.groups.layout.qos_group("BestEffort"))
    return cpulists.parse(found or kubepods.all_cpus())


async def test_best_effort_gets_whole_cores_while_online_work_needs_the_others(node):
    every = cpulists.parse(kubepods.all_cpus())
    if len(every) < 4:
        pytest.skip("two cpus are the least that best effort has, and all that this machine has")
    _, online = node.pod("online", "Burstable")
    pod, batch = node.pod("batch", "BestEffort")
    burning = node.groups.burn(batch)
    settings = {"enable": True, "cpuSuppressThresholdPercent": 100, "cpuSuppressPolicy": "cpuset"}
    node.enforce(resourceUsedThresholdWithBE=settings)
    await node.seconds(2)
    assert cpus(node) == every
    spike = node.groups.start(online, " & ".join([kubepods.BURN] * (len(every) - 1)))
    await node.until(lambda: len(cpus(node)) == 2, 60)
    held = cpus(node)
    print(f"best effort has {cpulists.text(held)} of {cpulists.text(every)} beside online work")
    if len(siblings(min(every))) == 2:
        assert held == siblings(min(held))
    assert cpus(node, pod) == cpus(node, batch) == held
    assert os.sched_getaffinity(burning.pid) == held
    node.groups.stop(spike)
    await node.until(lambda: cpus(node) == every, 60)
    node.enforce(resourceUsedThresholdWithBE={**settings, "enable": False})
    await node.seconds(1)
    assert cpus(node, batch) == every
