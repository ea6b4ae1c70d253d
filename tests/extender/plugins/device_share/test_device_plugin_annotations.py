"""The Binding carries what device plug-ins of vendors read, where the arguments want it."""

import json

import pytest

from api import names
from api.koordinator.metadata import protected_metadata
from extender.state import ledger
from extender.verbs import pod_truth, reserving
from process.configuration import switches
from process.runtime import clock
from tests.extender.clusters import device_cluster
from tests.extender.clusters.device_cluster import DeviceCluster, device, gpu

NOW = 1_700_000_000.5
HALF = {names.GPU_CORE: "50", names.GPU_MEMORY_RATIO: "50"}
MEMORY_ONLY = {names.GPU_MEMORY_RATIO: "50"}


def cluster(vendor, **written):
    made = DeviceCluster(device_cluster.plugin(**written))
    made.node()
    found = [gpu(minor, memory="64Gi") for minor in range(2)]
    made.devices(device("n1", *found, labels={names.LABEL_GPU_VENDOR: vendor}))
    return made


def bound(made, requests):
    """What the bind verb writes with the node, or why it does not."""
    books = ledger.Ledger(made.state)
    live = switches.Switches("extender", switches.Mode.ENFORCE)
    process = reserving.Reserving(books, made.pipeline, live, clock.ManualClock(NOW), lambda: "id")
    found = process.reserve(pod_truth.Truth(made.pod("p", requests), "1"), "n1")
    return found if isinstance(found, str) else dict(found.annotations)


@pytest.mark.parametrize("vendor", ["huawei", "cambricon", "metax", "nvidia"])
def test_what_is_written_agrees_with_the_allocation_and_may_be_written(vendor):
    notes = bound(cluster(vendor, devicePluginAdaption=True), HALF)
    (given,) = json.loads(notes[names.ANNOTATION_DEVICE_ALLOCATED])["gpu"]
    assert notes[names.ANNOTATION_GPU_MINORS] == str(given["minor"])
    assert notes[names.ANNOTATION_BIND_TIMESTAMP] == "1700000000500000000"
    more = notes.keys() - {*protected_metadata.ALLOCATIONS}
    assert more <= {*protected_metadata.DEVICE_PLUGINS}
    assert bool(more) is (vendor != "nvidia")
    if vendor == "huawei":
        assert notes["predicate-time"] == notes[names.ANNOTATION_BIND_TIMESTAMP]


def test_by_default_nothing_is_written_for_them():
    notes = bound(cluster("huawei"), HALF)
    assert notes.keys() == {names.ANNOTATION_DEVICE_ALLOCATED, names.PLACEMENT}


@pytest.mark.parametrize("vendor", ["cambricon", "metax"])
def test_a_node_whose_device_plug_in_cannot_serve_the_pod_is_filtered(vendor):
    adapted = cluster(vendor, devicePluginAdaption=True)
    assert "Device plug-in of" in adapted.refusal(adapted.pod("p", MEMORY_ONLY))
    assert "Device plug-in of" in bound(adapted, MEMORY_ONLY)
    assert adapted.refusal(adapted.pod("p", HALF)) == ""
    plain = cluster(vendor)
    assert plain.refusal(plain.pod("p", MEMORY_ONLY)) == ""
