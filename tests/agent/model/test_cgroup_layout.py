"""Where groups lie, and what cannot be part of a path."""

from pathlib import Path

import msgspec
import pytest

from agent.host import files
from agent.model import cgroup_layout, state
from agent.observe.cgroups import cgroup_files
from agent.observe.node import boot

SYSTEMD = cgroup_layout.Layout("/cg", 2, "systemd")
PLAIN = cgroup_layout.Layout("/cg", 1, "cgroupfs")


@pytest.mark.parametrize(
    ("arranged", "quality", "expected"),
    [
        (SYSTEMD, "Guaranteed", "kubepods.slice/kubepods-poda_b.slice"),
        (
            SYSTEMD,
            "Burstable",
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice",
        ),
        (
            SYSTEMD,
            "BestEffort",
            "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poda_b.slice",
        ),
        (PLAIN, "Guaranteed", "kubepods/poda-b"),
        (PLAIN, "Burstable", "kubepods/burstable/poda-b"),
        (
            cgroup_layout.Layout("/cg", 1, "cgroupfs", "x"),
            "BestEffort",
            "x/kubepods/besteffort/poda-b",
        ),
    ],
)
def test_pods(arranged, quality, expected):
    assert arranged.pod_group("a-b", quality) == expected


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ("containerd://c1", "p/cri-containerd-c1.scope"),
        ("docker://c1", "p/docker-c1.scope"),
        ("cri-o://c1", "p/crio-c1.scope"),
        ("pouch://c1", "p/pouch-c1.scope"),
    ],
)
def test_containers(identity, expected):
    assert SYSTEMD.container_group("p", identity) == expected
    plain = "p/crio-c1" if identity.startswith("cri-o") else "p/c1"
    assert PLAIN.container_group("p", identity) == plain


@pytest.mark.parametrize("arranged", [SYSTEMD, PLAIN])
def test_a_group_has_one_text_wherever_it_is_named(arranged, tmp_path):
    """Records of hundreds of ticks name it, in decisions and in what was read of the host."""
    root = arranged.qos_group("BestEffort")
    cpusets = "" if arranged.version == 2 else "cpuset/"
    named = [arranged.pod_group("a", "BestEffort") for _ in range(2)]
    named += [arranged.container_group(named[0], "containerd://c1") for _ in range(2)]
    inside = tmp_path / cpusets / named[2]
    inside.mkdir(parents=True)
    for folder in (inside, inside.parent, inside.parent.parent):
        for file in ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus"):
            (folder / file).write_text("0-1\n", encoding="ascii")
    here = msgspec.structs.replace(arranged, root=str(tmp_path))
    best_effort = cgroup_files.Cgroups(here, files.Kept()).best_effort()
    assert [one.path for one in best_effort.groups] == [root, named[0], named[2]]
    assert best_effort.groups[1].path is named[0] is named[1]
    assert best_effort.groups[2].path is named[2] is named[3]


@pytest.mark.parametrize("identity", ["c1", "rkt://c1", "://c1", "docker://", "docker://../c"])
def test_impossible_containers(identity):
    with pytest.raises(cgroup_layout.LayoutError):
        SYSTEMD.container_group("p", identity)


@pytest.mark.parametrize(
    ("uid", "quality"), [("", "Burstable"), ("..", "Burstable"), ("a/b", "Burstable"), ("a", "x")]
)
def test_impossible_pods(uid, quality):
    with pytest.raises(cgroup_layout.LayoutError):
        SYSTEMD.pod_group(uid, quality)


def test_files_of_both_versions():
    assert SYSTEMD.path(cgroup_layout.File.CPU_QUOTA, "g") == "/cg/g/cpu.max"
    assert PLAIN.path(cgroup_layout.File.CPU_QUOTA, "g") == "/cg/cpu/g/cpu.cfs_quota_us"
    assert SYSTEMD.path(cgroup_layout.File.EFFECTIVE_CPUSET, "g") == "/cg/g/cpuset.cpus.effective"


@pytest.fixture
def bare(tmp_path):
    """A version 2 host on which nobody switched the cpuset controller on."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    group = tmp_path / "kubepods.slice/kubepods-besteffort.slice"
    (group / "kubepods-besteffort-podx.slice").mkdir(parents=True)
    return group, cgroup_files.Cgroups(cgroup_files.detect(str(tmp_path)), files.Kept())


def test_without_cpusets_there_is_still_a_quota(bare):
    group, cgroups = bare
    (group / "cpu.max").write_text("20000 100000\n")
    root = state.Group("kubepods.slice/kubepods-besteffort.slice", 0, frozenset())
    assert cgroups.best_effort() == state.BestEffort((root,), None, 20_000)


def test_without_any_file_there_is_nothing(bare):
    assert bare[1].best_effort() is None


def test_own_cpus_stand_in_for_missing_effective_ones(bare):
    group, cgroups = bare
    (group / "cpuset.cpus").write_text("0-2\n")
    found = cgroups.best_effort()
    assert found.cpus == frozenset({0, 1, 2})
    assert found.quota_us is None


@pytest.mark.parametrize("text", [b"0-x\n", b"\xff\n"])
def test_a_bad_cpu_list_names_the_group(bare, text):
    (bare[0] / "cpuset.cpus").write_bytes(text)
    with pytest.raises(files.ReadingError, match="besteffort"):
        bare[1].best_effort()


def test_a_kernel_without_boot_id(tmp_path):
    assert boot.boot_id(str(tmp_path)) == ""


@pytest.mark.parametrize(("version", "listed"), [(1, True), (2, False)])
def test_groups_that_a_container_makes_inside_itself(tmp_path, version, listed):
    """On version 1 those above may not have fewer cpus than they."""
    arranged = cgroup_layout.Layout(str(tmp_path), version, "cgroupfs")
    groups = ["kubepods/besteffort", "podx", "c1", "inner", "deeper"]
    paths = ["/".join(groups[: count + 1]) for count in range(5)]
    for path in paths:
        folder = Path(arranged.folder(cgroup_layout.File.CPUSET, path))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpuset.cpus").write_text("0-3\n")
    kept = files.Kept()
    found = cgroup_files.Cgroups(arranged, kept).best_effort()
    kept.close()
    every = [(path, depth) for depth, path in enumerate(paths)]
    assert [(one.path, one.depth) for one in found.groups] == (every if listed else every[:3])
