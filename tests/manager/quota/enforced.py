"""A simulated control plane with quotas, and managers that enforce them; a scheduler by hand."""

import contextlib
import dataclasses
import json

from api import names, resources
from api.kubernetes import core
from domain.quota import model
from kube.client import client
from kube.controllers import recorder
from kube.informers import informer_set, pod_informer, reflector
from manager.model import projections
from manager.quota import book, enforcement, informers
from manager.quota.overuse import reclaim
from manager.quota.waiting import gates, gates_conditions
from manager.reconcile import apply
from process.runtime import metrics, supervise
from tests import builders
from tests.manager.quota.conftest import a_quota

PACE = gates.Pace(
    conditions=gates_conditions.Pace(patience_seconds=0.0, again_seconds=5.0),
    own_namespace=names.NAMESPACE,
)
DUTIES = enforcement.Duties(names.NAMESPACE, opens=PACE)


def duties(**changed):
    """Return what a manager is to do at another pace."""
    return enforcement.Duties(names.NAMESPACE, opens=dataclasses.replace(PACE, **changed))


RECLAIMS = enforcement.Duties(
    names.NAMESPACE, opens=PACE, reclaims=reclaim.Pace(own_namespace=names.NAMESPACE)
)


@dataclasses.dataclass
class Life:
    """One manager at work."""

    book: book.Book
    registry: metrics.Registry
    tasks: supervise.Supervisor
    api: client.Client


class Events:
    """Events as they were recorded."""

    def __init__(self):
        self.told = []

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.name, reason, note))
        return True


class Plane:
    """What tests do to the cluster, and what they see of it."""

    def __init__(self, world):
        self.world = world
        self.clock = world.clock
        self.events = Events()
        self.peak = {}

    async def quota(self, name, most, least=None, namespace="default", **options):
        raw = a_quota(name, namespace, most=most, least=least or {}, **options)
        for field in ("resourceVersion", "uid", "creationTimestamp"):
            raw["metadata"].pop(field)
        await self.world.admin.create(resources.ELASTIC_QUOTAS, raw, namespace)

    async def set_quota(self, name, namespace="default", **spec):
        await self.world.admin.patch(
            resources.ELASTIC_QUOTAS, name, {"spec": spec}, namespace=namespace
        )

    async def node(self, name, cpu):
        """Let a node come that is ready."""
        await self.world.node(name, cpu=cpu)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await self.world.admin.patch(resources.NODES, name, {"status": ready}, subresource="status")

    async def pod(
        self,
        name,
        quota,
        cpu="1",
        *,
        gated=True,
        firm=False,
        gates=(),
        later=0,
        finalizers=(),
        **given,
    ):
        await self.clock.advance(later)
        labels = {names.LABEL_QUOTA_NAME: quota} if quota else {}
        if firm:
            labels[names.LABEL_QUOTA_PREEMPTIBLE] = "false"
        chosen = (*([names.GATE_QUOTA] if gated else ()), *gates)
        spec = given.pop("spec", {})
        raw = builders.a_pod(name, cpu=cpu, labels=labels, gates=chosen, **given)
        raw["spec"].update(spec)
        raw.pop("status", None)
        raw["metadata"]["finalizers"] = finalizers
        await self.world.admin.create(resources.PODS, raw, raw["metadata"]["namespace"])

    async def delete(self, name, namespace="default"):
        await self.world.admin.delete(resources.PODS, name, namespace, grace_seconds=0)

    async def bind(self, name, node="n1", namespace="default"):
        found = self.found(name)
        await self.world.admin.bind(
            namespace, name, uid=found["metadata"]["uid"], node=node, annotations={}
        )

    async def status(self, name, status, namespace="default"):
        await self.world.admin.patch(
            resources.PODS, name, {"status": status}, namespace=namespace, subresource="status",
            kind=client.Patch.STRATEGIC,
        )  # fmt: skip

    async def unschedulable(self, name):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
            "lastTransitionTime": builders.durations.moment(self.clock.now()),
        }
        await self.status(name, {"conditions": [condition]})

    async def switch(self, **modes):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE},
            "data": {key.replace("_", "-"): value for key, value in modes.items()},
        }
        await self.world.admin.patch(
            resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, body, namespace=names.NAMESPACE,
            kind=client.Patch.APPLY, field_manager="admin", force=True,
        )  # fmt: skip

    async def configure(self, **arguments):
        """Write the arguments of plug-in ElasticQuota."""
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "koord-scheduler",
                    "pluginConfig": [{"name": "ElasticQuota", "args": arguments}],
                }
            ],
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.CONFIG_MAP_SCHEDULER, "namespace": names.NAMESPACE},
            "data": {names.CONFIG_MAP_SCHEDULER: json.dumps(document)},
        }
        await self.world.admin.create(resources.CONFIG_MAPS, body, names.NAMESPACE)

    async def budget(self, name, labels, **spec):
        """Let a disruption budget speak for pods with these labels; it forbids every eviction."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}, **(spec or {"maxUnavailable": 0})},
        }
        await self.world.admin.create(resources.POD_DISRUPTION_BUDGETS, body, "default")

    def found(self, name):
        return self.world.stored(resources.PODS, name)

    def pods(self):
        return self.world.stored(resources.PODS)

    def open(self):
        """Return the pods without a gate that have no node, in the order of their names."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.pods()
            if not pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName")
        )

    def leaving(self):
        """Return the pods that are being deleted."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.pods()
            if pod["metadata"].get("deletionTimestamp")
        )

    async def stop_leaving(self):
        """Let the kubelet finish with the pods that are being deleted."""
        for name in self.leaving():
            await self.delete(name)

    def gated(self):
        return sorted(
            pod["metadata"]["name"] for pod in self.pods() if pod["spec"].get("schedulingGates")
        )

    def condition(self, name):
        found = self.found(name)["status"].get("conditions", ())
        return next((one for one in found if one["type"] == names.CONDITION_QUOTA), None)

    def admitted(self, quota):
        """Return what pods of a quota request that are open or bound, in thousandths of a core."""
        return sum(
            int(float(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) * 1000)
            for pod in self.pods()
            if pod["metadata"].get("labels", {}).get(names.LABEL_QUOTA_NAME) == quota
            and not pod["spec"].get("schedulingGates")
        )

    async def schedule(self, node="n1"):
        """Bind every pod that is open."""
        for name in self.open():
            await self.bind(name, node)

    async def run(self, seconds):
        """Let time pass in the steps in which changes are taken together."""
        for _ in range(max(1, round(seconds / 0.1))):
            await self.clock.advance(0.1)
        await self.world.quiet()

    @contextlib.asynccontextmanager
    async def manager(self, duties=DUTIES, *, guard=None, wrap=lambda writer: writer):
        """Let one manager enforce quotas until the end of the block."""
        registry = metrics.Registry()
        who = self.world.access
        async with (
            client.Client(who, clock=self.clock, user_agent="manager") as api,
            supervise.Supervisor("manager") as tasks,
        ):
            members = informer_set.InformerSet(api, self.clock)
            nodes = members.add(reflector.Projection(resources.NODES, core.Node, projections.node))
            pods = pod_informer.shared(members, core.Pod)
            elastic = informers.shared(members, resources.ELASTIC_QUOTAS)
            seen = book.Book(informers.added(members, nodes, pods, elastic), model.Rules())
            work = enforcement.Enforcement(members, seen, duties, self.clock, registry)
            members.start(tasks)
            await members.synced()
            seen.synced()
            writes = api if guard is None else api.fenced(guard)
            writer = apply.Writer(writes, self.events, self.clock, registry)
            writer = wrap(writer)
            tasks.start("enforcement", lambda: work.run(writer, api))
            await self.run(0.1)
            yield Life(seen, registry, tasks, api)


__all__ = ["DUTIES", "PACE", "Events", "Life", "Plane", "recorder"]
