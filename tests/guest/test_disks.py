"""Limits and weights of a real disk: what they do, and that nothing of them is left."""

import os
import pathlib

import pytest_asyncio

from tests.planes.host import kubepods

SECONDS = 3
DISK = "/dev/vda"
LIMIT = kubepods.MIB
READ = f"while :; do dd if={DISK} of=/dev/null bs=64k iflag=direct 2>/dev/null; done"


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-disks-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path, kubepods.Setup(gates=frozenset({"BlkIOReconcile"})))
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


def device():
    return pathlib.Path("/sys/block/vda/dev").read_text().strip()


def lines(group, file):
    """Return the lines of a file by device."""
    text = (kubepods.ROOT / group / file).read_text()
    return {words[0]: words[1:] for words in map(str.split, text.splitlines())}


def has_read(group, number):
    found = dict(word.split("=") for word in lines(group, "io.stat").get(number, []))
    return int(found.get("rbytes", 0))


async def test_a_disk_is_limited_and_weighed_and_let_go(node):
    number = device()
    class_ = node.groups.layout.qos_group("BestEffort")
    _, batch = node.pod("batch", "BestEffort")
    node.groups.start(batch, READ)

    async def rate():
        before = has_read(batch, number)
        await node.clock.sleep(SECONDS)
        return (has_read(batch, number) - before) / SECONDS

    def told(**config):
        block = {"type": "device", "name": DISK, "ioCfg": config}
        return {"blkioQOS": {"enable": True, "blocks": [block]}}

    node.enforce()
    await node.seconds(1)
    free = await rate()
    every = told(enableUserModel=False)
    node.enforce(
        resourceQOSStrategy={
            "beClass": told(readBPS=LIMIT, ioWeightPercent=50),
            "cgroupRoot": every,
        }
    )
    await node.until(lambda: number in lines(class_, "io.weight"), 20)
    assert f"rbps={LIMIT}" in lines(class_, "io.max")[number]
    assert lines(class_, "io.weight")[number] == ["50"]
    assert "enable=1" in lines("", "io.cost.qos")[number]
    await node.clock.sleep(1)
    held = await rate()
    node.uninstall()
    print(
        f"best effort reads {held / kubepods.MIB:.2f} MiB/s of {free / kubepods.MIB:.1f} with a "
        f"limit of {LIMIT / kubepods.MIB:.0f}, ratio {held / free:.3f}"
    )
    assert held < 1.5 * LIMIT < free
    assert lines(class_, "io.max") == {}
    assert lines(class_, "io.weight") == {"default": ["100"]}
    assert "enable=0" in lines("", "io.cost.qos")[number]
