"""What protection and throttling of memory do on a real kernel, with pages of a real disk."""

import os
import pathlib

import pytest
import pytest_asyncio

from agent.model import cgroup_layout
from tests.planes.host import kubepods

F = cgroup_layout.File
DISK = pathlib.Path("/dev/vda")
MIB = kubepods.MIB
OWN, RIVAL, TOGETHER = 16, 40, 32
"""What the online container reads, what the other one reads again and again, and what all pods may
hold, in MiB."""
GATES = frozenset({"CgroupReconcile", "BatchResource"})


@pytest.fixture
def disk():
    # The pages of a device are dropped when nobody has it open any more.
    descriptor = os.open(DISK, os.O_RDONLY)
    yield DISK
    os.close(descriptor)


@pytest_asyncio.fixture
async def node(tmp_path, disk):
    groups = kubepods.Groups(f"koord-memory-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path, kubepods.Setup(gates=GATES))
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


def read(megabytes, at, times=1):
    one = f"dd if={DISK} of=/dev/null bs=256k count={megabytes * 4} skip={at * 4} 2>/dev/null"
    return "; ".join([one] * times)


def number(node, group, file, name):
    text = (kubepods.ROOT / group / file).read_text()
    return int(dict(line.split() for line in text.splitlines())[name])


def drop():
    """Begin without any page in memory that could be read again."""
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")


async def kept(node, online, batch):
    """Let the other read; return what of the pages is still there and how many had to come back."""
    drop()
    await node.groups.run(online, read(OWN, 0))
    begin = number(node, online, "memory.stat", "file")
    await node.groups.run(batch, read(RIVAL, 100, 3))
    left = number(node, online, "memory.stat", "file")
    before = number(node, online, "memory.stat", "workingset_refault_file")
    await node.groups.run(online, read(OWN, 0))
    after = number(node, online, "memory.stat", "workingset_refault_file")
    return left / begin, after - before


async def test_protected_pages_stay_while_batch_work_reads(node):
    _, online = node.pod("online", "Burstable", {"requests": {"memory": f"{OWN + 4}Mi"}})
    _, batch = node.pod("batch", "BestEffort")
    top = node.groups.layout.qos_group("Guaranteed")
    # As a kubelet limits all pods together, so that they compete for it.
    node.groups.write(F.MEMORY_LIMIT, top, str(TOGETHER * MIB))
    measured = {"none": await kept(node, online, batch)}
    for what in ("min", "low"):
        quality = {"enable": True, "minLimitPercent": 0, "lowLimitPercent": 0}
        quality[f"{what}LimitPercent"] = 100
        node.enforce(resourceQOSStrategy={"lsClass": {"memoryQOS": quality}})
        await node.seconds(1)
        file = {"min": F.MEMORY_MIN, "low": F.MEMORY_LOW}[what]
        assert node.groups.text(file, online) == str((OWN + 4) * MIB)
        measured[what] = await kept(node, online, batch)
    node.uninstall()
    assert node.groups.text(F.MEMORY_MIN, online) == "0"
    measured["undone"] = await kept(node, online, batch)
    for what, (part, again) in measured.items():
        ratio = again / max(measured["none"][1], 1)
        print(
            f"memory.{what}: {part:.2f} of the pages stayed, {again} came back, ratio {ratio:.2f}"
        )
    for what in ("min", "low"):
        assert measured[what][0] > 0.9
        assert measured[what][1] < measured["none"][1] / 4
    for what in ("none", "undone"):
        assert measured[what][0] < 0.6
    assert number(node, batch, "memory.events", "oom_kill") == 0


async def test_a_throttled_container_reclaims_its_own_pages(node):
    asked = {"kubernetes.io/batch-memory": f"{TOGETHER // 2}Mi"}
    limits = {"kubernetes.io/batch-memory": f"{TOGETHER}Mi"}
    _, batch = node.pod("batch", "BestEffort", {"requests": asked, "limits": limits})
    high = TOGETHER * 3 // 4 * MIB

    async def peak():
        drop()
        node.groups.start(batch, read(RIVAL * 2, 100))
        most = 0
        while node.groups.processes[-1].poll() is None:
            await node.seconds(kubepods.TICK)
            most = max(most, int((kubepods.ROOT / batch / "memory.current").read_text()))
        node.groups.stop(node.groups.processes[-1])
        return most

    without = await peak()
    assert number(node, batch, "memory.events", "high") == 0
    quality = {"enable": True, "throttlingPercent": 50, "wmarkRatio": 0}
    node.enforce(resourceQOSStrategy={"beClass": {"memoryQOS": quality}})
    await node.seconds(1)
    assert node.groups.text(F.MEMORY_HIGH, batch) == str(high)
    held = await peak()
    reclaims = number(node, batch, "memory.events", "high")
    print(
        f"memory.high {high // MIB} MiB: held up to {held / MIB:.1f} MiB, {without / MIB:.1f} MiB "
        f"without, ratio {held / without:.2f}; {reclaims} times over it"
    )
    assert reclaims > 0
    assert held < high * 1.1
    assert without > high
    node.uninstall()
    assert node.groups.text(F.MEMORY_HIGH, batch) == "max"
