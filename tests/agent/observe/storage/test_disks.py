"""What pods and disks move is told by the kernel's counters, without counting anything twice."""

import pytest

from agent.observe import collectors
from agent.observe.storage import disks
from process.runtime import metrics

STATS = """ 8 0 sda 10 0 100 5 20 0 200 5 0 1500 10 0 0 0 0 0 0
 8 1 sda1 10 0 100 5 20 0 200 5 0 1500 10 0 0 0 0 0 0
 253 0 dm-0 10 0 100 5 20 0 200 5 0 1500 10 0 0 0 0 0 0
 7 0 loop0 1 0 1 1 1 0 1 1 0 1 1 0 0 0 0 0 0
 x
"""
IO_V2 = "8:0 rbytes={0} wbytes=2000 rios=5 wios=6 dbytes=0 dios=0\n253:0 rbytes=9 wios=1\n7:0\n"
BYTES_V1 = "8:0 Read {0}\n8:0 Write 2000\n8:0 Discard 7\n8:0 Total 9\n253:0 Read 9\nTotal 18\n"
COUNTS_V1 = "8:0 Read 5\n8:0 Write 6\n8:0 Sync 1\nTotal 12\n"


@pytest.fixture
def moving(host):
    host.add("a", "Burstable", 100)
    host.registry = metrics.Registry()
    made = disks.Disks(host.registry, 10.0)
    host.observer._collectors = collectors.Collectors([made])
    for name, number, slaves in (
        ("sda", "8:0", ()),
        ("dm-0", "253:0", ("sda",)),
        ("loop0", "7:0", ()),
    ):
        folder = host.tree.sys / "block" / name
        (folder / "slaves").mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        for slave in slaves:
            (folder / "slaves" / slave).mkdir()
    (host.tree.proc / "diskstats").write_text(STATS)
    return host


def moves(host, read):
    (pod,) = host.look().pods
    for group in (pod.group, pod.containers[0].group):
        if host.tree.version == 2:
            (host.tree.cgroup / group / "io.stat").write_text(IO_V2.format(read))
            continue
        folder = host.tree.cgroup / "blkio" / group
        folder.mkdir(parents=True, exist_ok=True)
        name = "blkio.throttle.io_{}_recursive"
        (folder / name.format("service_bytes")).write_text(BYTES_V1.format(read))
        (folder / name.format("serviced")).write_text(COUNTS_V1)


def test_a_kernel_that_does_not_count_yet_is_named_and_no_zeros_are_told(moving):
    """Since Linux 6.10, version 1 counts nothing before a disk has a limit."""
    moves(moving, 1000)
    begins_late = moving.tree.version == 1
    root = moving.tree.cgroup / "blkio" / "blkio.throttle.io_service_bytes_recursive"
    root.parent.mkdir(exist_ok=True)
    root.write_text("Total 0\n")
    said = moving.step(10).problems.get("disks", "")
    assert ("before one of them has a limit" in said) is begins_late
    assert of_group(moving, "bytes", "write") == (None if begins_late else 2000)
    assert of_node(moving, "bytes", disk="sda", direction="write") == 200 * 512
    root.write_text(BYTES_V1.format(1000))
    assert "disks" not in moving.step(10).problems
    assert of_group(moving, "bytes", "write") == 2000


def of_group(host, name, direction, container="app"):
    labels = {"pod_namespace": "default", "pod_name": "name-a", "container": container}
    return host.registry.value(f"koord_agent_disk_{name}_total", labels | {"direction": direction})


def of_node(host, name, **labels):
    return host.registry.value(f"koord_agent_node_disk_{name}_total", labels)


def test_the_disks_of_the_node(moving):
    moves(moving, 0)
    moving.step()
    assert of_node(moving, "bytes", disk="sda", direction="read") == 100 * 512
    assert of_node(moving, "bytes", disk="sda", direction="write") == 200 * 512
    assert of_node(moving, "operations", disk="sda", direction="write") == 20
    assert of_node(moving, "busy_seconds", disk="sda") == 1.5
    for name in ("sda1", "dm-0", "loop0"):
        assert of_node(moving, "bytes", disk=name, direction="read") is None
    (moving.tree.proc / "diskstats").write_text("")
    moving.step(10)
    assert of_node(moving, "bytes", disk="sda", direction="read") is None


def test_groups_count_each_disk_once_and_go_with_their_pod(moving):
    assert "counts for no pod" in moving.step().problems["disks"]
    moves(moving, 1000)
    assert "disks" not in moving.step(10).problems
    assert of_group(moving, "bytes", "read") == 1000
    assert of_group(moving, "bytes", "write", "") == 2000
    assert of_group(moving, "operations", "read") == 5
    assert of_group(moving, "operations", "write") == 6
    moves(moving, 3000)
    moving.step(10)
    samples = moving.observer.samples
    assert samples.get(("pod", "a", "disk-read")).newest[1] == 200.0
    assert samples.get(("container", "a", "app", "disk-write-operations")).newest[1] == 0.0
    moving.know(pods=())
    moving.step(10)
    assert of_group(moving, "bytes", "read") is None
    moving.observer.close()
    assert of_node(moving, "bytes", disk="sda", direction="read") is None
