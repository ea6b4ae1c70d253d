"""The Device of a node: what was discovered beside what people wrote."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from agent.devices import device_inventory, device_object
from api.koordinator import devices as api_devices
from tests import draws

ABOUT = device_object.About("node-1", "uid-1", "2026-01-01T00:00:00Z")
LATER = device_object.About("node-1", "uid-1", "2026-01-02T00:00:00Z")
NOTE = device_object.DISCOVERY
MAKER = "app.kubernetes.io/created-by"
VENDOR = "node.koordinator.sh/gpu-vendor"
PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
SICK = device_inventory.Verdict(False, "Xid79", "the driver reported the critical error Xid 79")


def gpu(minor, identity=None, verdict=None):
    one = device_inventory.Gpu(
        identity or f"GPU-{minor}", minor, "A100", 80 << 30, f"0000:{minor:02x}:00.0"
    )
    return device_inventory.of_gpu(one, None, verdict)


def adapter(bus, minor=None, **changes):
    return device_inventory.Device("rdma", bus, minor, {"koordinator.sh/rdma": "100"}, **changes)


def found(*listed, **changes):
    return device_inventory.Inventory(tuple(listed), **changes)


def told(current, *listed, about=ABOUT, **changes):
    return device_object.told(current, found(*listed, **changes), about)


def entries(current):
    return {(one["type"], one["minor"]): one for one in current["spec"]["devices"]}


def by_hand(**changes):
    entry = {"type": "gpu", "id": "mine", "minor": 0, "health": True, **changes}
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": "node-1", "annotations": {"note": "x"}, "labels": {"team": "a"}},
        "spec": {"devices": [entry]},
    }


def test_a_node_without_devices_gets_no_object():
    assert told(None).object is None


def test_nothing_is_created_before_the_node_was_seen():
    about = device_object.About("node-1", "", ABOUT.now)
    assert told(None, gpu(0), about=about).object is None


def test_a_new_object():
    place = device_inventory.Place(1, "pci0000:3a", "0000:d8:00.0")
    card = adapter("0000:d8:00.0", 0, place=place, functions=("0000:d8:00.3", "0000:d8:00.2"))
    made = told(None, card, gpu(1), gpu(0), labels={VENDOR: "nvidia"}).object
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Node", "node-1", "uid-1")
    assert made["metadata"]["labels"] == {MAKER: "koord-agent", VENDOR: "nvidia"}
    assert [(one["type"], one["minor"]) for one in made["spec"]["devices"]] == [
        ("gpu", 0),
        ("gpu", 1),
        ("rdma", 0),
    ]
    last = made["spec"]["devices"][-1]
    assert last["topology"] == {
        "socketID": -1,
        "nodeID": 1,
        "pcieID": "pci0000:3a",
        "busID": "0000:d8:00.0",
    }
    assert last["vfGroups"] == [
        {"vfs": [{"minor": -1, "busID": "0000:d8:00.2"}, {"minor": -1, "busID": "0000:d8:00.3"}]}
    ]
    read = api_devices.review_device(made)
    assert read.warnings == ()
    assert len(read.value.spec.devices) == 3


def test_the_same_again_is_the_same_object():
    first = told(None, gpu(0, verdict=SICK), gpu(1), labels={VENDOR: "nvidia"}).object
    again = told(first, gpu(0, verdict=SICK), gpu(1), labels={VENDOR: "nvidia"}, about=LATER)
    assert again.object == first
    assert again.clashes == ()


def test_a_condition_tells_when_its_status_changed():
    def since(current):
        return entries(current)["gpu", 0]["conditions"][0]["lastTransitionTime"]

    well = device_inventory.Verdict(True, "DeviceHealthy", "device is healthy")
    first = told(None, gpu(0, verdict=well)).object
    ill = told(first, gpu(0, verdict=SICK), about=LATER).object
    assert (since(first), since(ill)) == (ABOUT.now, LATER.now)
    other = device_inventory.Verdict(False, "Xid48", "another")
    last = device_object.About("node-1", "uid-1", "2026-01-03T00:00:00Z")
    assert since(told(ill, gpu(0, verdict=other), about=last).object) == LATER.now


def test_labels_annotations_and_other_fields_of_people_stay():
    current = dict(told(None, gpu(0), labels={VENDOR: "nvidia"}).object)
    current["metadata"] = {
        **current["metadata"],
        "labels": {**current["metadata"]["labels"], "team": "a"},
        "annotations": {**current["metadata"]["annotations"], PARTITIONS: "{}"},
        "resourceVersion": "7",
    }
    current["status"] = {"allocations": []}
    after = told(current, gpu(0), gpu(1)).object
    left = {MAKER: "koord-agent", "team": "a"}
    assert after["metadata"]["labels"] == left, "ours goes when nothing tells it any more"
    assert after["metadata"]["annotations"][PARTITIONS] == "{}"
    assert after["metadata"]["resourceVersion"] == "7"
    assert after["status"] == {"allocations": []}


def test_an_object_by_hand_is_left_alone_where_nothing_was_found():
    current = by_hand()
    assert told(current).object == current


def test_entries_by_hand_stay_beside_what_was_found():
    current = by_hand(minor=5)
    result = told(current, gpu(0))
    assert [one["id"] for one in result.object["spec"]["devices"]] == ["GPU-0", "mine"]
    assert result.clashes == ()
    again = told(result.object)
    assert [one["id"] for one in again.object["spec"]["devices"]] == ["mine"]


@pytest.mark.parametrize(
    ("entry", "listed", "said"),
    [
        ({"id": "GPU-0", "minor": 3}, gpu(0), "gpu GPU-0 was written by hand"),
        ({"id": "mine", "minor": 0}, gpu(0), "an entry written by hand has its minor 0"),
        ({"type": "rdma", "id": "b", "minor": 0}, adapter("a", 0), "rdma a: an entry"),
    ],
    ids=["the same device", "the same index", "adapter"],
)
def test_what_people_wrote_wins_and_is_said(entry, listed, said):
    current = by_hand(**entry)
    result = told(current, listed)
    assert result.object["spec"] == current["spec"]
    assert said in result.clashes[0]
    assert said in json.loads(result.object["metadata"]["annotations"][NOTE])["leftOut"][0]
    assert told(result.object, listed, about=LATER).object == result.object


def test_a_shorthand_by_hand_is_known_as_one():
    entry = {"deviceType": "gpu", "uuid": "GPU-0", "totalMemory": "40Gi", "health": True}
    current = by_hand()
    current["spec"]["devices"] = [entry]
    result = told(current, gpu(0))
    assert result.object["spec"]["devices"] == [entry]
    assert "written by hand" in result.clashes[0]


def test_a_label_by_hand_wins_and_is_said():
    current = by_hand()
    current["metadata"]["labels"][VENDOR] = "mine"
    result = told(current, gpu(1), labels={VENDOR: "nvidia"})
    assert result.object["metadata"]["labels"] == {"team": "a", VENDOR: "mine"}
    assert VENDOR in result.clashes[0]


def test_what_a_predecessor_wrote_is_taken_over():
    current = by_hand(id="GPU-0", minor=0)
    current["spec"]["devices"].append({"type": "fpga", "id": "f", "minor": 0, "health": True})
    current["metadata"]["labels"][VENDOR] = "old"
    current["metadata"]["managedFields"] = [{"manager": "koordlet", "operation": "Update"}]
    result = told(current, gpu(0, verdict=SICK), labels={VENDOR: "nvidia"})
    assert result.clashes == ()
    assert not entries(result.object)["gpu", 0]["health"]
    assert ("fpga", 0) in entries(result.object)
    assert result.object["metadata"]["labels"] == {"team": "a", VENDOR: "nvidia"}


@pytest.mark.parametrize("record", ["", "{", "[]", '{"devices": 3}', '{"devices": []}'])
def test_a_spoilt_record_leaves_everything_to_people(record):
    current = by_hand()
    current["metadata"]["annotations"][NOTE] = record
    assert told(current, gpu(1)).object["spec"]["devices"][0]["id"] == "mine"


def test_what_nobody_can_tell_now_stays_and_is_unhealthy_after_a_while():
    current = told(None, gpu(0), adapter("a", 0)).object
    waiting = told(current, adapter("a", 0), unknown={"gpu": False}, about=LATER).object
    assert waiting == current
    silent = told(current, adapter("a", 0), unknown={"gpu": True}, about=LATER).object
    entry = entries(silent)["gpu", 0]
    assert (entry["health"], entry["conditions"][0]["reason"]) == (False, device_inventory.SILENT)
    assert entry["conditions"][0]["lastTransitionTime"] == LATER.now
    gone = told(silent, adapter("a", 0)).object
    assert ("gpu", 0) not in entries(gone)


def test_an_object_may_become_empty_and_is_kept():
    current = told(None, gpu(0)).object
    assert told(current).object["spec"]["devices"] == []


def test_the_same_device_from_two_sources_is_told_once():
    result = told(None, gpu(0), gpu(0, "another"))
    assert [one["id"] for one in result.object["spec"]["devices"]] == ["GPU-0"]
    assert "found twice" in result.clashes[0]


def test_adapters_without_a_number_keep_the_one_they_got():
    current = told(None, adapter("0000:02:00.0"), adapter("0000:03:00.0", 0)).object
    minors = {one["id"]: one["minor"] for one in current["spec"]["devices"]}
    assert minors == {"0000:02:00.0": 1, "0000:03:00.0": 0}
    after = told(current, *(adapter(f"0000:0{n}:00.0") for n in (1, 2)), adapter("0000:03:00.0", 0))
    minors = {one["id"]: one["minor"] for one in after.object["spec"]["devices"]}
    assert minors == {"0000:01:00.0": 2, "0000:02:00.0": 1, "0000:03:00.0": 0}


ADAPTERS = st.dictionaries(
    st.integers(0, 30).map(lambda n: f"0000:{n:02x}:00.0"),
    st.none() | st.integers(-1, 6),
    max_size=8,
)


@hypothesis.settings(max_examples=draws.at_least(30), deadline=None)
@hypothesis.given(ADAPTERS, ADAPTERS)
def test_every_adapter_has_an_index_of_its_own(first, second):
    before = told(None, *(adapter(bus, minor) for bus, minor in first.items())).object
    after = told(before, *(adapter(bus, minor) for bus, minor in second.items())).object
    listed = () if after is None else after["spec"]["devices"]
    minors = [one["minor"] for one in listed]
    assert len(minors) == len(set(minors)) == len(second)
    assert all(minor >= 0 for minor in minors)
    again = told(after, *(adapter(bus, minor) for bus, minor in second.items())).object
    assert again == after


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("", "Unknown"),
        (" ", "Unknown"),
        ("Xid79", "Xid79"),
        ("79", "Code_79"),
        ("a b", "Code_a_b"),
        ("!!", "Unknown"),
    ],
)
def test_reasons(code, word):
    assert device_inventory.reason(code) == word


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("Tesla T4 (rev. a1)", "Tesla-T4-rev.-a1"),
        (" - ", ""),
        ("x" * 80, "x" * 63),
    ],
)
def test_values_of_labels(text, value):
    assert device_inventory.label(text) == value
