"""Which device lies on which disk, told by the files of the kernel alone."""

import pytest

from agent.host import block_devices, files
from agent.model import strategy_settings
from agent.observe import collectors
from agent.observe.storage import volumes

UID = "11-22"


def device(sys, name, number, *parts, slaves=(), mapped="", uuid="LVM-x"):
    folder = sys / "block" / name
    (folder / "slaves").mkdir(parents=True)
    (folder / "dev").write_text(f"{number}\n")
    major, minor = number.split(":")
    for position, part in enumerate(parts, 1):
        (folder / part).mkdir()
        (folder / part / "dev").write_text(f"{major}:{int(minor) + position}\n")
    for slave in slaves:
        (folder / "slaves" / slave).mkdir()
    if mapped:
        (folder / "dm").mkdir()
        (folder / "dm" / "name").write_text(f"{mapped}\n")
        (folder / "dm" / "uuid").write_text(f"{uuid}\n")


@pytest.fixture
def machine(tmp_path):
    """Two disks, a volume group on one of them, one on both, and a volume on an encrypted one."""
    device(tmp_path, "sda", "8:0", "sda1", "sda2")
    device(tmp_path, "sdb", "8:16", "sdb1")
    device(tmp_path, "loop0", "7:0")
    device(tmp_path, "zram0", "253:9")
    device(tmp_path, "dm-0", "253:0", slaves=["sda2"], mapped="my--data-logs")
    device(tmp_path, "dm-1", "253:1", slaves=["sda1", "sdb1"], mapped="both-one")
    device(tmp_path, "dm-2", "253:2", slaves=["sdb1"], mapped="crypt", uuid="CRYPT-LUKS2")
    device(tmp_path, "dm-3", "253:3", slaves=["dm-2"], mapped="secret-a--b")
    (tmp_path / "block" / "broken").mkdir()
    return tmp_path


def test_disks_groups_and_what_lies_on_what(machine):
    found = block_devices.look(str(machine))
    assert found.disks == {"8:0": "sda", "8:16": "sdb"}
    assert found.groups() == {"my-data": "8:0", "secret": "8:16"}
    assert found.under("sda2") == {"8:0"}
    assert found.under("dm-1") == {"8:0", "8:16"}
    assert found.under("dm-3") == {"8:16"}
    assert found.under("nothing") == frozenset()
    assert found.named("8:17") == "sdb1"
    assert found.named("9:9") == ""
    assert block_devices.look(str(machine / "none")).disks == {}


PODS = f"/var/lib/kubelet/pods/{UID}/volumes"
TABLE = f"""1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:50 / {PODS}/kubernetes.io~secret/token rw,nosuid - tmpfs tmpfs rw
3 1 253:3 / {PODS}/kubernetes.io~csi/pvc-1/mount rw shared:9 - xfs /dev/mapper/secret-a--b rw
4 1 0:60 / {PODS}/kubernetes.io~local-volume/pvc\\0402 rw - btrfs /dev/sda2 rw
5 1 0:61 / {PODS}/kubernetes.io~csi/pvc-3/mount rw - btrfs /dev/mapper/my--data-logs rw
6 1 253:1 / {PODS}/kubernetes.io~csi/pvc-4/mount rw - ext4 /dev/mapper/both-one rw
7 1 8:17 / {PODS}/kubernetes.io~csi/pvc-5/other rw - ext4 /dev/sdb1 rw
nonsense
"""


def test_volumes_of_pods(machine):
    found = volumes.mounted(TABLE, block_devices.look(str(machine)))
    assert found == {UID: {"pvc-1": "8:16", "pvc 2": "8:0", "pvc-3": "8:0"}}


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
        ({"pvc-1": "8:0"}, "pvc-1", "8:0"),
        ({"pvc-1": "8:0"}, "data", "8:0"),
        ({"pvc-1": "8:0", "pvc-2": "8:16"}, "pvc-2", "8:16"),
        ({"pvc-1": "8:0", "pvc-2": "8:16"}, "data", ""),
        ({}, "data", ""),
    ],
)
def test_names_of_volumes(known, name, expected):
    assert volumes.disk_of(known, name) == expected


def test_decisions_learn_of_volumes(host, new_pod, machine):
    written = '{"blocks": [{"name": "data", "type": "podvolume", "ioCfg": {"readIOPS": 10}}]}'
    pod = new_pod(UID, **{"koordinator.sh/blkioQOS": written})
    host.tree.add_pod(UID, "Burstable", [f"c-{UID}"])
    host.know(pods=(pod,))
    host.observer._collectors = collectors.Collectors([volumes.Volumes(10.0)])
    host.step()
    (machine / "block").rename(host.tree.sys / "block")
    said = host.step(10).problems["volumes"]
    assert "mountinfo" in said
    table = host.tree.proc / "1" / "mountinfo"
    table.parent.mkdir()
    table.write_text("\n".join(TABLE.splitlines()[:3]))
    host.know(enforced=strategy_settings.Strategies())
    picture = host.step(60)
    assert "volumes" not in picture.problems
    assert picture.disks["device:/dev/sda1"] == "8:0"
    assert {name: disk for name, disk in picture.disks.items() if "device" not in name} == {
        "volumegroup:my-data": "8:0",
        "volumegroup:secret": "8:16",
        f"podvolume:{UID}/data": "8:16",
    }
    table.write_text(TABLE)
    assert f"no disk of {UID}/data" in host.step(10).problems["volumes"]
    assert f"podvolume:{UID}/data" not in host.look().disks
    host.know(pods=())
    assert "volumes" not in host.step(10).problems


def test_a_pod_that_asks_for_nothing_costs_no_reading(host):
    host.add("a", "Burstable", 100)
    host.observer._collectors = collectors.Collectors([volumes.Volumes(10.0)])
    assert "volumes" not in host.step().problems
    assert volumes.wishes(host.look().pods) == {}
    with pytest.raises(files.ReadingError):
        files.read(str(host.tree.proc / "1" / "mountinfo"))
