"""Nominated pods keep CPU and memory too, whatever `status.nominatedNodeName` says by now."""

import pytest

from extender.framework import nominations
from tests.extender.clusters.reservation_cluster import ReservationCluster

CASES = {
    "fits beside it": ("2", 0, "other", ""),
    "has no room beside it": ("3", 0, "other", nominations.KEPT.reason),
    "of equal priority": ("3", 100, "other", nominations.KEPT.reason),
    "of higher priority": ("3", 101, "other", ""),
    "the nominated pod itself": ("6", 100, "high", ""),
}


@pytest.mark.parametrize(("cpu", "priority", "name", "expected"), CASES.values(), ids=CASES)
def test_a_pod_passes_only_beside_pods_of_no_lower_priority(cpu, priority, name, expected):
    cluster = ReservationCluster()
    cluster.node(cpu="10")
    cluster.put("there", "2", app="other")
    high = cluster.pod("high", "6", priority=100)
    cluster.books.nominate(high, "n1", evidence="preemption")
    before = cluster.books.cluster.fingerprint()
    assert cluster.judge(name, cpu, priority=priority, app="other") == expected
    assert cluster.books.cluster.fingerprint() == before
    cluster.books.withdraw("uid-high")
    assert cluster.judge("other", "8", app="other") == ""
