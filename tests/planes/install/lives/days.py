"""What people do every day with an installation, so that every process does its work."""

import json

from api import names, resources
from api.wire import quantity
from tests.planes import raw
from tests.planes.install import installation

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
USERS = "installation-test"
WAITING = "waiting"
PODS = resources.PODS.path(USERS)
WORKER = installation.WORKER
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": USERS},
    "spec": {
        "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: USERS}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "schedulerName": "koord-scheduler",
    },
}


async def used(it):
    """What people do every day; returns a pod as it was created and as it ran."""
    await it.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": USERS}})
    account = resources.SERVICE_ACCOUNTS.path(USERS, "default")
    await it.api.wait_until(account, lambda found: found is not None, PATIENCE)
    profile = resources.COLOCATION_PROFILES.path()
    await it.api.post(profile, PROFILE)
    node = resources.NODES.path(name=WORKER)
    await it.api.wait_until(node, lent, PATIENCE)

    async def changed():
        # The webhook may not know the profile yet.
        pod = await it.api.post(PODS, pod_body("job", {"cpu": "1", "memory": "1Gi"}))
        if pod["spec"].get("priorityClassName") == "koord-batch":
            return pod
        await it.api.delete(f"{PODS}/job", gracePeriodSeconds="0")
        return None

    mutated = await raw.eventually(changed, PATIENCE)
    bound = await it.api.wait_until(
        f"{PODS}/job", lambda pod: pod and pod["status"].get("phase") == "Running", PATIENCE
    )
    slo = resources.NODE_SLOS.path(name=WORKER)
    await it.api.wait_until(slo, lambda found: found and found.get("status"), PATIENCE)
    # The settings of the cluster change, and what nodes enforce follows.
    path = resources.CONFIG_MAPS.path(NAMESPACE, names.CONFIG_MAP_SLO)
    text = json.dumps({"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 71}})
    await it.api.patch(path, {"data": {"resource-threshold-config": text}})

    def follows(found):
        percent = found["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"]
        return percent == 71

    await it.api.wait_until(slo, follows, PATIENCE)
    return mutated, bound


async def cleared(it):
    """Take away what the users made, for the next life on the same control plane."""
    await it.api.delete(resources.COLOCATION_PROFILES.path(name=USERS))
    await it.api.delete(resources.RESERVATIONS.path(name=WAITING))
    for pod in (await it.api.get(PODS))["items"]:
        await it.api.delete(f"{PODS}/{pod['metadata']['name']}", gracePeriodSeconds="0")
    for node in installation.MACHINES:
        await it.api.delete(resources.NODES.path(name=node))


def lent(node):
    return quantity.whole(node["status"]["allocatable"].get(names.BATCH_CPU, 0))


def pod_body(name, requests, **spec):
    container = {"name": "main", "image": "x:1"}
    container["resources"] = {"requests": requests, "limits": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }
