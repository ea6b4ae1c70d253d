"""The generated host: figures that belong together and groups that behave."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.kubelet import nodefs

GIB = 1 << 30
BATCH = {
    (1, "systemd"): "cpuset/kubepods.slice/kubepods-besteffort.slice",
    (2, "systemd"): "kubepods.slice/kubepods-besteffort.slice",
    (1, "cgroupfs"): "cpuset/kubepods/besteffort",
    (2, "cgroupfs"): "kubepods/besteffort",
}
LAYOUTS = pytest.mark.parametrize(
    ("version", "driver"), list(BATCH), ids=[f"v{v}-{d}" for v, d in BATCH]
)


def busy_ticks(tree: nodefs.HostTree) -> int:
    fields = (tree.proc / "stat").read_text().splitlines()[0].split()
    return sum(int(fields[column]) for column in (1, 2, 3, 6, 7))


def meminfo(tree: nodefs.HostTree) -> dict[str, int]:
    lines = (tree.proc / "meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def used_ns(tree: nodefs.HostTree, folder: str) -> int:
    if tree.version == 1:
        return int((tree.cgroup / "cpuacct" / folder / "cpuacct.usage").read_text())
    first = (tree.cgroup / folder / "cpu.stat").read_text().split()
    return int(first[1]) * 1000


@LAYOUTS
def test_groups_lie_where_a_kubelet_puts_them(tmp_path, version, driver):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB, version, driver)
    tree.add_pod("a-b", "BestEffort", ["c1"])
    pod = {
        "systemd": "kubepods-besteffort-poda_b.slice/cri-containerd-c1.scope",
        "cgroupfs": "poda-b/c1",
    }[driver]
    assert (tree.cgroup / BATCH[version, driver] / pod / "cpuset.cpus").is_file()
    tree.remove_pod("a-b")
    assert not (tree.cgroup / BATCH[version, driver] / pod).exists()
    assert tree.pods == ()


@LAYOUTS
def test_the_node_uses_what_the_system_and_the_pods_use(tmp_path, version, driver):
    tree = nodefs.HostTree(tmp_path, 8, 16 * GIB, version, driver)
    tree.add_pod("p1", "Burstable", ["c1", "c2"])
    tree.set_load("p1", 1500, 3 * GIB)
    tree.set_load(nodefs.SYSTEM, 500, GIB)
    tree.advance(10)
    assert busy_ticks(tree) == 2000
    figures = meminfo(tree)
    assert figures["MemTotal"] - figures["MemAvailable"] == 4 * GIB


def test_best_effort_gets_what_the_others_leave(tmp_path):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB)
    tree.add_pod("online", "Guaranteed", ["c1"])
    tree.add_pod("batch", "BestEffort", ["c2"])
    tree.set_load("online", 3000, 0)
    tree.set_load("batch", 4000, 0)
    tree.advance(1)
    assert used_ns(tree, "kubepods.slice/kubepods-besteffort.slice") == 1_000_000_000


@pytest.mark.parametrize(
    ("file", "text", "cores"),
    [("cpuset.cpus", "0-1", 2.0), ("cpu.max", "150000 100000", 1.5), ("cpu.max", "max 100000", 4)],
)
def test_best_effort_stays_within_its_group(tmp_path, file, text, cores):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB)
    tree.add_pod("batch", "BestEffort", ["c"])
    tree.set_load("batch", 9000, 0)
    (tree.cgroup / BATCH[2, "systemd"] / file).write_text(text)
    assert tree.used_cores() == cores


def test_effective_cpus_follow_the_group_above(tmp_path):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB)
    tree.add_pod("batch", "BestEffort", ["c"])
    group = tree.cgroup / BATCH[2, "systemd"]
    (group / "cpuset.cpus").write_text("0-1")
    tree.advance(1)
    container = group / "kubepods-besteffort-podbatch.slice/cri-containerd-c.scope"
    assert (container / "cpuset.cpus.effective").read_text().strip() == "0-1"
    assert (container / "cpuset.cpus").read_text().strip() == ""


def test_groups_keep_what_departed_pods_used(tmp_path):
    tree = nodefs.HostTree(tmp_path, 4, 8 * GIB)
    tree.add_pod("p", "Burstable", ["c"])
    tree.set_load("p", 1000, 0)
    tree.advance(2)
    tree.remove_pod("p")
    assert used_ns(tree, "kubepods.slice") == 2_000_000_000


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda tree: tree.add_pod("p", "Best", []), "qos_class 'Best'"),
        (lambda tree: tree.set_load("nobody", 1, 1), "no pod 'nobody'"),
        (lambda tree: tree.set_load("system", -1, 1), "negative"),
    ],
    ids=["qos class", "unknown pod", "negative load"],
)
def test_what_no_host_could_be_is_refused(tmp_path, act, message):
    tree = nodefs.HostTree(tmp_path, 1, GIB)
    with pytest.raises(nodefs.HostTreeError, match=message):
        act(tree)


def test_a_host_needs_a_cpu(tmp_path):
    with pytest.raises(nodefs.HostTreeError, match="at least one cpu"):
        nodefs.HostTree(tmp_path, 0, GIB)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9000), st.floats(0.01, 5)), min_size=1, max_size=6),
    st.sampled_from([1, 2]),
)
def test_node_time_is_the_sum_of_its_users(tmp_path_factory, steps, version):
    root: Path = tmp_path_factory.mktemp("host")
    tree = nodefs.HostTree(root, 4, 8 * GIB, version)
    tree.add_pod("a", "Burstable", ["c1", "c2"])
    tree.add_pod("b", "BestEffort", ["c3"])
    for milli, seconds in steps:
        tree.set_load("a", milli, 0)
        tree.set_load("b", 9000 - milli, 0)
        tree.advance(seconds)
    folders = [
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda.slice",
        "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podb.slice",
    ]
    total = sum(used_ns(tree, folder) for folder in folders)
    assert abs(busy_ticks(tree) * 10_000_000 - total) <= 10_000_000 + 2000
    parts = [used_ns(tree, f"{folders[0]}/cri-containerd-{name}.scope") for name in ("c1", "c2")]
    assert abs(sum(parts) - used_ns(tree, folders[0])) <= 2000
