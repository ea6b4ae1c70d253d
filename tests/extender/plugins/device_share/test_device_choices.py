"""What is remembered of choices of devices changes nothing but the time that they take."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from domain.devices import inventory
from extender.framework import views
from extender.plugins.device_share import allocation, choices
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import NAME, DeviceCluster, device, eight, gpu

WANTED = {
    "a share": {names.GPU: "30"},
    "half": {names.GPU: "50"},
    "memory": {names.GPU_MEMORY: "30Gi"},
    "two": {names.NVIDIA_GPU: "2"},
    "GPU and adapter": {names.GPU: "100", names.RDMA: "40"},
}
NODES = ("n0", "n1", "n2", "n3")


def cluster(made=None):
    """Two nodes that are alike but for the names of devices, one with less memory, one bigger."""
    found = DeviceCluster(made)
    for number, name in enumerate(NODES):
        found.node(name)
        memory = "40Gi" if number == 2 else "80Gi"
        gpus = [gpu(minor, memory=memory, id=f"{name}-{minor}") for minor in range(2)]
        found.devices(eight(name) if number == 3 else device(name, *gpus))
    return found


def granted(found, pod, node):
    """What the pod would get on a node, with what is said of it; why it gets nothing."""
    asked, view = found.cycle(pod)
    row = view.rows[node]
    grants = found.pipeline.reserve(asked, view, row)
    return grants.get(NAME) if isinstance(grants, dict) else grants.status.reason


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(sorted(WANTED)), st.sampled_from(NODES)), max_size=10)
)
def test_pods_get_what_a_plugin_gives_that_remembers_nothing(steps):
    found = cluster()
    for number, (kind, node) in enumerate(steps):
        pod = found.pod(f"p{number}", WANTED[kind])
        remembering = granted(found, pod, node)
        found.plugin._choices = choices.Choices()
        assert granted(found, pod, node) == remembering
        found.bind(pod, node)


def test_the_names_of_devices_are_those_of_the_node():
    found = cluster()
    given = [granted(found, found.pod(f"p{n}", WANTED["half"]), f"n{n}") for n in range(2)]
    assert [one.allocation.by_type["gpu"][0].id for one in given] == ["n0-0", "n1-0"]
    assert given[0].figures == given[1].figures


def test_nothing_is_given_that_is_not_free_whatever_a_digest_says():
    found = cluster()
    asked, view = found.cycle(found.pod("p", WANTED["two"]))
    row = view.rows["n0"]
    known = choices.key(asked.prepared[NAME], view, row, -1)
    remembered = choices.Choices()
    granted_before = {"gpu": (inventory.Granted(0, {names.GPU_CORE: 100}),)}
    remembered.put(known, granted_before, granted_before)
    node = view.sparse(NAME, row)
    assert remembered.get(known, node)["gpu"][0].id == "n0-0"
    assert remembered.get(known, node.plus([granted_before])) is None


def test_no_digest_stands_for_a_node_that_is_shown_as_it_is_not():
    found = cluster()
    asked, view = found.cycle(found.pod("p", WANTED["half"]))
    prepared, row = asked.prepared[NAME], view.rows["n0"]
    claim = views.Claim("c", "n0", found.pod("lender", {}), views.ClaimKind.BOUND)
    assert choices.key(prepared, view, row, -1) is not None
    assert choices.key(prepared, view.with_claims(row), 0, -1) is None
    lent = msgspec.structs.replace(view, lent=views.Lent(claim))
    assert choices.key(prepared, lent, row, -1) is None


def test_only_so_many_choices_are_remembered(monkeypatch):
    monkeypatch.setattr(choices, "MOST", 2)
    found, remembered = cluster(), choices.Choices()
    asked, view = found.cycle(found.pod("p", WANTED["half"]))
    node = view.sparse(NAME, view.rows["n0"])
    keys = [choices.Key(asked.prepared[NAME], -1, number) for number in range(3)]
    for key in keys:
        remembered.put(key, {}, {})
        remembered.told(key, {}, dict)
    assert [remembered.get(key, node) for key in keys] == [None, {}, {}]
    assert len(remembered._told) == 2


FUNCTION = inventory.Function(2, "0000:01:00.2", {"a": "b"})
HELD = {
    "plain": inventory.Granted(0, {names.GPU_CORE: 50, names.GPU_MEMORY_RATIO: 50}, id="n0-0"),
    "a slice": inventory.Granted(0, {names.GPU_CORE: 50}, template="half", id="n0-0"),
    "virtual functions": inventory.Granted(1, {names.GPU_CORE: 50}, (FUNCTION,)),
}


@pytest.mark.parametrize("granted_now", HELD.values(), ids=HELD)
def test_the_annotation_says_the_same_to_the_extender_that_wrote_it_and_to_others(granted_now):
    wrote, other = device_cluster.plugin(), device_cluster.plugin()
    wanted = cluster().pod("p", WANTED["half"]).requirements
    texts = wrote.encode(allocation.Devices({"gpu": (granted_now,)}))
    for _ in range(2):
        assert wrote.decode(texts, wanted) == other.decode(texts, wanted)


def test_an_annotation_that_was_written_for_another_pod_is_not_believed():
    plugin, found = device_cluster.plugin(), cluster()
    texts = plugin.encode(allocation.Devices({"gpu": (HELD["plain"],)}))
    with pytest.raises(ValueError, match="does not ask"):
        plugin.decode(texts, found.pod("p", WANTED["a share"]).requirements)


def test_annotations_that_are_remembered_are_few_and_short(monkeypatch):
    monkeypatch.setattr(allocation, "_MOST", 2)
    plugin = device_cluster.plugin()
    for minor in range(5):
        one = msgspec.structs.replace(HELD["plain"], minor=minor)
        plugin.encode(allocation.Devices({"gpu": (one,)}))
        assert 1 <= len(plugin._known) <= 2
    long = msgspec.structs.replace(HELD["plain"], id="x" * 600)
    (text,) = plugin.encode(allocation.Devices({"gpu": (long,)})).values()
    assert text not in plugin._known
