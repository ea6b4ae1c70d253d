"""What the manager does seldom: objects of no node, quotas of profiles, advice, a dead webhook."""

import yaml

from api import names, resources
from tests.planes.install.lives import days, nodes, scheduling


async def silent_webhook(it):
    """A webhook that nobody hears is withdrawn by the manager."""
    path = resources.MUTATING_WEBHOOKS.path(name="koord-webhook")
    (webhook,) = it.nodes.processes[it.pods["webhook"]]
    webhook.pause()
    await it.api.wait_until(
        path, lambda found: not any(one.get("rules") for one in found["webhooks"]), days.PATIENCE
    )
    webhook.resume()


async def returned(it):
    """A full quota lets a pod wait and says why; when it shrinks, what is too much goes back."""
    kind, pods = resources.ELASTIC_QUOTAS, resources.PODS.path(scheduling.ONLINE)
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "returned"}}
    spec = {"min": {"cpu": "0"}, "max": {"cpu": "1"}}
    await it.api.post(kind.path(scheduling.ONLINE), body | {"spec": spec})
    for name in ("kept", "waits"):
        pod = days.pod_body(name, {"cpu": "1"}, schedulerName="koord-scheduler")
        pod["metadata"]["labels"] = {names.LABEL_QUOTA_NAME: "returned"}
        await it.api.post(pods, pod)
        await it.api.wait_until(f"{pods}/{name}", _settled, days.PATIENCE)
    path = resources.CONFIG_MAPS.path(days.NAMESPACE, names.CONFIG_MAP_SCHEDULER)
    before = (await it.api.get(path))["data"]
    document = yaml.safe_load(before[names.CONFIG_MAP_SCHEDULER])
    arguments = {"delayEvictTime": "1s", "monitorAllQuotas": True}
    for profile in document["profiles"]:
        plugins = [{"name": "ElasticQuota", "args": arguments}]
        profile["pluginConfig"] = [*profile.get("pluginConfig", ()), *plugins]
    text = yaml.safe_dump(document)
    await it.api.patch(path, {"data": {names.CONFIG_MAP_SCHEDULER: text}})
    await it.api.patch(kind.path(scheduling.ONLINE, "returned"), {"spec": {"max": {"cpu": "500m"}}})
    await it.api.wait_until(f"{pods}/kept", _leaves, days.PATIENCE)
    await it.api.patch(path, {"data": before})
    for name in ("kept", "waits"):
        await it.api.call("DELETE", f"{pods}/{name}", query={"gracePeriodSeconds": "0"})
    await it.api.delete(kind.path(scheduling.ONLINE, "returned"))


async def quotas_of_every_group(it):
    """A quota carries its figures, in whichever group it was written."""
    for number, kind in enumerate(resources.QUOTA_RESOURCES):
        body = {"apiVersion": kind.api_version, "kind": kind.kind}
        # It would claim its namespace; the webhook may not have seen yet that the last one went.
        marks = {names.ANNOTATION_QUOTA_NAMESPACES: f'["nowhere-{number}"]'}
        body["metadata"] = {"name": f"told-{number}", "annotations": marks}
        await it.api.post(kind.path(scheduling.ONLINE), body | {"spec": {"max": {"cpu": "1"}}})
        path = kind.path(scheduling.ONLINE, f"told-{number}")
        await it.api.wait_until(path, lambda found: (found or {}).get("status"), days.PATIENCE)
        await it.api.delete(path)


async def gang(it):
    """The PodGroup of a pod shows that it is placed."""
    kind, pods = resources.POD_GROUPS, resources.PODS.path(days.USERS)
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "gang"}}
    await it.api.post(kind.path(days.USERS), body | {"spec": {"minMember": 1}})
    pod = days.pod_body("member", {"cpu": "100m"}, nodeName=days.WORKER)
    pod["metadata"]["labels"] = {names.LABEL_POD_GROUP: "gang"}
    await it.api.post(pods, pod)
    path = kind.path(days.USERS, "gang")

    def placed(found):
        return (found or {}).get("status", {}).get("scheduled") == 1

    await it.api.wait_until(path, placed, days.PATIENCE)
    await it.api.delete(f"{pods}/member", gracePeriodSeconds="0")
    await it.api.delete(path)


def _settled(pod):
    """Whether a pod has a node, or a condition that says what it waits for."""
    return (pod or {}).get("spec", {}).get("nodeName") or any(
        one["type"] == names.CONDITION_QUOTA for one in conditions(pod) or ()
    )


def _leaves(pod):
    return pod is None or "deletionTimestamp" in pod["metadata"]


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
    """A Recommendation for an unknown workload says that nothing is known of it."""
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


async def network_domains(it):
    """The status of the network's topology shows what nodes form."""
    kind = resources.CLUSTER_NETWORK_TOPOLOGIES
    body = {"apiVersion": kind.api_version, "kind": kind.kind}
    body["metadata"] = {"name": names.DEFAULT_NETWORK_TOPOLOGY}
    layers = [{"topologyLayer": "NodeTopologyLayer"}]
    await it.api.post(kind.path(), body | {"spec": {"networkTopologySpec": layers}})
    path = kind.path(name=names.DEFAULT_NETWORK_TOPOLOGY)
    await it.api.wait_until(
        path, lambda found: (found or {}).get("status", {}).get("detailStatus"), days.PATIENCE
    )
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
