"""What is kept of topologies and devices."""

import pytest

from api import names
from domain.devices.requests import accelerators
from domain.lending import colocation
from manager.overcommit import inventory

INFO = '{"cpuModel":"XYZ","hyperThreadEnabled":true}'
CPU = {"name": "cpu", "capacity": "4", "allocatable": "3500m", "available": "1"}


def topology(**changed: object) -> inventory.Topology:
    zone = {"name": "node-0", "type": "Node", "resources": [CPU]}
    raw = {"metadata": {"name": "n1"}, "topologyPolicies": ["None"], "zones": [zone], **changed}
    return inventory.read_topology(raw)


def test_zones_and_processors() -> None:
    marks = {"name": "n1", "annotations": {names.ANNOTATION_CPU_BASIC_INFO: INFO}}
    found = topology(metadata=marks)
    assert found.processors is not None
    assert (found.processors.cpu_model, found.processors.hyper_thread_enabled) == ("XYZ", True)
    assert found.zones == (inventory.Zone("node-0", colocation.Amount(3_500, 0), {}),)
    assert found.written[0]["resources"] == [CPU]


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="none"),
        pytest.param({names.ANNOTATION_CPU_BASIC_INFO: "["}, id="unreadable"),
    ],
)
def test_processors_that_nobody_knows(annotations: dict[str, str]) -> None:
    assert topology(metadata={"name": "n1", "annotations": annotations}).processors is None


def test_what_cannot_be_read_counts_as_nothing() -> None:
    assert topology(zones=[{"name": 5}]) == inventory.Topology(None, (), ())
    broken = {"metadata": {"name": "n1"}, "spec": {"devices": ["x"]}}
    assert inventory.read_devices(broken) == accelerators.NOTHING


@pytest.mark.parametrize(("count", "counted"), [(64, 64), (65, 0), (8000, 0)])
def test_zones_that_no_machine_has_as_many_of_count_as_none(count: int, counted: int) -> None:
    zones = [{"name": f"node-{at}", "type": "Node", "resources": [CPU]} for at in range(count)]
    found = topology(zones=zones)
    assert (len(found.zones), len(found.written)) == (counted, counted)
