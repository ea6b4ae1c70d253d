"""What classes get of processors and keep of memory when all of them want more than there is.

Processors: the figures are bounds of a load test. Each class alone reaches at least 90, 80 and 70 %
of what it may use; together LSR keeps 90 % of its own cpus, LS the half of the node that it asks
for, and BE stays below 30 % of the node. Memory: this kernel has no watermarks, so what is shown is
what stands for them.
"""

import os
import pathlib

import pytest
import pytest_asyncio

from agent.decide.strategies import memory_reclaim
from agent.loop import memory_reclaimer
from agent.model import cgroup_layout
from process.runtime import metrics
from tests.planes.host import kubepods

F = cgroup_layout.File
DISK = pathlib.Path("/dev/vda")
MIB = kubepods.MIB
CPUS = os.cpu_count()
SECONDS = 3
STATUS = "scheduling.koordinator.sh/resource-status"
GATES = kubepods.GATES | {"CgroupReconcile"}


@pytest.fixture
def disk():
    # The pages of a device are dropped when nobody has it open any more.
    descriptor = os.open(DISK, os.O_RDONLY)
    yield DISK
    os.close(descriptor)


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-classes-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path, kubepods.Setup(gates=GATES))
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


@pytest.fixture
def own_cpu():
    """The cpu of the LSR pod, on which the agent does not run either."""
    before = os.sched_getaffinity(0)
    own = max(before)
    os.sched_setaffinity(0, before - {own})
    yield own
    os.sched_setaffinity(0, before)


async def cores(node, *containers):
    """Return how many cores each of these used over a while in which the agent does nothing."""
    begin, before = node.clock.monotonic(), [node.groups.cpu_seconds(one) for one in containers]
    await node.clock.sleep(SECONDS)
    took = node.clock.monotonic() - begin
    after = [node.groups.cpu_seconds(one) for one in containers]
    return [(end - start) / took for end, start in zip(after, before, strict=True)]


def burn(node, group, wanted):
    everywhere = f"for cpu in $(seq {wanted}); do ({kubepods.BURN}) & done; wait"
    # What the agent is pinned to must not hold for its children.
    return node.groups.start(group, f"taskset -p -c 0-{CPUS - 1} $$ >/dev/null; {everywhere}")


async def test_classes_reach_and_keep_their_parts_of_the_processors(node, own_cpu):
    requests = {"cpu": "1"}
    whole = {"requests": requests, "limits": requests}
    _, lsr = node.pod("lsr", "Guaranteed", whole, **{STATUS: f'{{"cpuset":"{own_cpu}"}}'})
    half = {"requests": {"cpu": str(CPUS // 2)}}
    _, ls = node.pod("ls", "Burstable", half)
    _, be = node.pod("be", "BestEffort")
    # As a kubelet weighs its classes.
    node.groups.write(F.CPU_SHARES, node.groups.layout.qos_group("Burstable"), "79")
    node.groups.write(F.CPU_SHARES, node.groups.layout.qos_group("BestEffort"), "1")
    node.enforce(
        resourceUsedThresholdWithBE={
            "enable": True,
            "cpuSuppressPolicy": "cfsQuota",
            "cpuSuppressThresholdPercent": 100,
        },
        resourceQOSStrategy={"beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}}},
    )
    await node.seconds(2)
    wanted = {lsr: 1, ls: CPUS // 2, be: CPUS}
    alone = []
    for container, number in wanted.items():
        load = burn(node, container, number)
        await node.seconds(1.5)
        alone += await cores(node, container)
        node.groups.stop(load)
        await node.seconds(0.5)
    for container, number in wanted.items():
        burn(node, container, number)
    await node.seconds(4)
    together = await cores(node, lsr, ls, be)
    print(
        "cores alone and together: "
        + ", ".join(
            f"{name} {first:.2f} and {second:.2f}"
            for name, first, second in zip(("LSR", "LS", "BE"), alone, together, strict=True)
        )
        + f", of {CPUS}"
    )
    most = {"lsr": 1, "ls": CPUS // 2, "be": CPUS - 1}
    assert alone[0] >= 0.9 * most["lsr"]
    assert alone[1] >= 0.8 * most["ls"]
    assert alone[2] >= 0.7 * most["be"]
    assert together[0] >= 0.9
    assert 0.45 * CPUS <= together[1] <= 0.55 * CPUS
    assert together[2] <= 0.3 * CPUS


LIMIT, RATIO = 120, 80
"""MiB that a container may hold, and percent of it at which its reclaim begins."""
LEVEL = 93
"""MiB between where the agent begins to take memory back and where the container would wait."""


def number(node, group, file, name):
    text = (kubepods.ROOT / group / file).read_text()
    return int(dict(line.split() for line in text.splitlines())[name])


def held(group):
    return int((kubepods.ROOT / group / "memory.current").read_text())


def waited(group):
    """Return for how many seconds tasks of a group have waited for memory so far."""
    some = (kubepods.ROOT / group / "memory.pressure").read_text().split("\n")[0]
    return int(some.split("total=")[1]) / 1e6


def read(megabytes, at):
    return f"dd if={DISK} of=/dev/null bs=256k count={megabytes * 4} skip={at * 4} 2>/dev/null"


def drop():
    """Begin without any page in memory that could be read again."""
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")


def reclaimer(node):
    def settings():
        return node.known.enforced.classes.memory, node.known.enforced.overrides

    return memory_reclaimer.Reclaimer(
        node.loop, node.clock, memory_reclaim.Rules(), metrics.Registry(), settings
    )


async def test_batch_memory_is_taken_back_in_the_background_and_online_memory_is_not(node, disk):
    amounts = {"kubernetes.io/batch-memory": f"{LIMIT}Mi"}
    _, batch = node.pod("batch", "BestEffort", {"limits": amounts, "requests": {}})
    online_limit = {"limits": {"memory": f"{LIMIT}Mi"}, "requests": {"memory": "1Mi"}}
    _, online = node.pod("online", "Burstable", online_limit)
    node.enforce(
        resourceQOSStrategy={
            "beClass": {"memoryQOS": {"enable": True, "wmarkRatio": RATIO, "throttlingPercent": 0}},
            "lsClass": {"memoryQOS": {"enable": True, "wmarkRatio": 95, "throttlingPercent": 0}},
        }
    )
    await node.seconds(1)
    assert node.groups.text(F.MEMORY_HIGH, batch) == str(LIMIT * RATIO // 100 * MIB)
    drop()
    await node.groups.run(batch, read(LEVEL, 0))
    await node.groups.run(online, read(LEVEL, 200))
    before = {group: held(group) for group in (batch, online)}
    begin = LIMIT * (RATIO - memory_reclaim.LEAD_PERCENT) // 100 * MIB
    assert begin < before[batch] < LIMIT * RATIO // 100 * MIB
    # Work of the application goes on meanwhile: it counts what it has done.
    node.groups.start(batch, "while :; do :; done")
    stood = waited(batch)
    await node.seconds(1)
    worked = node.groups.cpu_seconds(batch)
    await reclaimer(node).step()
    await node.clock.sleep(1)
    worked = node.groups.cpu_seconds(batch) - worked
    after = {group: held(group) for group in (batch, online)}
    print(
        f"batch held {before[batch] / MIB:.1f} MiB of {LIMIT}, then {after[batch] / MIB:.1f}, "
        f"and waited {waited(batch) - stood:.3f} s; "
        f"online {before[online] / MIB:.1f} and {after[online] / MIB:.1f} MiB"
    )
    assert after[batch] <= begin + MIB
    assert after[online] > 0.98 * before[online]
    assert waited(batch) - stood < 0.1
    assert number(node, batch, "memory.events", "high") == 0
    assert worked > 0.5


OWN, ALL, PUSH = 16, 48, 32
"""MiB that two containers read once, that all pods may hold, and that a third one reads then."""


async def test_where_memory_is_short_batch_pages_go_before_those_of_online_work(node, disk):
    """Priorities of reclaim have no file here: `memory.low` of online classes stands for them."""
    _, online = node.pod("online", "Burstable", {"requests": {"memory": f"{OWN + 4}Mi"}})
    _, batch = node.pod("batch", "BestEffort")
    _, third = node.pod("third", "Burstable")
    top = node.groups.layout.qos_group("Guaranteed")
    # As a kubelet limits all pods together, so that they compete for it.
    node.groups.write(F.MEMORY_LIMIT, top, str(ALL * MIB))

    async def kept():
        drop()
        await node.groups.run(online, read(OWN, 0))
        await node.groups.run(batch, read(OWN, 100))
        before = [number(node, one, "memory.stat", "file") for one in (online, batch)]
        await node.groups.run(third, read(PUSH, 200))
        after = [number(node, one, "memory.stat", "file") for one in (online, batch)]
        return [end / start for end, start in zip(after, before, strict=True)]

    without = await kept()
    quality = {"enable": True, "minLimitPercent": 0, "lowLimitPercent": 100, "wmarkMinAdj": -25}
    batch_quality = {"enable": True, "lowLimitPercent": 0, "wmarkMinAdj": 50}
    node.enforce(
        resourceQOSStrategy={
            "lsClass": {"memoryQOS": quality},
            "beClass": {"memoryQOS": batch_quality},
        }
    )
    await node.seconds(1)
    assert node.groups.text(F.MEMORY_LOW, online) == str((OWN + 4) * MIB)
    ordered = await kept()
    print(
        f"of their pages online work kept {without[0]:.2f} and batch work {without[1]:.2f} without "
        f"settings, {ordered[0]:.2f} and {ordered[1]:.2f} with them"
    )
    assert ordered[0] > 0.9
    assert ordered[1] < ordered[0] - 0.2
    assert without[0] < 0.9
