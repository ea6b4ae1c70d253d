"""A control plane with the migration of pods; tests play scheduler, manager and kubelets."""

import contextlib
import dataclasses
import time
from typing import Any

import pytest

from api import resources
from descheduler.configuration import by_profile
from descheduler.configuration.arguments import migration as arguments
from descheduler.migration import stores, term
from descheduler.model import object_projection, objects, picture, pod_object, pod_projection
from kube.client import access, client
from kube.informers import informer_set, reflector
from process.runtime import metrics, supervise
from simulator import faults
from simulator.apiserver import apiserver
from tests import loopback, patience
from tests.planes import definitions

JOBS, PODS, KEPT = resources.POD_MIGRATION_JOBS, resources.PODS, resources.RESERVATIONS
KINDS = {"PodMigrationJob", "Reservation"}
ZERO = {"terminationGracePeriodSeconds": 0}
# Garbage collection deletes pods whose owner does not exist; this one creates none.
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web"}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


@dataclasses.dataclass
class Checks:
    """Lets pods move as far as a test says."""

    never: str = ""
    not_now: str = ""

    def permanent_refusal(self, profile, pod):
        return self.never

    def present_refusal(self, profile, pod, migrating, along):
        return self.not_now


class Events:
    """Keeps events in place of posting them."""

    def __init__(self):
        self.told = []

    def event(self, regarding, kind, reason, note, action=""):
        self.told.append((regarding.kind, regarding.name, kind, reason))
        return True

    def reasons(self, kind="PodMigrationJob"):
        return [reason for of, _, _, reason in self.told if of == kind]


@dataclasses.dataclass
class Running:
    """The migration of one process."""

    seen: stores.Stores
    registry: metrics.Registry
    migration: term.Migration


class World:
    """A control plane, seen over HTTP by one administrator."""

    def __init__(self, plane: apiserver.ApiServer, admin: client.Client, clock: Any):
        self.plane, self.admin, self.clock = plane, admin, clock
        self.checks, self.events, self.enforced, self.replicas = Checks(), Events(), True, 1

    @property
    def access(self) -> access.Access:
        return access.Access(self.plane.url, self.plane.ca, access.StaticToken(self.plane.token))

    # -- time ------------------------------------------------------------------------------

    async def until(self, what):
        """Let time pass in small steps until something is so."""

        async def step():
            await self.clock.advance(0.25)

        return await patience.until(what, step, lambda: self.told())

    async def passing(self, seconds):
        """Let time pass."""
        for _ in range(int(seconds)):
            await self.clock.advance(1.0)

    def told(self):
        return f"jobs {self.stored(JOBS)}, Reservations {self.stored(KEPT)}"

    # -- objects ---------------------------------------------------------------------------

    def stored(self, resource, name=""):
        """What is stored now: one object or all of a kind."""
        items = self.plane.objects.list(resource).items
        if not name:
            return list(items)
        return next((one for one in items if one["metadata"]["name"] == name), None)

    def status(self, name="j"):
        return (self.stored(JOBS, name) or {}).get("status", {})

    def condition(self, kind, name="j"):
        """Status and reason of a condition of a job."""
        for one in self.status(name).get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one.get("reason", "")
        return None

    async def phase(self, wanted, name="j"):
        """Wait for a phase of a job, return its status."""
        await self.until(lambda: self.status(name).get("phase") == wanted)
        return self.status(name)

    async def workload(self):
        """The uid of the object that controls the pods."""
        found = self.stored(resources.CONFIG_MAPS, OWNER["name"])
        if found is None:
            body = {"metadata": {"name": OWNER["name"]}}
            found = await self.admin.create(resources.CONFIG_MAPS, body, "default")
        return found["metadata"]["uid"]

    async def pod(self, name="web-0", node="node-0", *, labels=None, bare=False, **spec):
        """A pod that runs, of a controller unless it is bare."""
        owner = {**OWNER, "uid": await self.workload(), "controller": True}
        owners = [] if bare else [owner]
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}, "ownerReferences": owners},
            "spec": {"nodeName": node, "containers": [container], **ZERO, **spec},
        }
        await self.admin.create(PODS, body, "default")
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "conditions": [ready]}
        await self.admin.patch(
            PODS, name, {"status": status}, namespace="default", subresource="status"
        )

    async def move(self, name="j", pod="web-0", *, annotations=None, labels=None, **spec):
        """Create a job that moves a pod."""
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"podRef": {"namespace": "default", "name": pod}, **spec},
        }
        await self.admin.create(JOBS, body)

    def reservation(self, name="j"):
        """The Reservation of a job."""
        uid = self.stored(JOBS, name)["metadata"]["uid"]
        return self.stored(KEPT, uid)

    async def reserved(self, name="j", node="node-1"):
        """Do what manager and extender do: place the Reservation of a job."""
        await self.until(lambda: self.reservation(name))
        await self.place(self.reservation(name)["metadata"]["name"], node)

    async def place(self, reservation, node="node-1", phase="Available"):
        """Give a Reservation a node."""
        scheduled = {"type": "Scheduled", "status": "True", "reason": "Scheduled"}
        status = {"phase": phase, "nodeName": node, "conditions": [scheduled]}
        await self.admin.patch(KEPT, reservation, {"status": status}, subresource="status")

    async def used(self, name="j", by="web-1", node="node-1"):
        """Do what the scheduler does: the new pod takes the Reservation of a job."""
        await self.pod(by, node)
        uid = self.stored(PODS, by)["metadata"]["uid"]
        owner = {"namespace": "default", "name": by, "uid": uid}
        status = {"phase": "Succeeded", "currentOwners": [owner]}
        held = self.reservation(name)["metadata"]["name"]
        await self.admin.patch(KEPT, held, {"status": status}, subresource="status")

    # -- the process -----------------------------------------------------------------------

    def _watched(self, api):
        members = informer_set.InformerSet(api, self.clock)
        of_dict = reflector.Projection
        projector = pod_projection.Projector()
        seen = stores.Stores(
            members.add(of_dict(JOBS, dict, object_projection.job)),
            members.add(reflector.Projection(PODS, pod_object.Pod, projector.pod)),
            members.add(of_dict(KEPT, dict, object_projection.reservation)),
            members.add(
                reflector.Projection(
                    resources.POD_DISRUPTION_BUDGETS,
                    object_projection.core.PodDisruptionBudget,
                    object_projection.budget,
                )
            ),
        )
        return members, seen

    @contextlib.asynccontextmanager
    async def migrating(self, **args):
        """Run the migration until the end of the block."""
        given = arguments.MigrationControllerArgs.model_validate(args)
        duties = term.duties(by_profile.ByProfile(given))
        registry = metrics.Registry()
        async with contextlib.AsyncExitStack() as stack:
            api = client.Client(self.access, clock=self.clock, user_agent="descheduler")
            api = await stack.enter_async_context(api)
            tasks = await stack.enter_async_context(supervise.Supervisor("test"))
            members, seen = self._watched(api)
            members.start(tasks)
            await self.until(lambda: all(one.store.synced for one in members.members))
            around = term.Surroundings(
                seen, lambda now: _picture(seen, now), lambda _: self.checks,
                lambda uid: self.replicas, lambda: self.enforced,
            )  # fmt: skip
            migration = term.Migration(around, duties, self.clock, registry)
            tasks.start("migration", lambda: migration.run(api, self.events))
            tasks.start("metrics", migration.tell)
            yield Running(seen, registry, migration)
            await tasks.stop()


def _picture(seen: stores.Stores, now: float) -> picture.Picture:
    jobs: dict[str, objects.Job] = dict(seen.jobs.items())
    pods = {pod.uid: pod for pod in seen.pods}
    return picture.Picture(now=now, nodes={}, pods=pods, on_node={}, alike={}, jobs=jobs)


@pytest.fixture
def clock():
    """A clock that starts now, since leases and events tell real dates."""
    return loopback.LoopbackClock(float(int(time.time())))


@pytest.fixture
async def world(clock):
    """An empty cluster that knows jobs and Reservations."""
    trouble = faults.Faults(clock)
    options = apiserver.Options(faults=trouble, encrypted=False)
    async with apiserver.running(clock=clock, options=options) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(plane, admin, KINDS)
            made = World(plane, admin, clock)
            made.trouble = trouble
            yield made
