"""A running extender over HTTP in virtual time, an API server with gates, and a small scheduler."""

import contextlib
import json

import aiohttp
from aiohttp import web

from api import names
from extender import app, settings
from process.runtime import clock, supervise
from tests import patience
from tests.extender.conftest import NOW, ApiServer, Make
from tests.extender.running_extender import ANYWHERE

ENABLED = tuple(dict.fromkeys((*settings.PluginSettings().enabled, "Coscheduling")))
GATE = {"name": names.GATE_GANG}


class GangServer(ApiServer):
    """Merges gates and conditions as the API server does, and evicts."""

    def __init__(self):
        super().__init__()
        self.objects["events"] = {}
        self.cut = False
        self.evicted = []
        self.patches = 0
        self.stop_after = None
        """After how many opened gates every further write fails."""

    async def _patch(self, request):
        if self.cut:
            request.transport.abort()
            return web.Response()
        parts = request.path.strip("/").removesuffix("/status").split("/")
        body = await request.json()
        wanted = (body.get("spec") or {}).get("schedulingGates")
        if wanted is None and "status" not in body:
            return await super()._patch(request)
        found = self.objects["pods"].get(f"{parts[-3]}/{parts[-1]}")
        if found is None:
            return web.json_response({"code": 404}, status=404)
        if body.get("metadata", {}).get("uid") not in (None, found["metadata"]["uid"]):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        merged = json.loads(json.dumps(found))
        if wanted is not None:
            if self.stop_after is not None and self.patches >= self.stop_after:
                return web.json_response({"code": 500, "message": "no"}, status=500)
            self.patches += 1
            gone = {gate["name"] for gate in wanted if gate.get("$patch") == "delete"}
            gates = merged["spec"].get("schedulingGates", [])
            merged["spec"]["schedulingGates"] = [g for g in gates if g["name"] not in gone]
        notes = body.get("metadata", {}).get("annotations", {})
        merged["metadata"].setdefault("annotations", {}).update(notes)
        status = body.get("status", {})
        conditions = {one["type"]: one for one in merged["status"].get("conditions", [])}
        conditions |= {one["type"]: one for one in status.pop("conditions", [])}
        merged["status"] |= status | {"conditions": list(conditions.values())}
        self.put("pods", merged)
        return web.json_response(merged)

    async def _post(self, request):
        if self.cut:
            request.transport.abort()
            return web.Response()
        if request.path.endswith("/eviction"):
            parts = request.path.strip("/").split("/")
            key = f"{parts[3]}/{parts[5]}"
            self.evicted.append(key)
            if key in self.objects["pods"]:
                self.delete("pods", key)
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        return await super()._post(request)


class Stage:
    """The extender, its API server, and a scheduler that takes what filter leaves."""

    def __init__(self, extender, session, server, time, tasks):
        self.tasks = tasks
        self.app, self.session, self.server, self.time = extender, session, server, time
        self.make = Make()
        self.binds = {}
        self.assumed = {}
        """By pod: the node on which it is being bound."""
        self.refused = {}
        """By pod: when it was refused last."""

    # -- objects -----------------------------------------------------------------------------

    def gang(self, name, count, *, first=0, least=None, cpu="4", priority=0, **notes):
        for number in range(first, first + count):
            self.member(name, number, least=least or count, cpu=cpu, priority=priority, **notes)

    def member(self, gang, number, *, least, cpu="4", priority=0, uid="", spec=None, **notes):
        raw = self.make.pod(f"{gang}-{number}", uid=uid, requests={"cpu": cpu})
        raw["metadata"]["annotations"] = {
            names.ANNOTATION_GANG_NAME: gang,
            names.ANNOTATION_GANG_MIN_AVAILABLE: str(least),
            **notes,
        }
        raw["metadata"]["creationTimestamp"] = "2026-07-01T12:00:00Z"
        raw["spec"] |= {"schedulingGates": [GATE], "priority": priority}
        raw["spec"] |= spec or {}
        self.server.put("pods", raw)

    def pods(self, gang):
        found = self.server.objects["pods"].values()
        return [one for one in found if one["metadata"]["name"].startswith(f"{gang}-")]

    def bound(self, gang):
        return sum(bool(one["spec"].get("nodeName")) for one in self.pods(gang))

    def gated(self, gang):
        return sum(bool(one["spec"].get("schedulingGates")) for one in self.pods(gang))

    def conditions(self, gang):
        return [
            one
            for pod in self.pods(gang)
            for one in pod["status"].get("conditions", [])
            if one["type"] == names.CONDITION_GANG
        ]

    def nudged(self, gang):
        return [
            pod
            for pod in self.pods(gang)
            if names.ANNOTATION_NUDGE in pod["metadata"]["annotations"]
        ]

    def claims(self):
        return [one for one in self.app.books.nominations.values() if one.evidence == "gang"]

    # -- the scheduler -------------------------------------------------------------------------

    async def call(self, verb, body):
        async with self.session.post(f"{self.app.url}/{verb}", json=body) as answer:
            return await answer.json(content_type=None)

    async def schedule(self, most=None):
        """Try every pod that has neither gate nor node, each at most once a second; or some."""
        for raw in list(self.server.objects["pods"].values()):
            name, spec = raw["metadata"]["name"], raw["spec"]
            waits = not spec.get("nodeName") and not spec.get("schedulingGates")
            if not waits or name in self.binds or name == "koord-extender":
                continue
            if self.time.now() - self.refused.get(name, 0.0) < 1.0:
                continue
            if most == 0:
                return
            most = None if most is None else most - 1
            found = await self.passing(raw)
            if not found:
                self.refused[name] = self.time.now()
                continue
            self.assumed[name] = found[0]
            self.binds[name] = self.tasks.spawn(name, self._bind(raw, found[0]))

    async def passing(self, raw):
        """Return the nodes that filter leaves of those that fit."""
        return await self.filtered(raw, self.fitting(raw))

    async def filtered(self, raw, nodes):
        body = {"Pod": raw, "Nodes": None, "NodeNames": nodes}
        return (await self.call("filter", body))["NodeNames"] if nodes else []

    def failed(self, name):
        """Take in that a pod was not bound."""
        self.refused[name] = self.time.now()

    async def _bind(self, raw, node):
        meta = raw["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"]}
        try:
            answer = await self.call("bind", body | {"Node": node})
            if answer["Error"]:
                self.failed(meta["name"])
        except aiohttp.ClientError:
            self.failed(meta["name"])
        finally:
            self.binds.pop(meta["name"], None)
            self.assumed.pop(meta["name"], None)

    def fitting(self, raw):
        """The nodes with enough cpu: kube-scheduler's own filter."""
        free = {
            name: int(node["status"]["allocatable"]["cpu"])
            for name, node in self.server.objects["nodes"].items()
        }
        for pod in self.server.objects["pods"].values():
            name = pod["metadata"]["name"]
            node = pod["spec"].get("nodeName") or self.assumed.get(name)
            if node in free:
                free[node] -= _cpu(pod)
        return [name for name, left in free.items() if left >= _cpu(raw)]

    async def until(self, condition, *, scheduling=True):
        async def step():
            if scheduling:
                await self.schedule()
            await self.time.advance(0.1)

        return await patience.until(condition, step, lambda: str(self.pods("")))

    async def rest(self, seconds, *, scheduling=True):
        """Let so much virtual time pass."""
        for _ in range(round(seconds / 0.25)):
            if scheduling:
                await self.schedule()
            await self.time.advance(0.25)


def _cpu(pod):
    return int(pod["spec"]["containers"][0].get("resources", {}).get("requests", {}).get("cpu", 0))


@contextlib.asynccontextmanager
async def opened(server, *, now=NOW, kind=Stage, **options):
    """Return the stage of an extender that is ready."""
    time = clock.ManualClock(now=now)
    made = settings.Settings(
        server=ANYWHERE, health=ANYWHERE, plugins={"enabled": ENABLED}, **options
    )
    async with (
        server.serving() as access,
        aiohttp.ClientSession() as session,
        app.running(made, access=access, clock=time) as extender,
        supervise.Supervisor("scheduler") as tasks,
    ):
        stage = kind(extender, session, server, time, tasks)
        await stage.until(lambda: extender.health.ready, scheduling=False)
        yield stage


def nodes(server, count, *, cpu="8"):
    """Add nodes; without load reports, so that requests alone count."""
    make = Make()
    for number in range(count):
        server.put("nodes", make.node(f"n{number}", cpu=cpu, pods="110"))
