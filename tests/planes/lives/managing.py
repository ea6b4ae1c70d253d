"""What the manager does seldom: objects of no node, quotas of profiles, advice, a dead webhook."""

from api import names, resources
from tests.planes.lives import days, nodes


async def silent_webhook(it):
    """A webhook that nobody hears is withdrawn by the manager."""
    path = resources.MUTATING_WEBHOOKS.path(name="koord-webhook")
    (webhook,) = it.nodes.processes[it.pods["webhook"]]
    webhook.pause()
    await it.api.wait_until(
        path, lambda found: not any(one.get("rules") for one in found["webhooks"]), days.PATIENCE
    )
    webhook.resume()


async def objects_of_no_node(it):
    for resource in (resources.NODE_METRICS, resources.NODE_SLOS):
        body = {"apiVersion": resource.api_version, "kind": resource.kind}
        body["metadata"] = {"name": "nowhere"}
        await it.api.post(resource.path(), body | {"spec": {}})
        path = resource.path(name="nowhere")
        await it.api.wait_until(path, lambda found: conditions(found), days.PATIENCE)
        await it.api.delete(path)


def conditions(found):
    return (found or {}).get("status", {}).get("conditions")


async def node_group(it):
    """A profile sizes the quota of its nodes, and does it again when it changes."""
    profiles = resources.ELASTIC_QUOTA_PROFILES
    spec = {"quotaName": "workers", "nodeSelector": {}, "resourceRatio": "0.5"}
    body = {"apiVersion": profiles.api_version, "kind": profiles.kind, "spec": spec}
    await it.api.post(profiles.path(days.USERS), body | {"metadata": {"name": "workers"}})
    quota = resources.ELASTIC_QUOTAS.path(days.USERS, "workers")
    half = await it.api.wait_until(quota, bool, days.PATIENCE)
    change = {"spec": {"resourceRatio": "1"}}
    await it.api.patch(profiles.path(days.USERS, "workers"), change)
    smaller = half["spec"]["min"]["memory"]
    await it.api.wait_until(quota, lambda q: q["spec"]["min"]["memory"] != smaller, days.PATIENCE)
    for path in (profiles.path(days.USERS, "workers"), quota):
        await it.api.delete(path)


async def advice(it):
    """Whoever asks what a workload should request is told that nothing is known of it."""
    resource = resources.RECOMMENDATIONS
    target = {"type": "podSelector", "podSelector": {"matchLabels": {"app": "nobody"}}}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": {"target": target}}
    await it.api.post(resource.path(days.USERS), body | {"metadata": {"name": "advice"}})
    path = resource.path(days.USERS, "advice")

    def told(found):
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any(c["type"] == "NoObjectsMatched" and c["status"] == "True" for c in conditions)

    await it.api.wait_until(path, told, days.PATIENCE)
    await it.api.delete(path)


async def numa_zones(it):
    """A node whose agent says how it is built lends by zone, and the agent leaves that alone."""
    path = resources.NODE_RESOURCE_TOPOLOGIES.path(name=days.WORKER)
    await it.api.wait_until(path, offers, days.PATIENCE)
    await nodes.topology(it)
    assert offers(await it.api.get(path))


def offers(found):
    listed = [item["name"] for zone in found["zones"] for item in zone.get("resources", ())]
    return names.BATCH_CPU in listed
