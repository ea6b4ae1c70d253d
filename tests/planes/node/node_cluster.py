"""A cluster with one real node, our processes, and our chart's pods out of our image on it."""

import contextlib
import dataclasses
import json
import pathlib

from api import names, resources
from api.wire import durations
from cli.dev import all_in_one
from extender import settings as extender_settings
from kube.client import access as accesses
from process.runtime import clock as clocks
from tests.planes import definitions, raw
from tests.planes.install import chart
from tests.planes.node import node

NODE = "real-1"
NAMESPACE = "on-a-real-node"
PODS = resources.PODS.path(NAMESPACE)
PATIENCE = 90.0
ENABLE = {"koordinator.sh/enable-colocation": "true"}
LOW, HIGH = {"koord-test/batch": "low"}, {"koord-test/batch": "high"}
PRIORITIES = {"batch-low": 5200, "batch-high": 5400}
"""Batch work that ranks above `koord-batch`, which has 5000."""
# What is lent follows from requests, not from what else happens on this machine at the moment.
COLOCATION = {
    "enable": True,
    "metricAggregateDurationSeconds": 8,
    "metricReportIntervalSeconds": 2,
    "cpuCalculatePolicy": "overcommitRatio",
    "memoryCalculatePolicy": "overcommitRatio",
    "overcommitPercent": 50,
    "updateTimeThresholdSeconds": 5,
}
# Nothing is left for best effort under a threshold of zero, so it gets the least there is.
HOLD = {"enable": True, "cpuSuppressThresholdPercent": 0, "cpuSuppressPolicy": "cfsQuota"}
VALUES = (
    "namespace.create=true",
    "image.pullPolicy=Never",
    "scheduler.mode=none",
    "uninstall.hook=false",
    "tests.enabled=false",
    "manager.replicas=1",
    "descheduler.replicas=1",
    "log.format=text",
    "agent.settings.kubelet.intervalSeconds=1",
)
GATES = (
    *("CgroupReconcile", "BlkIOReconcile", "CPUEvict", "BECPUEvict"),
    *("BEMemoryEvict", "MemoryEvict"),
)
# Everything that this kernel can do; the first line says whether it is done.
OBSERVING, ENFORCING = (
    (
        f"agent.settings.mode={mode}",
        "agent.settings.strategies.mode=enforce",
        "agent.evictions=true",
        *(f"agent.settings.featureGates.{name}=true" for name in GATES),
    )
    for mode in ("observe", "enforce")
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Everything that a test of the real node talks to."""

    api: raw.Api
    node: node.Node
    processes: all_in_one.System
    image: str
    audit_log: pathlib.Path
    """The calls that the API server wrote down."""

    async def create(self, name, **spec):
        """Create a pod, unplaced; returns what the API server made of it."""
        return await self.api.post(PODS, pod(name, **spec))

    async def running(self, name):
        """Wait until all containers of a pod run."""
        return await self.api.wait_until(f"{PODS}/{name}", runs, PATIENCE)

    async def remove(self, name):
        """Delete a pod and wait until its kubelet has let it go."""
        path = f"{PODS}/{name}"
        if (await self.api.call("DELETE", path)).status == 200:
            await self.api.wait_until(path, lambda found: found is None, PATIENCE)

    async def strategy(self, kind="resource-threshold", **strategy):
        """Change what the node is told: how best-effort work is held back, or another part."""
        data = {f"{kind}-config": json.dumps({"clusterStrategy": strategy})}
        path = resources.CONFIG_MAPS.path(names.NAMESPACE, names.CONFIG_MAP_SLO)
        await self.api.patch(path, {"data": data})

    async def configure(self, *values):
        """Let the agent's DaemonSet have other values of the chart; returns its new pod."""
        for document in rendered(self.image, *values):
            if component(document) == "agent":
                await apply(self.api, document)
        path = resources.DAEMON_SETS.path(names.NAMESPACE, "koord-agent")
        await self.api.wait_until(path, rolled_out, PATIENCE)
        return await self.pod_of("agent")

    async def pod_of(self, component):
        """The ready pod of one of our processes that runs out of the image."""
        path = resources.PODS.path(names.NAMESPACE)
        label = f"app.kubernetes.io/component={component}"
        found = []

        async def ready():
            found[:] = (await self.api.get(path, labelSelector=label))["items"]
            return next((one for one in found if is_ready(one)), None)

        try:
            return await raw.eventually(ready, PATIENCE)
        except TimeoutError:
            said = "".join(
                f"\n{json.dumps(one['status'])}\n{self.node.pod_log(one, component)[-4000:]}"
                for one in found
            )
            raise AssertionError(f"no pod of the {component} is ready:{said}") from None

    async def metric(self, predicate=bool):
        """The NodeMetric of the node once its status satisfies the predicate."""
        path = resources.NODE_METRICS.path(name=NODE)
        return await self.api.wait_until(
            path, lambda found: found and predicate(found.get("status") or {}), PATIENCE
        )

    async def gone(self, folders):
        """Wait until the kubelet has removed groups."""

        async def check():
            return not any(folder.exists() for folder in folders)

        await raw.eventually(check, PATIENCE)

    @staticmethod
    def now():
        """Seconds of a clock that only goes forward."""
        return clocks.SystemClock().monotonic()

    @staticmethod
    def later(moment, seconds):
        """A moment of the API some seconds after another one."""
        return durations.moment(durations.timestamp(moment) + seconds)

    def class_group(self, hierarchy):
        """The group of best-effort pods, as this machine sees it."""
        return self.node.group(hierarchy, "kubepods", "besteffort")

    def pod_group(self, hierarchy, found):
        """The group of a pod, as this machine sees it."""
        part = {"BestEffort": "besteffort", "Burstable": "burstable", "Guaranteed": ""}
        above = part[found["status"]["qosClass"]]
        uid = f"pod{found['metadata']['uid']}"
        return self.node.group(hierarchy, *(p for p in ("kubepods", above, uid) if p))


def pod(name, *, labels=None, annotations=None, beside=(), **spec):
    """A pod whose container runs a line of shell, and others beside it."""
    own = {key: spec.pop(key) for key in ("command", "resources", "container") if key in spec}
    first = shell("main", **own)
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"containers": [first, *beside], "terminationGracePeriodSeconds": 5, **spec},
    }


def shell(name, *, command="sleep 100000", resources=None, container=None):
    """A container that runs a line of shell; `container` has more of its fields."""
    return {
        "name": name,
        "image": node.IMAGE,
        "imagePullPolicy": "Never",
        # Process 1 ignores what it has no handler for.
        "command": ["sh", "-c", f"trap 'exit 0' TERM; {{ {command}; }} & wait"],
        "resources": resources or {},
        **(container or {}),
    }


def runs(found):
    """Whether every container of a pod is up."""
    states = (found or {}).get("status", {}).get("containerStatuses") or ()
    return bool(states) and all(one.get("started") for one in states)


def is_ready(found):
    """Whether a pod is ready and stays."""
    conditions = found["status"].get("conditions", ())
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in found["metadata"]


async def apply(api, document):
    """Apply an object on the server's side, whatever its kind."""
    version = document["apiVersion"]
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    listed = (await api.get(prefix))["resources"]
    (found,) = (one for one in listed if one["kind"] == document["kind"] and "/" not in one["name"])
    metadata = document["metadata"]
    space = f"/namespaces/{metadata['namespace']}" if found["namespaced"] else ""
    path = f"{prefix}{space}/{found['name']}/{metadata['name']}"
    await api.patch(path, document, raw.APPLY_PATCH, fieldManager="tests", force="true")


def rendered(image, *more):
    """The chart as rendered, but for the webhook, which API servers have to reach."""
    repository, _, tag = image.rpartition(":")
    values = [f"image.repository={repository}", f"image.tag={tag}", *VALUES, *lending()]
    documents = chart.documents(chart.template(*values, *more))
    return [with_view(one) for one in documents if component(one) != "webhook"]


def lending():
    """Values by which nodes lend what follows from requests alone."""
    return [
        f"clusterSettings.colocation.{key}={str(value).lower() if value is True else value}"
        for key, value in COLOCATION.items()
    ]


def component(document):
    """Which process an object belongs to."""
    return document["metadata"].get("labels", {}).get("app.kubernetes.io/component")


def with_view(document):
    """Show the agent what its node's processors work, as machine containers show it to pods.

    The kernel's own figure is of the whole machine, most of which is not this node.
    """
    if document["kind"] == "DaemonSet":
        spec = document["spec"]["template"]["spec"]
        place = {"path": node.STAT, "type": "File"}
        spec["volumes"].append({"name": "stat", "hostPath": place})
        mount = {"name": "stat", "mountPath": "/proc/stat", "readOnly": True}
        spec["containers"][0]["volumeMounts"].append(mount)
    return document


async def install(api, image):
    """Apply the chart and what the tests add to it."""
    kept = rendered(image)
    first = ("Namespace", "CustomResourceDefinition")
    for document in sorted(kept, key=lambda d: d["kind"] not in first):
        await apply(api, document)
    for document in kept:
        if document["kind"] == "CustomResourceDefinition":
            await definitions.served(api, document, PATIENCE)
    for name, value in PRIORITIES.items():
        body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
        await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)


def profile(labels, priority):
    """A profile that makes batch work of the pods with these labels."""
    return {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": f"{priority}-on-a-real-node"},
        "spec": {
            "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: NAMESPACE}},
            "selector": {"matchLabels": labels},
            "qosClass": "BE",
            "priorityClassName": priority,
        },
    }


def rolled_out(found):
    """Whether the one pod of a DaemonSet is of its latest template, and ready."""
    status = found.get("status", {})
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and status.get("updatedNumberScheduled") == status.get("numberReady") == 1


@contextlib.asynccontextmanager
async def running(plane, real_node, image, folder):
    """Install the chart, start what the API server and the scheduler call, and the scheduler."""
    load = {"usage_thresholds": {"cpu": 0, "memory": 0}}
    local = all_in_one.local()
    extender = extender_settings.Settings.model_validate(
        {"server": local, "health": local, "plugins": {"load_aware": load}}
    )
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    options = all_in_one.Options(folder, extender=extender)
    async with raw.connected(plane.server, plane.ca, plane.token) as api:
        await install(api, image)
        await api.post(resources.NAMESPACES.path(), {"metadata": {"name": NAMESPACE}})
        account = resources.SERVICE_ACCOUNTS.path(NAMESPACE, "default")
        await api.wait_until(account, lambda found: found is not None, PATIENCE)
        for labels, priority in (
            (ENABLE, "koord-batch"),
            (LOW, "batch-low"),
            (HIGH, "batch-high"),
        ):
            await apply(api, profile(labels, priority))
        async with all_in_one.running(options, access=access, clock=clock) as processes:

            async def ready():
                return not any(app.health.failing() for _, app in processes.apps())

            await raw.eventually(ready, PATIENCE)
            await plane.start_scheduler(processes.extender.url)
            try:
                yield Cluster(api, real_node, processes, image, plane.binaries.audit_log)
            finally:
                await plane.stop_scheduler()
