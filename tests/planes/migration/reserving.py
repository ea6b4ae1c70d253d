"""Reservations and their owners on any plane: the vocabulary of scenarios of reservations."""

import asyncio
import contextlib
import json

from api import names, resources
from cli.dev import all_in_one
from cli.reservations import cluster, table
from cli.snapshot import reader
from extender import app as extenders
from extender import settings as extender_settings
from manager import app as managers
from manager import settings as manager_settings
from process.http import ports
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.planes import raw
from tests.planes.processes import restarting

PATIENCE = 60.0
SCHEDULERS = ("default-scheduler", "koord-scheduler")
# Without the plug-ins of load and quota, which other scenarios are about.
PLUGINS = {"enabled": ["BatchFit", "NodeNUMAResource", "DeviceShare", "Reservation"]}
KIND = resources.RESERVATIONS
ALLOCATED = names.ANNOTATION_RESERVATION_ALLOCATED


class System:
    """Extender and manager against one API server; they keep their addresses."""

    def __init__(self, spawn, access, more=()):
        """`more` are further plug-ins of the extender."""
        clock, (port,) = clocks.SystemClock(), ports.take(1)
        where = {"access": access, "clock": clock}
        scheduling = extender_settings.Settings.model_validate(
            {
                "server": {**all_in_one.local(), "port": port},
                "health": all_in_one.local(),
                "plugins": {"enabled": [*PLUGINS["enabled"], *more]},
                "freshness": {"idle_seconds": restarting.ALONE_SECONDS},
                "nudges": {"pause_seconds": 0.1},
            }
        )
        controllers = manager_settings.Settings.model_validate(
            {"health": all_in_one.local(), "controllers": ["reservation"]}
        )
        self._hosted = {
            "manager": restarting.Hosted(spawn, lambda: managers.running(controllers, **where)),
            "extender": restarting.Hosted(spawn, lambda: extenders.running(scheduling, **where)),
        }

    @property
    def extender(self):
        return self._hosted["extender"].app

    async def restart(self, *chosen):
        """Stop these processes all at once, start them one after the other, wait for them."""
        for name in chosen:
            await self._hosted[name].stop()
        for name in chosen:
            await self._hosted[name].start()

        async def ready():
            return self.extender.health.ready

        await raw.eventually(ready, PATIENCE)

    async def stop(self):
        """Stop both."""
        for name in ("extender", "manager"):
            await self._hosted[name].stop()


@contextlib.asynccontextmanager
async def running(access, more=()):
    """Both processes, stopped with the block."""
    async with supervise.Supervisor("system", stop_seconds=30.0) as supervisor:
        system = System(supervisor.spawn, access, more)
        try:
            await system.restart("manager", "extender")
            yield system
        finally:
            await system.stop()


class Reserving:
    """One test's Reservations and pods; names of Reservations are those of the test."""

    def __init__(self, here, system, kube):
        self.here, self.api, self.system, self.kube = here, here.api, system, kube
        self._made = []

    # -- reservations ------------------------------------------------------------------------

    def path(self, name, subresource=""):
        """Where a Reservation is found."""
        return KIND.path(name=self.here.name(name), subresource=subresource)

    def placeable(self, template):
        """Return a pod template for the nodes of this test."""
        spec = self.here.pod_body("any")["spec"]
        kept = {key: spec[key] for key in ("nodeSelector", "tolerations")}
        return {**template, "spec": {**template["spec"], **kept}}

    async def apply(self, document, name):
        """Create what a manifest says, under a name of this test, for its nodes."""
        template = self.placeable(document["spec"]["template"])
        body = {
            **document,
            "metadata": {**document["metadata"], "name": self.here.name(name)},
            "spec": {**document["spec"], "template": template},
        }
        await self.api.post(KIND.path(), body)
        self._made.append(name)

    async def reserve(self, name, owners, requests=None, *, labels=None, spec=None, **more):
        """Create a Reservation; `spec` goes into its template, `more` into its own spec."""
        requests = requests or {"cpu": "6"}
        limits = {key: value for key, value in requests.items() if "/" in key}
        container = {"name": "main", "resources": {"requests": requests, "limits": limits}}
        container |= (spec or {}).pop("container", {})
        metadata = {"namespace": self.here.namespace, "labels": labels or {}}
        template = {"metadata": metadata, "spec": {"containers": [container], **(spec or {})}}
        document = {
            "apiVersion": KIND.api_version,
            "kind": KIND.kind,
            "metadata": {},
            "spec": {"template": template, "owners": owners, **more},
        }
        await self.apply(document, name)

    async def change(self, name, **spec):
        """Change the spec of a Reservation."""
        await self.api.patch(self.path(name), {"spec": spec})

    async def until(self, name, predicate):
        """Wait until a Reservation is as wanted; returns it."""
        return await self.api.wait_until(self.path(name), predicate, PATIENCE)

    async def phase(self, name, wanted):
        """Wait until a Reservation is in a phase; returns it."""
        return await self.until(name, lambda one: _status(one).get("phase") == wanted)

    async def available(self, name):
        """Wait until a Reservation has a node; returns the name of the node."""
        return (await self.phase(name, "Available"))["status"]["nodeName"]

    async def waits(self, name, saying=""):
        """Wait until a Reservation says why it has no node; returns the sentence."""

        def says(found):
            told = _condition(found, "Scheduled")
            return told.get("status") == "False" and saying in told.get("message", "")

        return _condition(await self.until(name, says), "Scheduled")["message"]

    async def owned(self, name, *pods):
        """Wait until the status of a Reservation names exactly these owners."""

        def says(found):
            owners = _status(found).get("currentOwners", ())
            return sorted(one["name"] for one in owners) == sorted(pods)

        return await self.until(name, says)

    async def remove(self, name):
        """Delete a Reservation."""
        await self.api.delete(self.path(name))
        self._made.remove(name)

    async def clear(self):
        """Delete the Reservations of this test, and wait until the stand-ins are gone."""
        for name in self._made:
            await self.api.call("DELETE", self.path(name))
        await raw.eventually(self._bare, PATIENCE)

    async def _bare(self):
        pods = await self.api.get(self.here.path("pods"), labelSelector=names.LABEL_STAND_IN)
        for pod in pods["items"]:
            # The manager removes them as well.
            await self.here.drop(pod["metadata"]["name"])
        return not pods["items"]

    # -- pods --------------------------------------------------------------------------------

    async def pod(self, name, cpu="6", *, labels=None, wants=None, requests=None, **more):
        """Create a pod; `wants` is a reservation affinity."""
        notes = dict(more.pop("annotations", {}))
        if wants is not None:
            notes[names.ANNOTATION_RESERVATION_AFFINITY] = json.dumps(wants)
        wanted = {"cpu": cpu, **(requests or {})}
        return await self.here.pod(name, requests=wanted, labels=labels, annotations=notes, **more)

    async def uses(self, pod, name=""):
        """Wait until a pod has a node; see that it uses this Reservation, or none."""
        found = await self.here.bound(pod, PATIENCE)
        note = found["metadata"].get("annotations", {}).get(ALLOCATED)
        used = json.loads(note)["name"] if note else ""
        assert used == (self.here.name(name) if name else ""), used
        return found["spec"]["nodeName"]

    async def refused(self, pod, saying=""):
        """Wait until kube-scheduler finds no node for a pod; returns its message."""
        return await self.here.refused(pod, saying, timeout=PATIENCE)

    # -- what has to hold --------------------------------------------------------------------

    async def seen(self):
        """What `koord status --reservations` reads."""
        wanted = (KIND, resources.PODS, resources.NODES)
        return cluster.build(await reader.taken(self.kube, clocks.SystemClock(), wanted=wanted))

    async def lines(self):
        """What `koord status --reservations` prints of this test, by name of the Reservation."""
        found = await self.seen()
        mine = (line.split() for line in table.lines(found))
        return {words[0]: words[1:] for words in mine if words[0].startswith(self.here.name(""))}

    async def consistent(self):
        """Wait until every status equals the sum of its owners, and no node holds too much."""
        found = []

        async def nothing():
            found[:] = await self._inconsistencies()
            return not found

        try:
            await raw.eventually(nothing, PATIENCE)
        except TimeoutError:
            raise AssertionError("\n".join(found)) from None

    async def _inconsistencies(self):
        seen, found = await self.seen(), []
        kept = {}
        for one in seen.found.values():
            if not one.usage.name.startswith(self.here.name("")):
                continue
            used, status = one.usage, one.written.status
            if used.phase == "Available":
                owners = sorted(owner.uid for owner in used.owners)
                if owners != sorted(owner.uid for owner in status.current_owners):
                    found.append(f"{used.name} has owners {owners}, its status says otherwise")
                kept[used.node] = kept.get(used.node, 0) + used.kept.get("cpu", 0)
        pods = (await self.api.get(self.here.path("pods")))["items"]
        for name, node in seen.nodes.items():
            if name not in self.here.nodes:
                continue
            held = sum(_cpu(pod) for pod in pods if pod["spec"].get("nodeName") == name)
            room = cluster.amounts.node_allocatable(node)["cpu"]
            if held + kept.get(name, 0) > room:
                found.append(f"{name} has {room}: pods {held}, Reservations {kept.get(name)}")
        return found


def _cpu(pod):
    found = 0
    for container in pod["spec"]["containers"]:
        amount = container.get("resources", {}).get("requests", {}).get("cpu", "0")
        found += int(amount[:-1]) if amount.endswith("m") else 1000 * int(amount)
    return found if pod["status"].get("phase") not in ("Succeeded", "Failed") else 0


def _status(found):
    """The status of an object; it may be gone, or have none yet."""
    return (found or {}).get("status", {})


def _condition(found, kind):
    for one in _status(found).get("conditions", ()):
        if one["type"] == kind:
            return one
    return {}


async def together(*waits):
    """Wait for several things at once; returns what each found."""
    return await asyncio.gather(*waits)
