"""Random clusters as an API server takes them, and what kube-scheduler logs of its scores."""

import random
import re
from collections import defaultdict

from tests.domain.scoring import worlds

SCORED = re.compile(
    r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
TOTAL = re.compile(
    r'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
NAMESPACES = ("default", "other")
RUNTIME = "padded"
UID = "00000000-0000-0000-0000-000000000000"
STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
RESOURCES = ("cpu", "memory", worlds.GPU, "ephemeral-storage")


def profiles(draw, number):
    """Return profiles of a scheduler configuration with arguments and weights of all kinds."""
    return [{"schedulerName": f"s{place}", **_profile(draw)} for place in range(number)]


def _profile(draw):
    strategy = {"type": draw.choice(STRATEGIES)}
    chosen = RESOURCES[: draw.randint(1, 4)]
    strategy["resources"] = [{"name": name, "weight": draw.randint(1, 3)} for name in chosen]
    if strategy["type"] == "RequestedToCapacityRatio":
        shape = [
            {"utilization": 0, "score": draw.randint(0, 3)},
            {"utilization": draw.randint(20, 60), "score": 10},
            {"utilization": 100, "score": draw.randint(0, 10)},
        ]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    balanced = [{"name": name, "weight": 1} for name in RESOURCES[: draw.randint(2, 4)]]
    args = [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}},
        {"name": "NodeResourcesBalancedAllocation", "args": {"resources": balanced}},
    ]
    weighed = draw.sample(("TaintToleration", "ImageLocality", "PodTopologySpread"), 2)
    enabled = [{"name": name, "weight": draw.randint(1, 30)} for name in weighed]
    plugins = draw.choice(
        (
            {},
            {"multiPoint": {"enabled": enabled}},
            {"score": {"enabled": enabled}},
            {"score": {"disabled": [{"name": "NodeAffinity"}], "enabled": enabled}},
        )
    )
    return {"pluginConfig": args, "plugins": plugins}


def node(draw, number):
    """Return a node that is ready."""
    body = worlds.node(draw, number)
    body["status"]["allocatable"] |= {"pods": "110", "ephemeral-storage": "20Gi"}
    body["status"]["capacity"] = body["status"]["allocatable"]
    body["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return body


def pod(draw, name, minor, scheduler):
    """Return a pod of anything that this minor version takes."""
    body = worlds.pod(draw, name)
    spec = body["spec"]
    spec |= {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0}
    body["metadata"]["ownerReferences"][0]["uid"] = UID
    if spec.pop("overhead", None):
        spec["runtimeClassName"] = RUNTIME
    for container in (*spec["containers"], *spec["initContainers"]):
        requests = container["resources"]["requests"]
        if draw.random() < 0.2:
            requests["ephemeral-storage"] = "1Gi"
        container["resources"]["limits"] = {k: v for k, v in requests.items() if k == worlds.GPU}
    if minor >= 34 and draw.random() < 0.2:
        spec["resources"] = {"requests": {"cpu": "6500m"}}
    if minor >= 35 and draw.random() < 0.3:
        image = {"reference": f"reg.test/{draw.choice(worlds.APPS)}", "pullPolicy": "Never"}
        spec["volumes"] = [{"name": "model", "image": image}]
    return body


def workload(draw, kind, app):
    """Return a Service or a controller that no controller acts on, and its plural."""
    body = worlds.workload(draw, kind, app)
    body["metadata"]["name"] = f"{app}"
    if kind == "Service":
        body["spec"]["ports"] = [{"port": 80}]
        return "/api/v1", "services", body
    pairs = body["spec"]["selector"]["matchLabels"]
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    body["spec"] |= {"replicas": 1, "template": template | {"metadata": {"labels": pairs}}}
    if kind == "StatefulSet":
        body["spec"]["serviceName"] = app
    return "/apis/apps/v1", f"{kind.lower()}s", body


def scores(log, key):
    """Return what the log says of one pod: points by node and plug-in, and totals by node."""
    points, totals = defaultdict(dict), {}
    for found, plugin, name, score in SCORED.findall(log):
        if found == key:
            points[name][plugin] = int(score)
    for found, name, score in TOTAL.findall(log):
        if found == key:
            totals[name] = int(score)
    return dict(points), totals


def bare(pod):
    """Return a pod without what scores do not depend on."""
    kept = ("name", "namespace", "labels", "ownerReferences")
    dropped = ("volumes", "imagePullPolicy", "dnsPolicy", "securityContext", "enableServiceLinks")
    metadata = {key: pod["metadata"][key] for key in kept if key in pod["metadata"]}
    spec = {key: value for key, value in pod["spec"].items() if key not in dropped}
    for part in ("containers", "initContainers"):
        shown = ("name", "image", "resources", "restartPolicy")
        spec[part] = [{key: one[key] for key in shown if key in one} for one in spec.get(part, ())]
    mounted = [one for one in pod["spec"].get("volumes", ()) if "image" in one]
    return {"metadata": metadata, "spec": spec | ({"volumes": mounted} if mounted else {})}


def seeded(number):
    """Return the source of one cluster."""
    return random.Random(number)


async def create(api, draw, minor):
    """Create a cluster; return its nodes, workloads and the pods on nodes."""
    nodes = [node(draw, number) for number in range(draw.randint(2, 9))]
    for one in nodes:
        await api.post("/api/v1/nodes", one)
    workloads = []
    for kind in ("Service", "ReplicaSet", "StatefulSet"):
        for app in ("web", "db"):
            if draw.random() < 0.6:
                prefix, plural, body = workload(draw, kind, app)
                await api.post(f"{prefix}/namespaces/default/{plural}", body)
                workloads.append(body)
    placed = []
    for number in range(draw.randint(0, 14)):
        body = pod(draw, f"old-{number}", minor, "s0")
        body["spec"] |= {"nodeName": draw.choice(nodes)["metadata"]["name"]}
        placed.append(await api.post(pods(body), body))
    return nodes, workloads, placed


def pods(body):
    return f"/api/v1/namespaces/{body['metadata']['namespace']}/pods"


async def clear(api):
    """Delete everything again."""
    for namespace in NAMESPACES:
        for prefix, plural in (
            ("/api/v1", "pods"),
            ("/api/v1", "services"),
            ("/apis/apps/v1", "replicasets"),
            ("/apis/apps/v1", "statefulsets"),
        ):
            path = f"{prefix}/namespaces/{namespace}/{plural}"
            for item in (await api.get(path))["items"]:
                name = item["metadata"]["name"]
                if (plural, name) != ("services", "kubernetes"):
                    await api.call("DELETE", f"{path}/{name}", query={"gracePeriodSeconds": "0"})
    for item in (await api.get("/api/v1/nodes"))["items"]:
        await api.delete(f"/api/v1/nodes/{item['metadata']['name']}")


def decided(pod):
    """Whether an attempt to place a pod has ended."""
    if pod is None:
        return False
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "PodScheduled" for one in conditions) or pod["spec"].get("nodeName")
