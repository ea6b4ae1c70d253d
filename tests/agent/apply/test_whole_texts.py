"""Files that other programs read, the mount of resctrl, and lists of scheduler features."""

import json
import os

import msgspec
import pytest

from agent.apply import executor, journal, resctrl_mount
from agent.apply.properties import partial_properties, property_files
from agent.host import files
from agent.model import cgroup_layout, edits
from agent.observe.node import kernel_features

R = edits.Role


@pytest.fixture
def arranged(tmp_path):
    (tmp_path / "qos").mkdir()
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    (tmp_path / "sys/kernel/debug/sched").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    return cgroup_layout.Layout(
        str(tmp_path / "cgroup"),
        1,
        "cgroupfs",
        proc=str(tmp_path / "proc"),
        sys=str(tmp_path / "sys"),
        terway=str(tmp_path / "qos"),
    )


@pytest.fixture
def state_folder(tmp_path):
    return tmp_path / "state"


def acting(arranged, folder):
    kept = journal.Journal(folder, "boot")
    kept.load()
    return executor.Executor(property_files.Knobs(arranged), kept, writing=True)


def telling(text):
    return [edits.Edit(R.TERWAY_PODS, "", text, "r")]


def outcomes(outcome):
    return [what for what, _, _ in outcome.records]


@pytest.mark.parametrize("before", [None, '{"a": 1}\n', ""], ids=["absent", "a text", "empty"])
def test_a_file_comes_back_as_it_was(arranged, tmp_path, state_folder, before):
    file = tmp_path / "qos" / "pod.json"
    if before is not None:
        file.write_text(before)
        file.chmod(0o640)
    doing = acting(arranged, state_folder)
    first, second = json.dumps({"näher": 1}), json.dumps({"b": "c" * 70_000})
    assert outcomes(doing.apply(telling(first), 0)) == ["written"]
    assert outcomes(doing.apply(telling(second), 1)) == ["written"]
    assert file.read_text() == second
    assert doing.apply(telling(second), 2).records == []
    # A crash: another run knows from the journal alone.
    acting(arranged, state_folder).put_back("start")
    assert (file.read_text() if file.exists() else None) == before
    assert before is None or file.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in (tmp_path / "qos").iterdir()] == [file.name] * (before is not None)


def test_what_somebody_wrote_since_stays(arranged, tmp_path, state_folder):
    doing = acting(arranged, state_folder)
    doing.apply(telling("{}"), 0)
    (tmp_path / "qos" / "pod.json").write_text("12 other")
    assert outcomes(doing.put_back("stop")) == ["left"]
    assert (tmp_path / "qos" / "pod.json").read_text() == "12 other"


def test_without_a_folder_nothing_is_forgotten(arranged, tmp_path, state_folder):
    acting(arranged, state_folder).apply(telling("{}"), 0)
    unnamed = msgspec.structs.replace(arranged, terway="")
    outcome = acting(unnamed, state_folder).put_back("undo")
    assert outcomes(outcome) == ["failed"]
    assert "host.terwayQos" in outcome.records[0][2]
    acting(arranged, state_folder).put_back("undo")
    assert not (tmp_path / "qos" / "pod.json").exists()


def test_a_host_without_terway_has_nothing_to_write(arranged, tmp_path, state_folder):
    (tmp_path / "qos").rmdir()
    assert acting(arranged, state_folder).apply(telling("{}"), 0).records == []
    assert R.TERWAY_PODS not in kernel_features.kernel(arranged, ["g"]).roles


def test_a_folder_is_enough_to_be_told(arranged):
    assert R.TERWAY_PODS in kernel_features.kernel(arranged, ["g"]).roles


def test_texts_that_begin_with_one_number_differ(arranged, state_folder):
    doing = acting(arranged, state_folder)
    doing.apply(telling("12 a"), 0)
    assert outcomes(doing.apply(telling("12 b"), 1)) == ["written"]


@pytest.mark.parametrize(
    ("data", "said"), [(b"\xff", "no text"), (b"absent", "holds the one word")]
)
def test_a_file_that_cannot_be_told_apart_is_left_alone(
    arranged, tmp_path, state_folder, data, said
):
    file = tmp_path / "qos" / "pod.json"
    file.write_bytes(data)
    outcome = acting(arranged, state_folder).apply(telling("{}"), 0)
    assert outcomes(outcome) == ["failed"]
    assert said in outcome.records[0][2]
    assert file.read_bytes() == data


@pytest.mark.parametrize("where", ["sched/features", "sched_features"])
def test_features_are_switched_where_the_kernel_lists_them(arranged, tmp_path, where):
    file = tmp_path / "sys/kernel/debug" / where
    file.write_text("GENTLE NO_CORE_SCHED\n")
    place = partial_properties.place(arranged, R.SCHED_FEATURE)
    assert place.read("CORE_SCHED") == "0"
    place.write("CORE_SCHED", "1")
    assert file.read_text() == "CORE_SCHED\n"
    assert R.SCHED_FEATURE in kernel_features.kernel(arranged, ["g"]).roles


class Mounts:
    """A kernel that mounts and unmounts a stand-in."""

    def __init__(self, arranged):
        self.calls = []
        self.place = resctrl_mount.Resctrl(arranged, self.mount, self.unmount)

    def mount(self, path):
        self.calls.append("mount")
        with open(f"{path}/schemata", "w") as file:  # noqa: PTH123 - the layout speaks in texts
            file.write("L3:0=ff\n")

    def unmount(self, path):
        self.calls.append("unmount")
        os.unlink(f"{path}/schemata")  # noqa: PTH108 - as above


def test_resctrl_is_mounted_last_on_and_first_off(arranged, state_folder, monkeypatch):
    stand_in = Mounts(arranged)
    monkeypatch.setattr(resctrl_mount, "Resctrl", lambda _: stand_in.place)
    doing = acting(arranged, state_folder)
    wanted = [edits.Edit(R.RESCTRL_MOUNT, "", "present", "r")]
    assert outcomes(doing.apply(wanted, 0)) == ["written"]
    wanted.append(edits.Edit(R.RESCTRL_GROUP, "BE", "present", "r"))
    assert outcomes(doing.apply(wanted, 1)) == ["written"]
    put_back = acting(arranged, state_folder).put_back("start")
    assert [write.role for _, write, _ in put_back.records] == [R.RESCTRL_GROUP, R.RESCTRL_MOUNT]
    assert stand_in.calls == ["mount", "unmount"]


def test_a_mount_of_somebody_else_stays(arranged, state_folder, monkeypatch):
    stand_in = Mounts(arranged)
    stand_in.mount(arranged.sys + "/fs/resctrl")
    monkeypatch.setattr(resctrl_mount, "Resctrl", lambda _: stand_in.place)
    doing = acting(arranged, state_folder)
    wanted = [edits.Edit(R.RESCTRL_MOUNT, "", "present", "r")]
    assert doing.apply(wanted, 0).records == []
    assert doing.put_back("stop").records == []
    assert stand_in.calls == ["mount"]


def test_a_kernel_without_resctrl_has_nothing_to_mount(arranged, tmp_path):
    (tmp_path / "sys/fs/resctrl").rmdir()
    with pytest.raises(files.VanishedError, match="divides no caches"):
        resctrl_mount.Resctrl(arranged).read("")


def test_a_mount_that_is_refused_says_what_is_missing(tmp_path):
    with pytest.raises(OSError, match="of resctrl: "):
        resctrl_mount.mount_resctrl(str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="of resctrl: "):
        resctrl_mount.unmount_resctrl(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("flags", "folder", "expected"),
    [("fpu cat_l3 mba", True, True), ("fpu", True, False), ("cat_l3 mba", False, False)],
)
def test_whether_a_cache_could_be_divided(arranged, tmp_path, flags, folder, expected):
    (tmp_path / "proc/cpuinfo").write_text(f"vendor_id : GenuineIntel\nflags : {flags}\n")
    if not folder:
        (tmp_path / "sys/fs/resctrl").rmdir()
    assert kernel_features.can_divide(arranged.proc, arranged.sys) is expected


def test_groups_of_pods_are_found_on_disk(arranged, tmp_path):
    for name in ("burstable/poda", "besteffort/podb", "other", "podc", "besteffort/d"):
        (tmp_path / "cgroup/cpu/kubepods" / name).mkdir(parents=True)
    classes = {name: arranged.qos_group(name) for name in ("Guaranteed", "Burstable", "BestEffort")}
    assert kernel_features.pod_groups(arranged, classes) == {
        "kubepods/podc": "Guaranteed",
        "kubepods/burstable/poda": "Burstable",
        "kubepods/besteffort/podb": "BestEffort",
    }


def test_groups_of_a_cache_are_found_with_their_age(arranged, tmp_path):
    root = tmp_path / "sys/fs/resctrl"
    for name in ("info/L3", "koordlet-a", "mon_groups"):
        (root / name).mkdir(parents=True)
    (root / "info/L3/cbm_mask").write_text("ff\n")
    (root / "schemata").write_text("    L3:0=ff;1=ff\n")
    (tmp_path / "proc/cpuinfo").write_text("vendor_id : GenuineIntel\nflags : cat_l3 mba\n")
    os.utime(root / "koordlet-a", (5, 5))
    assert kernel_features.caches(arranged.proc, arranged.sys).groups == {"koordlet-a": 5}
