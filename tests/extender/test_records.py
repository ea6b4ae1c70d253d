"""Records of pods and nodes are slim and shared."""

import gc
import sys

import msgspec
import pytest

from api import core, names
from extender import records


def _pod(make, name, **more):
    return msgspec.convert(make.pod(name, **more), core.Pod)


def test_pods_that_are_alike_share_one_demand_that_goes_with_the_last_of_them(make):
    projector = records.Projector()
    first = projector.pod(_pod(make, "a", node="n1", requests={"cpu": "1"}))
    second = projector.pod(_pod(make, "b", node="n2", requests={"cpu": "1000m"}))
    other = projector.pod(_pod(make, "c", requests={"cpu": "2"}))
    assert first.demand is second.demand
    assert other.demand != first.demand
    assert len(projector._demands) == 2
    del first, second
    gc.collect()
    assert len(projector._demands) == 1


def test_a_record_is_small(make):
    record = records.Projector().pod(_pod(make, "some-workload-7d9f", node="n1"))
    own = sum(map(sys.getsizeof, (record, record.key, record.uid, record.assigned_at)))
    assert own < 400


def test_a_pod_that_has_ended_is_not_kept(make):
    projector = records.Projector()
    assert projector.pod(_pod(make, "done", node="n1", phase="Succeeded")) is None


def test_a_pod_is_named_by_its_key(make):
    record = records.Projector().pod(_pod(make, "p"))
    assert (record.namespace, record.name) == ("default", "p")


@pytest.mark.parametrize(
    ("raw", "total"),
    [
        pytest.param("", 128000, id="not amplified"),
        pytest.param('{"cpu":"64"}', 64000, id="amplified"),
        pytest.param("{", 128000, id="not JSON"),
        pytest.param('{"cpu":"many"}', 128000, id="no quantity"),
        pytest.param("[]", 128000, id="no object"),
    ],
)
def test_usage_is_measured_against_the_machine_itself(make, raw, total):
    notes = {names.ANNOTATION_RAW_ALLOCATABLE: raw} if raw else {}
    node = records.Projector().node(msgspec.convert(make.node("n1", annotations=notes), core.Node))
    assert dict(node.total)["cpu"] == total
    assert dict(node.allocatable)["cpu"] == 128000
