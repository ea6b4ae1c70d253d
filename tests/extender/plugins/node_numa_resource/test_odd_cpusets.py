"""Records of CPUs that no machine has: they count as absent."""

import json

import pytest

from tests.extender.clusters import numa_cluster
from tests.extender.clusters.numa_cluster import NAME, STATUS, topology


@pytest.mark.parametrize(
    ("cpuset", "read"),
    [
        pytest.param("0,4096", True, id="the last that a list may name"),
        pytest.param("0,4097", False, id="the next"),
        pytest.param("4097,4098", False, id="two that are one range"),
        pytest.param("0,2147483647", False, id="the largest number"),
    ],
)
def test_a_record_names_cpus_that_a_machine_can_have(cpuset, read):
    cluster = numa_cluster.NumaCluster()
    cluster.node("n1", topology())
    notes = {STATUS: json.dumps({"cpuset": cpuset})}
    pod = cluster.pod("odd", "2", annotations=notes, node="n1")
    assert pod.unreadable == (() if read else (NAME,))
    cluster.hold(pod, pod.allocations.get(NAME))
    assert cluster.numa().nodes.usage.held() == (1 | 1 << 4096 if read else 0)
