"""Pods that the real scheduler and our extender place really start, confined as kubelets do it."""

import json

import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes.node import node_cluster, node_groups

MEBIBYTE = 1 << 20
SMALL = {"cpu": "200m", "memory": "64Mi"}


@pytest_asyncio.fixture(loop_scope="session")
async def placed(cluster):
    """Creates pods that are deleted after the test."""
    made = []

    async def create(name, **spec):
        made.append(name)
        created = await cluster.create(name, **spec)
        return created, await cluster.running(name)

    yield create
    for name in made:
        await cluster.remove(name)


async def lending(cluster):
    """Wait until the node offers batch resources, and its kubelet left them alone."""
    path = resources.NODES.path(name=node_cluster.NODE)
    found = await cluster.api.wait_until(
        path, lambda node: int(node["status"]["allocatable"].get(names.BATCH_CPU, 0)) > 500, 90.0
    )
    return found["status"]["allocatable"]


async def test_the_node_lends_what_is_not_requested_and_the_kubelet_keeps_it(cluster):
    allocatable = await lending(cluster)
    assert int(allocatable[names.BATCH_CPU]) <= int(allocatable["cpu"]) * 500
    before = await cluster.api.get(resources.NODES.path(name=node_cluster.NODE))
    # The kubelet writes its status every five seconds.
    later = await cluster.api.wait_until(
        resources.NODES.path(name=node_cluster.NODE),
        lambda node: heartbeat(node) > heartbeat(before),
        90.0,
    )
    assert names.BATCH_CPU in later["status"]["allocatable"]


def heartbeat(node):
    return next(
        c["lastHeartbeatTime"] for c in node["status"]["conditions"] if c["type"] == "Ready"
    )


async def test_an_online_pod_runs_with_its_limits(cluster, placed):
    _, pod = await placed(
        "online", resources={"requests": SMALL, "limits": SMALL}, priorityClassName="koord-prod"
    )
    assert pod["spec"]["nodeName"] == node_cluster.NODE
    assert pod["status"]["qosClass"] == "Guaranteed"
    cpu, memory = (cluster.pod_group(name, pod) for name in ("cpu", "memory"))
    assert node_groups.figure(cpu, "cpu.shares") == 1024 * 200 // 1000
    assert node_groups.figure(cpu, "cpu.cfs_quota_us") == 20_000
    assert node_groups.figure(memory, "memory.limit_in_bytes") == 64 * MEBIBYTE


async def test_a_batch_pod_is_changed_placed_and_runs_as_best_effort(cluster, placed):
    await lending(cluster)
    created, pod = await placed(
        "batch", resources={"requests": SMALL, "limits": SMALL}, labels=node_cluster.ENABLE
    )
    asked = created["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {names.BATCH_CPU: "200", names.BATCH_MEMORY: "64Mi"}
    placement = json.loads(pod["metadata"]["annotations"][names.PLACEMENT])
    assert placement["node"] == node_cluster.NODE
    # For a kubelet it asks for nothing that kubelets know.
    assert pod["status"]["qosClass"] == "BestEffort"
    cpu, memory = (cluster.pod_group(name, pod) for name in ("cpu", "memory"))
    assert cpu.parent.name == "besteffort"

    async def limited():
        # What its kubelet does not do, the agent does.
        return (
            node_groups.figure(cpu, "cpu.shares"),
            node_groups.figure(cpu, "cpu.cfs_quota_us"),
            node_groups.figure(memory, "memory.limit_in_bytes"),
        ) == (1024 * 200 // 1000, 20_000, 64 * MEBIBYTE)

    await raw.eventually(limited, node_cluster.PATIENCE)


async def test_a_deleted_pod_leaves_no_group_behind(cluster, placed):
    _, pod = await placed("leaving", labels={"leaves": "soon"})
    groups = [cluster.pod_group(name, pod) for name in ("cpu", "memory", "cpuset", "pids")]
    assert all(group.is_dir() for group in groups)
    await cluster.remove("leaving")

    await cluster.gone(groups)


async def test_what_does_not_fit_stays_pending_with_a_reason(cluster):
    await lending(cluster)
    huge = {"cpu": "400", "memory": "64Mi"}
    await cluster.create("huge", resources={"requests": huge}, labels=node_cluster.ENABLE)
    try:
        pod = await cluster.api.wait_until(f"{node_cluster.PODS}/huge", refusal, 90.0)
        assert f"Insufficient {names.BATCH_CPU}" in refusal(pod)
    finally:
        await cluster.remove("huge")


def refusal(pod):
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition["message"]
    return ""
