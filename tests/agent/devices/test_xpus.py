"""Accelerators that files describe."""

import json

import pytest

from agent.devices import device_inventory, vendor_files

NPU = {
    "vendor": "huawei",
    "model": "Ascend-910B3",
    "uuid": "npu-1-0",
    "minor": "0",
    "resources": {"gpu-memory": "65536Mi", "huawei.com/npu-core": "20", "gpu-core": 100},
    "topology": {
        "p2pLinks": [{"peerMinor": "1,2", "type": "HCCS"}],
        "mustHonorPartition": False,
        "socketID": "-1",
        "nodeID": "0",
        "pcieID": "pci0000:3a",
        "busID": "0000:3b:00.0",
    },
    "status": {"healthy": True, "errCode": "", "errMessage": ""},
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def write(folder, name, *records):
    (folder / name).write_text(json.dumps(records))


def record(number, **changes):
    return {"uuid": f"npu-{number}", "minor": str(number), **changes}


def test_a_record(folder):
    write(folder, "ic-device", NPU)
    found = vendor_files.Folder(str(folder)).discover()
    (one,) = found.devices
    assert one == device_inventory.Device(
        "gpu",
        "npu-1-0",
        0,
        {
            "koordinator.sh/gpu-memory-ratio": "100",
            "koordinator.sh/gpu-memory": "64Gi",
            "huawei.com/npu-core": "20",
            "koordinator.sh/gpu-core": "100",
        },
        verdict=device_inventory.Verdict(True, "DeviceHealthy", "device is healthy"),
        place=device_inventory.Place(0, "pci0000:3a", "0000:3b:00.0", -1),
    )
    assert found.labels == {
        "node.koordinator.sh/gpu-vendor": "huawei",
        "node.koordinator.sh/gpu-model": "Ascend-910B3",
        "node.koordinator.sh/gpu-partition-policy": "Prefer",
    }
    written = json.loads(found.annotations["scheduling.koordinator.sh/gpu-partitions"])
    assert written == {"3": [{"minors": [0, 1, 2], "gpuLinkType": "HCCS", "allocationScore": 1}]}
    assert found.complete
    assert found.problems == ()


@pytest.mark.parametrize(
    ("status", "healthy", "verdict"),
    [
        (None, True, None),
        ({}, True, ("DeviceHealthy", "device is healthy")),
        ({"healthy": False}, False, ("Unknown", "device is unhealthy")),
        (
            {"healthy": False, "errCode": "0x80E01801", "errMessage": "ecc"},
            False,
            ("Code_0x80E01801", "ecc"),
        ),
        ({"healthy": False, "errCode": "Overheated"}, False, ("Overheated", "device is unhealthy")),
    ],
    ids=["absent", "empty", "no code", "a code that is no word", "a word"],
)
def test_health(folder, status, healthy, verdict):
    given = {} if status is None else {"status": status}
    write(folder, "a", record(0, **given))
    (one,) = vendor_files.Folder(str(folder)).discover().devices
    assert one.healthy is healthy
    assert (one.verdict and (one.verdict.reason, one.verdict.message)) == verdict


@pytest.mark.parametrize(
    ("topology", "place"),
    [
        (None, None),
        ({"nodeID": "", "pcieID": "p", "busID": "b"}, device_inventory.Place(-1, "p", "b")),
        ({"nodeID": "x", "socketID": "y"}, device_inventory.Place(0, "", "", -1)),
        ({"nodeID": "1", "socketID": "1"}, device_inventory.Place(1, "", "", 1)),
    ],
    ids=["absent", "no node", "no numbers", "numbers"],
)
def test_topology(folder, topology, place):
    write(folder, "a", record(0, **({} if topology is None else {"topology": topology})))
    (one,) = vendor_files.Folder(str(folder)).discover().devices
    assert one.place == place


@pytest.mark.parametrize("minor", ["", "x", "-1", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_a_record_without_an_index_is_left_out_and_named(folder, minor):
    write(folder, "a", record(0), {"uuid": "odd", "minor": minor})
    found = vendor_files.Folder(str(folder)).discover()
    assert [one.identity for one in found.devices] == ["npu-0"]
    assert "record odd: minor" in found.problems[0]


def test_an_amount_that_is_none_is_left_out_and_named(folder):
    write(folder, "a", record(0, resources={"a/b": "many", "a/c": "3"}))
    found = vendor_files.Folder(str(folder)).discover()
    assert found.devices[0].resources == {"koordinator.sh/gpu-memory-ratio": "100", "a/c": "3"}
    assert "resources.a/b" in found.problems[0]


def test_no_folder_holds_nothing(tmp_path):
    assert vendor_files.Folder(str(tmp_path / "none")).discover() == device_inventory.Found()


def test_a_folder_that_cannot_be_listed_is_named(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    found = vendor_files.Folder(str(tmp_path / "loop")).discover()
    assert not found.complete
    assert "symbolic links" in found.problems[0]


def test_a_spoilt_file_hides_no_other_and_what_it_said_before_counts(folder):
    reader = vendor_files.Folder(str(folder))
    write(folder, "a", record(0))
    write(folder, "b", record(1))
    assert len(reader.discover().devices) == 2
    (folder / "a").write_text('[{"uuid": "npu-0", "mi')
    found = reader.discover()
    assert [one.minor for one in found.devices] == [0, 1]
    assert found.problems == (), "somebody may be in the middle of writing it"
    assert found.complete
    found = reader.discover()
    assert [one.minor for one in found.devices] == [0, 1]
    assert f"{folder}/a: no list of devices" in found.problems[0]
    (folder / "a").unlink()
    found = reader.discover()
    assert ([one.minor for one in found.devices], found.problems) == ([1], ())


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff\xfe", b"[1]", b'[{"minor": 0}]', b" " * (vendor_files.LIMIT + 1)],
    ids=["empty", "no list", "no text", "no records", "a number", "too large"],
)
def test_a_file_that_never_was_whole_is_named_at_once(folder, content):
    (folder / "a").write_bytes(content)
    write(folder, "b", record(1))
    found = vendor_files.Folder(str(folder)).discover()
    assert [one.minor for one in found.devices] == [1]
    assert not found.complete
    assert f"{folder}/a" in found.problems[0]


def test_what_is_no_finished_file_is_not_read(folder):
    (folder / "inner").mkdir()
    for name in (".hidden", "b.tmp", "c.json.swp", "d~"):
        (folder / name).write_text("{")
    assert vendor_files.Folder(str(folder)).discover() == device_inventory.Found()


def test_there_is_an_end_to_records(folder):
    write(folder, "a", *(record(number) for number in range(vendor_files.MOST_RECORDS + 1)))
    found = vendor_files.Folder(str(folder)).discover()
    assert len(found.devices) == vendor_files.MOST_RECORDS
    assert "the rest is unread" in found.problems[0]
