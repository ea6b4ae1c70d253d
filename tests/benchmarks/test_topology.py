"""The benchmark of exact placement, on a few nodes."""

import pytest

from benchmarks.scheduling.calls import topology


@pytest.fixture(scope="module")
def cluster():
    return topology.build(topology.TEMPLATES + 8)


@pytest.mark.parametrize("kind", topology.KINDS)
def test_every_kind_of_pod_finds_a_node(cluster, kind):
    before = cluster.state.fingerprint()
    assert len(topology.filtered(cluster, kind, 2)) == 2
    assert cluster.state.fingerprint() == before


def test_nodes_hold_what_pods_of_all_kinds_were_given(cluster):
    held = [claim for name in cluster.state.nodes() for claim in cluster.state.claims_on(name)]
    assert {plugin for claim in held for plugin in claim.allocations} == {
        "NodeNUMAResource", "DeviceShare",
    }  # fmt: skip


def test_cpus_are_chosen_until_the_machine_is_full():
    found = [policy for policy, _ in topology.choices(topology.machine(cores=8))]
    assert found.count("FullPCPUs 2") == 3 * 8
    assert all(spent > 0 for _, spent in topology.choices(topology.machine(cores=2)))
