"""Manifests that name resources as older releases did, from admission to the node."""

import json

import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes.devices import device_nodes

OLD_GPU, OLD_CORES, OLD_RDMA = (f"kubernetes.io/{name}" for name in ("gpu", "gpu-core", "rdma"))
pytestmark = pytest.mark.timeout(120)


@pytest_asyncio.fixture(loop_scope="session")
async def gpus(teams):
    """A node with eight GPUs and four RDMA cards, the Device of which an older release wrote."""
    shape = device_nodes.SHAPES["eight"]
    node = await teams.here.node("gpus", more=shape.allocatable())
    body = device_nodes.device(node, shape)
    for one in body["spec"]["devices"]:
        one["resources"] = {
            name.replace("koordinator.sh/", "kubernetes.io/"): amount
            for name, amount in one["resources"].items()
        }
    await teams.api.post(resources.DEVICES.path(), body)
    yield node
    await teams.api.delete(resources.DEVICES.path(name=node))


def granted(pod, kind):
    text = pod["metadata"]["annotations"][names.ANNOTATION_DEVICE_ALLOCATED]
    return [one["resources"] for one in json.loads(text)[kind]]


def asked(pod):
    return pod["spec"]["containers"][0]["resources"]["requests"]


async def test_a_pod_that_asks_by_retired_names_gets_devices_and_a_node(teams, gpus):
    await teams.here.pod("old", requests={"cpu": "100m", OLD_GPU: "50", OLD_RDMA: "100"})
    pod = await teams.here.bound("old", raw.PATIENCE)
    assert pod["spec"]["nodeName"] == gpus
    assert names.DEPRECATED_RESOURCES.keys().isdisjoint(asked(pod))
    (gpu,), (card,) = granted(pod, "gpu"), granted(pod, "rdma")
    assert (gpu[names.GPU_CORE], gpu[names.GPU_MEMORY_RATIO]) == ("50", "50")
    assert card == {names.RDMA: "100"}


async def test_a_quota_counts_it_in_whichever_names_both_are_written(teams, gpus):
    old = await teams.quota("old", min={OLD_CORES: 0}, max={OLD_CORES: 100, "cpu": 4})
    new = await teams.quota("new", min={names.GPU_CORE: 0}, max={names.GPU_CORE: 100, "cpu": 4})
    for quota in (old, new):
        share = {OLD_GPU: "100"}
        first, second = await teams.pods(quota, quota, 2, "100m", requests=share)
        await teams.settled(**{quota: 1})
        await teams.used(teams.path(quota), **{names.GPU_CORE: "100"})
        waiting = await teams.waiting(quota)
        assert waiting in (first, second)
        sentence = await teams.waits(waiting, "Insufficient quotas")
        assert names.GPU_CORE in sentence
