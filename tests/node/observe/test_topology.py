"""What the agent tells of a real kubelet and the machine below it."""

import dataclasses
import json

import pytest

from agent.host import files
from api import names, resources
from domain.cpus import cpulists
from tests.planes.node import node_cluster

KIND = resources.NODE_RESOURCE_TOPOLOGIES
ONLINE = "/sys/devices/system/cpu/online"
VERSIONS = (KIND, KIND._replace(version="v1alpha2"))


@dataclasses.dataclass(frozen=True)
class Told:
    """One NodeResourceTopology as it was read."""

    raw: dict

    def note(self, key):
        """Return what an annotation says."""
        return json.loads(self.raw["metadata"]["annotations"][key])


@pytest.mark.parametrize("kind", VERSIONS, ids=lambda kind: kind.version)
async def test_the_node_tells_its_cpus_and_what_its_kubelet_hands_out(cluster, kind):
    path = kind.path(name=node_cluster.NODE)
    raw = await cluster.api.wait_until(path, lambda found: found is not None, node_cluster.PATIENCE)
    told, online = Told(raw), cpulists.parse(files.read(ONLINE).decode().strip())
    # The kubelet's own answer, which it gives to nobody without nodes/configz.
    assert told.note(names.ANNOTATION_CPU_MANAGER_POLICY)["policy"] == "none"
    assert raw["topologyPolicies"] == ["None"]
    detail = told.note(names.ANNOTATION_CPU_TOPOLOGY)["detail"]
    assert {one["id"] for one in detail} == online
    shared = [pool["cpuset"] for pool in told.note(names.ANNOTATION_CPU_SHARED_POOLS)]
    assert frozenset().union(*map(cpulists.parse, shared)) == online
    cpus = [item for zone in raw["zones"] for item in zone["resources"] if item["name"] == "cpu"]
    assert sum(int(item["capacity"]) for item in cpus) == len(online)
    node = await cluster.api.get(resources.NODES.path(name=node_cluster.NODE))
    (owner,) = raw["metadata"]["ownerReferences"]
    assert owner["uid"] == node["metadata"]["uid"]
