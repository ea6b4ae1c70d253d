"""How long tasks wait, as the kernel tells it of real groups, and what follows from it."""

import os

import pytest_asyncio

from agent.decide.strategies import cpu_evict
from agent.model import cgroup_layout, strategy_settings
from tests.planes.host import kubepods

F = cgroup_layout.File
OFF = {"enable": False, "cpuSuppressPolicy": "cfsQuota"}
TRIGGER = strategy_settings.Pressure(
    enable=True, cpu_percent=30.0, memory_percent=10.0, suppress_step_percent=20
)
GATES = frozenset({"BECPUSuppress", "CPUEvict", "PressureEvict"})
EVERYWHERE = " & ".join([kubepods.BURN] * os.cpu_count())


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-pressure-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path, kubepods.Setup(gates=GATES, pressure=TRIGGER))
    (node.proc / "pressure").symlink_to("/proc/pressure")
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


def quota(node):
    text = node.groups.text(F.CPU_QUOTA, node.groups.layout.qos_group("BestEffort")).split()[0]
    return None if text == "max" else int(text) / 100_000


async def test_best_effort_shrinks_while_online_tasks_wait_and_is_let_go(node):
    _, online = node.pod("online", "Burstable")
    _, batch = node.pod("batch", "BestEffort")
    node.enforce(resourceUsedThresholdWithBE=OFF)
    node.groups.start(batch, EVERYWHERE)
    await node.seconds(3)
    calm = node.loop.picture.online_pressure
    assert calm.memory is not None
    assert quota(node) is None
    spike = node.groups.start(online, EVERYWHERE)
    await node.until(lambda: quota(node) is not None, 60)
    waited = node.loop.picture.online_pressure.cpu
    assert "online tasks wait" in node.loop.decided.reason
    await node.until(lambda: quota(node) <= os.cpu_count() / 2, 30)
    held = quota(node)
    node.groups.stop(spike)
    await node.until(lambda: quota(node) is None, 60)
    eased = node.loop.picture.online_pressure.cpu
    print(
        f"online tasks waited {calm.cpu} % alone, {waited} % beside batch work, which was held to "
        f"{held} cores, and {eased} % when it was let go"
    )
    assert calm.cpu < TRIGGER.cpu_percent <= waited
    assert eased < TRIGGER.cpu_percent


async def test_usage_evicts_nobody_as_long_as_nobody_waits(node):
    _, batch = node.pod("batch", "BestEffort")
    settings = {"enable": True, "cpuEvictThresholdPercent": 20, "cpuEvictTimeWindowSeconds": 3}
    node.enforce(resourceUsedThresholdWithBE={**settings, "cpuSuppressThresholdPercent": 100})

    def said():
        picture, now = node.loop.picture, node.clock.monotonic()
        wanted = node.known.enforced.cpu_eviction
        busy = node.observer.samples.average(("node", "cpu"), now - 3, now)
        answers = cpu_evict.tasks(picture, wanted, cpu_evict.Window(node=busy))
        return getattr(answers["CPUEvict"], "why", "")

    node.groups.burn(batch)
    await node.until(lambda: "tasks wait for cpu" in said(), 60)
    calm = said()
    assert node.loop.decisions["cpu-evict"].evictions == ()
    node.groups.start(batch, f"{EVERYWHERE} & {EVERYWHERE}")
    await node.until(lambda: node.loop.decisions["cpu-evict"].evictions, 60)
    print(f"{calm}; then {node.loop.decisions['cpu-evict'].reason}")
    assert "tasks wait" in node.loop.decisions["cpu-evict"].reason


async def test_the_largest_batch_pod_leaves_while_online_tasks_wait_for_memory(node):
    _, online = node.pod("online", "Burstable")
    for name, size in (("small", 4), ("large", 16)):
        _, batch = node.pod(name, "BestEffort")
        node.groups.hold(batch, size * kubepods.MIB)
    node.enforce(resourceUsedThresholdWithBE={**OFF, "enable": True})
    await node.seconds(2)
    assert node.loop.decisions["memory-evict"].evictions == ()
    # It wants twice what it may have and nothing of it can be taken back, so it has to wait.
    node.groups.write(F.MEMORY_HIGH, online, str(8 * kubepods.MIB))
    node.groups.hold(online, 16 * kubepods.MIB)
    await node.until(lambda: node.loop.decisions["memory-evict"].evictions, 90)
    (leaving,) = node.loop.decisions["memory-evict"].evictions
    print(f"{leaving.name} leaves: {leaving.reason}")
    assert (leaving.name, leaving.feature) == ("large", "PressureEvict")
