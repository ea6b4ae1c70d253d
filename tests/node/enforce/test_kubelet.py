"""The kubelet of the real node stops for a while: the agent says so and goes on."""

import json

from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_groups, node_standing


def warned(said):
    """What an agent says of its kubelet."""
    return said["warnings"].get("pods") or said["failing"].get("kubelet")


def reported(status):
    """The names of the pods in a report."""
    return {one["name"] for one in status.get("podsMetric") or ()}


async def test_without_its_kubelet_the_agent_goes_on(cluster, standing, enforcing):
    await node_agents.told(cluster, enforcing, "/readyz", lambda said: not warned(said))
    await cluster.node.kill_kubelet()
    try:
        said = await node_agents.told(cluster, enforcing, "/readyz", warned)
        print(f"without a kubelet: {warned(said)}")
        assert said["ready"]
        first = (await cluster.metric())["status"]["updateTime"]
        later = await cluster.metric(lambda status: status["updateTime"] >= cluster.later(first, 6))
        assert set(node_standing.NAMES) <= reported(later["status"])
        # What has to give way still does.
        await cluster.strategy(**node_cluster.HOLD)
        await held(cluster, lambda quota: 0 < quota <= 10_000)
        await cluster.strategy(enable=False)
        await held(cluster, lambda quota: quota == -1)
    finally:
        await cluster.node.start_kubelet()
    await node_agents.told(cluster, enforcing, "/readyz", lambda said: not warned(said))
    for name in node_standing.NAMES:
        found = await cluster.api.get(f"{node_cluster.PODS}/{name}")
        assert [one["restartCount"] for one in found["status"]["containerStatuses"]] == [0] * len(
            found["status"]["containerStatuses"]
        )
    await starts_again(cluster)


async def held(cluster, predicate):
    async def check():
        return predicate(node_groups.figure(cluster.class_group("cpu"), "cpu.cfs_quota_us"))

    await raw.eventually(check, node_cluster.PATIENCE)


async def starts_again(cluster):
    """A new batch pod gets its limits."""
    asked = {"cpu": "50m", "memory": "16Mi"}
    await cluster.create(
        "after", labels=node_cluster.ENABLE, resources={"requests": asked, "limits": asked}
    )
    try:
        pod = await cluster.running("after")
        folder = cluster.pod_group("cpu", pod)

        async def limited():
            return node_groups.figure(folder, "cpu.cfs_quota_us") == 5000

        await raw.eventually(limited, node_cluster.PATIENCE)
    except TimeoutError as late:
        raise AssertionError(json.dumps(pod["status"])) from late
    finally:
        await cluster.remove("after")
