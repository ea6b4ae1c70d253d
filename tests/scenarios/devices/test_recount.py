"""The recount that scenarios of devices trust is tried on objects that cannot be true."""

import json

import pytest

from api import names
from tests.planes.devices import device_nodes, device_recount

SHAPE = device_nodes.SHAPES["pair"]
LSR = {"requests": {"cpu": "2"}, "labels": {names.LABEL_QOS: "LSR"}}
SHARE = {"requests": {names.GPU: "60"}}


def gpu(minor):
    one = {"minor": minor, "resources": {names.GPU_CORE: "60"}}
    return {"devices": json.dumps({"gpu": [one]})}


def pod(name, devices="", cpuset="", requests=None, labels=None):
    status = f'{{"cpuset":"{cpuset}"}}' if cpuset else ""
    notes = {names.ANNOTATION_DEVICE_ALLOCATED: devices, device_recount.STATUS: status}
    return {
        "metadata": {
            "namespace": "d",
            "name": name,
            "labels": labels or {},
            "annotations": {key: text for key, text in notes.items() if text},
        },
        "spec": {"nodeName": "n", "containers": [{"resources": {"requests": requests or {}}}]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize(
    ("pods", "problems"),
    [
        pytest.param([SHARE | gpu(0)], [], id="all-is-well"),
        pytest.param(
            [SHARE | gpu(0), SHARE | gpu(0)],
            ["n: 120 of 100 koordinator.sh/gpu-core of gpu 0 are held"],
            id="more-than-there-is",
        ),
        pytest.param([SHARE | gpu(7)], ["n has no gpu 7"], id="no-such-device"),
        pytest.param(
            [SHARE], ["d/p0 asks {'koordinator.sh/gpu': 60} and was given {}"], id="no-record"
        ),
        pytest.param(
            [LSR | {"cpuset": "0-1"}, LSR | {"cpuset": "1-2"}],
            ["n: CPU 1 is held by ['d/p0', 'd/p1']"],
            id="shared-cpu",
        ),
        pytest.param([LSR], ["d/p0 has 0 CPUs for 2000 millicores"], id="no-cpus"),
        pytest.param(
            [LSR | {"cpuset": "15-16"}],
            ["d/p0 holds CPUs [16], which n does not give"],
            id="no-such-cpu",
        ),
    ],
)
def test_it_sees_what_cannot_be_true(pods, problems):
    placed = [pod(f"p{number}", **one) for number, one in enumerate(pods)]
    device = device_nodes.device("n", SHAPE)
    found = device_recount.Recount("n", SHAPE, device, placed).problems()
    assert list(found) == problems


def test_it_sees_a_status_that_says_something_else():
    placed = [pod("p", **SHARE, **gpu(0))]
    found = device_recount.Recount("n", SHAPE, device_nodes.device("n", SHAPE), placed)
    one = {"pod": {"namespace": "d", "name": "p"}, "container": "c", "allocated": "60%"}
    told = {"device": {"deviceType": "gpu", "minor": 0}, "allocations": [one]}
    assert list(found.status_differences({"status": {"deviceAllocations": [told]}})) == []
    for wrong in ({}, {"status": {"deviceAllocations": [told | {"allocations": []}]}}):
        assert len(list(found.status_differences(wrong))) == 1
