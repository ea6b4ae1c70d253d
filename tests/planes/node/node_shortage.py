"""Batch pods that request more than a node may promise, so that one of them has to go."""

import contextlib

from api import names, resources
from api.wire import quantity
from tests.planes.node import node_cluster

GIBIBYTE = 1 << 30
EACH = 3 * GIBIBYTE // 2
RANKS = {"last": node_cluster.ENABLE, "low": node_cluster.LOW, "high": node_cluster.HIGH}
"""Three pods by priority, lowest first."""
ASKED = {"cpu": "20m", "memory": str(EACH)}


@contextlib.asynccontextmanager
async def pods(cluster):
    """Three batch pods on the node; yields them by name."""
    for name, labels in RANKS.items():
        asked = {"requests": ASKED, "limits": ASKED}
        await cluster.create(name, labels={"app": name, **labels}, resources=asked)
    try:
        found = {name: await cluster.running(name) for name in RANKS}
        ranks = [found[name]["spec"]["priority"] for name in RANKS]
        assert ranks == sorted(set(ranks)), f"{ranks} of {tuple(RANKS)}"
        yield found
    finally:
        for name in RANKS:
            await cluster.remove(name)


async def percent(cluster):
    """The share of the node's memory that may be requested, so that one of the three is too many.

    Half a pod below what all request: without one of them there is half a pod to spare.
    """
    listed = (await cluster.api.get(resources.PODS.path()))["items"]
    total = sum(_asked(pod) for pod in listed if pod["spec"].get("nodeName") == node_cluster.NODE)
    node = await cluster.api.get(resources.NODES.path(name=node_cluster.NODE))
    allocatable = quantity.whole(node["status"]["allocatable"]["memory"])
    return round((total - EACH / 2) * 100 / allocatable)


def _asked(pod):
    if pod["status"].get("phase") not in ("Pending", "Running"):
        return 0
    requests = [one["resources"].get("requests", {}) for one in pod["spec"]["containers"]]
    kinds = (names.MEMORY, names.BATCH_MEMORY)
    return sum(quantity.whole(one[kind]) for one in requests for kind in kinds if kind in one)


def strategy(most_percent):
    """What the node is told: the bound on requests, and nothing else that evicts."""
    return {
        "enable": True,
        "cpuSuppressThresholdPercent": 100,
        "cpuSuppressPolicy": "cfsQuota",
        "memoryEvictThresholdPercent": 99,
        "memoryEvictLowerPercent": 98,
        "memoryRequestUtilizationPercent": most_percent,
    }
