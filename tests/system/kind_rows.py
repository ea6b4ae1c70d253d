"""What is done to an object of every kind of ours, and what its controller then has to say."""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Any

from api import names, resources
from api.wire import durations
from extender import app as extenders
from extender.settings import Settings as ExtenderSettings
from tests import builders
from tests.descheduler import conftest as descheduling
from tests.manager import conftest as managing

ANYWHERE = {"port": 0, "linger_seconds": 0}


class World(managing.World, descheduling.World):
    """A control plane, one administrator with kubectl, and the process that acts on a kind."""

    def __init__(self, plane: Any, admin: Any, clock: Any, folder: pathlib.Path) -> None:
        super().__init__(plane, admin, clock)
        self.folder = folder

    @contextlib.asynccontextmanager
    async def acting(self, process: str, controllers: tuple[str, ...]):
        """Run one process until the end of the block."""
        if process == "manager":
            started: Any = self.manager(controllers=controllers)
        elif process == "descheduler":
            started = self.descheduler(self.folder, finds_targets=False)
        else:
            chosen = ExtenderSettings(server=ANYWHERE, health=ANYWHERE)
            started = extenders.running(chosen, access=self.access, clock=self.clock)
        async with started as running:
            for _ in range(100):
                if running.health.ready:
                    break
                await self.clock.advance(0.1)
            await self.quiet()
            yield

    async def make(self, resource: resources.Resource, name: str, **more: Any) -> None:
        """Do what `kubectl create` does."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind}
        body["metadata"] = {"name": name, **more.pop("metadata", {})}
        namespace = "default" if resource.namespaced else ""
        await self.admin.create(resource, {**body, **more}, namespace)

    def condition(self, resource: resources.Resource, name: str, kind: str) -> str | None:
        """Return the status of a condition, as `kubectl describe` shows it."""
        found = self.stored(resource, name) or {}
        facts = found.get("status", {}).get("conditions") or ()
        if resource is resources.NODE_RESOURCE_TOPOLOGIES:
            notes = found["metadata"].get("annotations", {})
            facts = json.loads(notes.get(names.ANNOTATION_CONDITIONS, "[]"))
        return next((one["status"] for one in facts if one["type"] == kind), None)

    def told(self, resource: resources.Resource, name: str) -> list[str]:
        """Return the reasons of the events about one object."""
        return [
            event["reason"]
            for event in self.stored(resources.CORE_EVENTS)
            if (about := event.get("involvedObject") or event.get("regarding"))
            and (about["kind"], about["name"]) == (resource.kind, name)
        ]


Act = Callable[[World, str], Awaitable[None]]


@dataclasses.dataclass(frozen=True)
class Stage:
    """One change through the API, and what has to follow."""

    act: Act
    name: str
    condition: tuple[str, str]
    event: str
    """Empty: this outcome has no event; `Row.why` says why."""


@dataclasses.dataclass(frozen=True)
class Row:
    """Two changes: the first meets faults of the API server, the second does not."""

    first: Stage
    second: Stage
    controllers: tuple[str, ...] = ()
    process: str = "manager"
    debounce: float = 0.0
    """Virtual seconds within which the second change has to be acted on."""
    why: str = ""
    """Why there is a debounce, or no event."""


def created(resource: resources.Resource, **body: Any) -> Act:
    """Return an act that creates an object."""

    async def act(world: World, name: str) -> None:
        await world.make(resource, name, **body)

    return act


def patched(resource: resources.Resource, **body: Any) -> Act:
    """Return an act that changes an object."""

    async def act(world: World, name: str) -> None:
        await world.admin.patch(resource, name, body)

    return act


def twice(act: Act, condition: tuple[str, str], event: str, **row: Any) -> Row:
    """Return a row that does the same with two objects."""
    first, second = (Stage(act, name, condition, event) for name in ("a", "b"))
    return Row(first, second, **row)


async def _reserve(world: World, name: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    owners = [{"labelSelector": {"matchLabels": {"job": "x"}}}]
    expires = durations.moment(world.clock.now() - 1)
    spec = {"template": template, "owners": owners, "expires": expires}
    await world.make(resources.RESERVATIONS, name, spec=spec)


async def _gang(world: World, name: str) -> None:
    await world.make(resources.POD_GROUPS, name, spec={"minMember": 2})
    for member in ("one", "two"):
        pod = builders.a_pod(member, node="n1", labels={names.LABEL_POD_GROUP: name})
        await world.admin.create(resources.PODS, pod, "default")


async def _lose_a_pod(world: World, _name: str) -> None:
    await world.admin.delete(resources.PODS, "one", "default", grace_seconds=0)


_LAYERS = [
    {"topologyLayer": "BlockLayer", "labelKey": ["block"]},
    {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
]
_AMOUNTS = dict.fromkeys(("capacity", "allocatable", "available"), "8")
_ZONES = [{"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **_AMOUNTS}]}]
_GPUS = [{"type": "gpu", "id": "GPU-0", "minor": 0, "health": True}]
_QUOTA = {"min": {"cpu": "1"}, "max": {"cpu": "2"}}
_TARGET = {"type": "workload", "workload": {"kind": "Deployment", "name": "web"}}
_NETWORKS = resources.CLUSTER_NETWORK_TOPOLOGIES

ROWS = {
    resources.COLOCATION_PROFILES: twice(
        created(resources.COLOCATION_PROFILES, spec={"priorityClassName": "none"}),
        ("Ready", "False"), "PriorityClassMissing", controllers=("profilestatus",),
    ),
    resources.NODE_SLOS: twice(
        created(resources.NODE_SLOS, spec={}),
        ("Effective", "False"), "NoSuchNode", controllers=("nodeslo",),
    ),
    resources.NODE_METRICS: twice(
        created(resources.NODE_METRICS, spec={}),
        ("Effective", "False"), "NoSuchNode", controllers=("nodemetric",),
    ),
    resources.RESERVATIONS: twice(
        _reserve, ("Ready", "False"), "Expired", controllers=("reservation",)
    ),
    resources.DEVICES: twice(
        created(resources.DEVICES, spec={"devices": _GPUS}),
        ("Accepted", "True"), "DevicesListed", controllers=("devicestatus",),
    ),
    resources.POD_MIGRATION_JOBS: twice(
        created(
            resources.POD_MIGRATION_JOBS,
            spec={"podRef": {"namespace": "default", "name": "gone"}},
        ),
        ("Succeeded", "False"), "MissingPod", process="descheduler", debounce=2.0,
        why="jobs are arbitrated together, in rounds of half a second",
    ),
    _NETWORKS: Row(
        Stage(
            created(_NETWORKS, spec={"networkTopologySpec": _LAYERS}), "default",
            ("Accepted", "True"), "LayersAccepted",
        ),
        Stage(
            patched(_NETWORKS, spec={"networkTopologySpec": _LAYERS[:1]}), "default",
            ("Accepted", "False"), "InvalidLayers",
        ),
        controllers=("topologystatus",), debounce=10.0,
        why="nodes come in bursts: the status is written every 10 seconds at most",
    ),
    resources.SCHEDULE_EXPLANATIONS: twice(
        created(resources.SCHEDULE_EXPLANATIONS, spec={"questionObjectKey": "default/gone"}),
        ("Current", "False"), "PodUnknown", process="extender", debounce=1.5,
        why="explanations are written once a second, beside the calls of the scheduler",
    ),
    **{
        kind: twice(
            created(kind, spec=_QUOTA), ("Effective", "True"), "QuotaCounted",
            controllers=("quotastatus",), debounce=2.0,
            why="what many pods change at once goes into one write a second",
        )
        for kind in resources.QUOTA_RESOURCES
    },
    resources.POD_GROUPS: Row(
        Stage(_gang, "g", ("Quorum", "True"), ""),
        Stage(_lose_a_pod, "g", ("Quorum", "False"), "GangBelowQuorum"),
        controllers=("podgroup",), debounce=3.0,
        why="a gang that becomes complete has no event; a loss counts after a second",
    ),
    resources.ELASTIC_QUOTA_PROFILES: twice(
        created(
            resources.ELASTIC_QUOTA_PROFILES,
            spec={"quotaName": "q", "nodeSelector": {"matchLabels": {"a": "b"}}},
        ),
        ("Ready", "True"), "QuotaKept", controllers=("quotaprofile",),
    ),
    resources.RECOMMENDATIONS: twice(
        created(resources.RECOMMENDATIONS, spec={"target": _TARGET}),
        ("Ready", "False"), "NoPodsMatched", controllers=("recommendation",),
    ),
    resources.NODE_RESOURCE_TOPOLOGIES: twice(
        created(resources.NODE_RESOURCE_TOPOLOGIES, topologyPolicies=["None"], zones=_ZONES),
        ("Accepted", "False"), "NoSuchNode", controllers=("nodetopology",),
    ),
}  # fmt: skip
"""By kind; `resources.CUSTOM` without a row here fails."""
