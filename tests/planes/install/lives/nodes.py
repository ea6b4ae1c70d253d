"""What an agent does seldom on its node, and what it may not do on another."""

import json

from api import names, resources
from tests.planes.install import installation
from tests.planes.install.lives import days


async def strangers_to_the_agent(it):
    """What an agent may patch by its role, and may not where it is not its own."""
    own = resources.NODES.path(name=days.WORKER)
    await it.api.wait_until(own, lambda node: strategies(node), days.PATIENCE)
    agent = it.api.as_user(it.tokens["agent"])
    note = {"metadata": {"annotations": {names.ANNOTATION_STRATEGIES: "{}"}}}
    other = next(name for name in installation.MACHINES if name != days.WORKER)
    await it.api.call(
        "POST",
        resources.NODE_METRICS.path(),
        {
            "apiVersion": resources.NODE_METRICS.api_version,
            "kind": resources.NODE_METRICS.kind,
            "metadata": {"name": "someone-elses"},
            "spec": {},
        },
    )
    metric = f"{resources.NODE_METRICS.path(name='someone-elses')}/status"
    for path, body, said in (
        (resources.NODES.path(name=other), note, "may not write objects of node"),
        (own, {"metadata": {"labels": {"mine": "now"}}}, "koord.sh/strategies only"),
        (own, {"metadata": {"annotations": {"mine": "now"}}}, "koord.sh/strategies only"),
        (own, {"spec": {"unschedulable": True}}, "koord.sh/strategies only"),
        (metric, {"status": {"updateTime": "2026-01-01T00:00:00Z"}}, "may not write objects"),
    ):
        answer = await agent.call("PATCH", path, body, kind="application/merge-patch+json")
        assert answer.status == 422, (path, body, answer.status)
        assert said in answer.message
    await it.api.delete(resources.NODE_METRICS.path(name="someone-elses"))
    kind = resources.NODE_RESOURCE_TOPOLOGIES
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": other}}
    answer = await agent.call("POST", kind.path(), body | {"topologyPolicies": [], "zones": []})
    assert answer.status == 422, answer.status
    assert "may not write objects of node" in answer.message


def strategies(node):
    return node["metadata"].get("annotations", {}).get(names.ANNOTATION_STRATEGIES)


async def silent_kubelet(it):
    """A kubelet that refuses its agent; the API server tells the pods instead."""
    if it.of_kubelet().get("podsFrom") == "apiServer":
        # Kubelets of this release would ask for nodes/proxy, so the agent does not ask them.
        await it.page("agent", 'koord_agent_pods_source{source="api-server"} 1.0')
        return
    it.kubelet_token.write_text("nobody")
    await it.page("agent", 'koord_agent_pods_source{source="api-server"} 1.0')
    it.kubelet_token.write_text("agent")
    await it.page("agent", 'koord_agent_pods_source{source="kubelet"} 1.0')


async def devices(it):
    """What a node has is told in an object of its own, follows, and is offered by the node."""
    path, node = resources.DEVICES.path(name=days.WORKER), resources.NODES.path(name=days.WORKER)

    def healthy(found):
        return bool(found) and [one["health"] for one in found["spec"]["devices"]]

    await it.api.wait_until(path, lambda found: healthy(found) == [True], days.PATIENCE)
    await it.api.wait_until(
        node, lambda found: found["status"]["allocatable"].get(names.RDMA) == "100", days.PATIENCE
    )
    await adapter_in_use(it, path)
    it.nodes.port.write_text("1: DOWN\n")
    await it.api.wait_until(path, lambda found: healthy(found) == [False], days.PATIENCE)
    kind = resources.DEVICES
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": {"devices": []}}
    body["metadata"] = {"name": next(name for name in installation.MACHINES if name != days.WORKER)}
    answer = await it.api.as_user(it.tokens["agent"]).call("POST", kind.path(), body)
    assert answer.status == 422, answer.status
    assert "may not write objects of node" in answer.message


async def adapter_in_use(it, device):
    """Half of an adapter goes to a pod, and the status of the Device says so until it leaves."""
    pods = resources.PODS.path("default")
    pod = days.pod_body("adapter", {"cpu": "1", names.RDMA: "50"}, schedulerName="koord-scheduler")
    await it.api.post(pods, pod)

    def shares(found):
        status = (found or {}).get("status") or {}
        return [
            (share["pod"]["name"], share["allocated"])
            for one in status.get("deviceAllocations", ())
            for share in one["allocations"]
        ]

    await it.api.wait_until(device, lambda found: shares(found) == [("adapter", "50%")], 60)
    await it.api.delete(f"{pods}/adapter", gracePeriodSeconds="0")
    await it.api.wait_until(device, lambda found: shares(found) == [], days.PATIENCE)


async def topology(it):
    """The agent says which cpus are shared, and says it again when they change."""
    node = resources.NODES.path(name=days.WORKER)
    path = resources.NODE_RESOURCE_TOPOLOGIES.path(name=days.WORKER)

    def first(cpu):
        def begins(found):
            notes = (found or {"metadata": {}})["metadata"].get("annotations") or {}
            pools = json.loads(notes.get(names.ANNOTATION_CPU_SHARED_POOLS, "null"))
            return bool(pools) and pools[0]["cpuset"].startswith(cpu)

        return begins

    await it.api.wait_until(path, first("0"), days.PATIENCE)
    await it.api.patch(node, reserving('{"reservedCPUs":"0"}'))
    await it.api.wait_until(path, first("1"), days.PATIENCE)
    await it.api.patch(node, reserving(None))
    await it.api.wait_until(path, first("0"), days.PATIENCE)


def reserving(written):
    return {"metadata": {"annotations": {names.ANNOTATION_NODE_RESERVATION: written}}}


async def handed_over(it):
    """An agent that is stopped asks whether another follows; as one does, limits stand."""
    assert "handed over to the next agent" in await it.end("agent")
