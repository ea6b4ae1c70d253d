"""Builders, an in-memory picture and a small API server for the tests of the extender."""

import asyncio
import contextlib
import json

import msgspec
import pytest
from aiohttp import web

from api import resources
from api.kubernetes import core
from extender import plugin_selection, registry, settings
from extender.explain import explanations
from extender.framework import views
from extender.informers.nodes import node_metrics
from extender.state import cluster_state, invariants, ledger, lending, records
from extender.verbs import request_codec, verbs
from kube.client import access
from process.configuration import switches

GI = 1 << 30
COLUMNS = ("cpu", "memory", "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")
MOMENT = "2026-07-01T12:00:00Z"
NOW = 1782907200.0


OWN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "koord-extender", "namespace": "koordinator-system", "uid": "uid-own"}
    | {"resourceVersion": "1"},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"phase": "Running"},
}
"""The extender's own pod."""


class Make:
    """Objects as the API server would send them."""

    def pod(self, name, *, uid="", node="", requests=None, band="koord-prod", **more):
        limits = more.pop("limits", {})
        phase = more.pop("phase", "Running" if node else "Pending")
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": MOMENT}]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid or f"uid-{name}",
                "labels": {"koordinator.sh/priority-class": band},
                **more,
            },
            "spec": {
                "nodeName": node,
                "containers": [
                    {"name": "main", "resources": {"requests": requests or {}, "limits": limits}}
                ],
            },
            "status": {"phase": phase, "conditions": conditions if node else []},
        }

    def node(self, name, *, cpu="128", memory="256Gi", annotations=None, labels=None, **extended):
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "status": {"allocatable": {"cpu": cpu, "memory": memory, **extended}},
        }

    def metric(self, name, *, cpu="10", memory="20Gi", updated=MOMENT, pods=()):
        used = {"resources": {"cpu": "1", "memory": "1Gi"}}
        return {
            "apiVersion": "slo.koordinator.sh/v1alpha1",
            "kind": "NodeMetric",
            "metadata": {"name": name, "uid": f"uid-metric-{name}"},
            "spec": {},
            "status": {
                "updateTime": updated,
                "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}},
                "podsMetric": [
                    {"namespace": "default", "name": pod, "priority": "koord-prod"}
                    | {"podUsage": used}
                    for pod in pods
                ],
            },
        }


@pytest.fixture
def make():
    return Make()


class Picture:
    """A picture of a cluster with its plug-ins, fed without an API server."""

    def __init__(self):
        self.built = registry.build(plugin_selection.select(settings.PluginSettings()))
        self.plugins = tuple(self.built.plugins.values())
        self.pipeline = registry.assemble(self.built)
        self.cluster = cluster_state.ClusterState(registry.state_trackers(self.plugins), COLUMNS)
        self.books = ledger.Ledger(self.cluster)
        self.projector = records.Projector()
        self.reader = node_metrics.Reader(("cpu", "memory"))
        self.switches = switches.Switches("extender")
        self.explanations = explanations.Explanations()
        self.told = []
        self.truth = {}
        self.verbs = verbs.Verbs(
            self.cluster,
            self.pipeline,
            self.projector,
            self.switches,
            self.explanations,
            self.told.append,
            request_codec.Reader(self.projector),
        )

    def add(self, *objects):
        for raw in objects:
            if raw["kind"] == "Node":
                record = self.projector.node(msgspec.convert(raw, core.Node))
                self.books.node(self.cluster.node(record.name), record)
            elif raw["kind"] == "NodeMetric":
                named = self.reader.named(msgspec.convert(raw, node_metrics.NodeMetric))
                self.books.report(named.node, named.report)
            else:
                record = self.record(raw)
                key = f"default/{raw['metadata']['name']}"
                self.books.pod(self.truth.get(key), record, NOW)
                if record is not None:
                    self.truth[key] = record
                else:
                    self.truth.pop(key, None)

    def record(self, raw):
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def request(self, raw):
        pod = msgspec.convert(raw, core.Pod)
        return views.PodInfo.read(pod, self.projector.requirements(pod))

    def lend(self, percent, **more):
        rules = {"enable": True, "cpuCalculatePolicy": "overcommitRatio"}
        text = json.dumps(rules | {"overcommitPercent": percent} | more)
        self.books.lending(lending.read(text))

    def problems(self):
        return invariants.check(self.books, self.truth.values())


@pytest.fixture
def picture():
    """A picture whose invariants are checked at the end of the test."""
    made = Picture()
    yield made
    assert made.problems() == []


@pytest.fixture
def fresh_picture():
    """How to make a picture of its own for every example of a property."""
    return Picture


class ApiServer:
    """Lists, watches, reads and bindings of a few resources, with faults on demand."""

    def __init__(self):
        self.version = 100
        self.objects = {"pods": {}, "nodes": {}, "nodemetrics": {}, "configmaps": {}}
        self.objects["scheduleexplanations"] = {}
        self.objects["noderesourcetopologies"] = {}
        self.objects["clusternetworktopologies"] = {}
        self.objects |= {"devices": {}, "reservations": {}}
        self.objects |= {"resourceslices": {}, "resourceclaims": {}}
        self.objects["poddisruptionbudgets"] = {}
        self.objects |= {f"elasticquotas.{one.group}": {} for one in resources.QUOTA_RESOURCES}
        self.objects[f"podgroups.{resources.POD_GROUPS.group}"] = {}
        self.objects["pods"]["koordinator-system/koord-extender"] = OWN
        self.watchers = []
        self.history = []
        """Every event that watches may ask for again: version, plural and event."""
        self.fault = None
        self.bindings = []
        self.events = []
        self.faults = 0
        """How many writes were answered with the fault."""
        self.lists = []
        self.late = None
        self.echo = True
        self.held = asyncio.Event()
        self.release = asyncio.Event()

    def application(self):
        app = web.Application()
        app.router.add_get("/{path:.*}", self._get)
        app.router.add_post("/{path:.*/scheduleexplanations}", self._create)
        app.router.add_post("/{path:.*}", self._post)
        app.router.add_patch("/{path:.*}", self._patch)
        return app

    def put(self, plural, raw, *, echo=True):
        self.version += 1
        name = self._key(raw)
        event = "MODIFIED" if name in self.objects[plural] else "ADDED"
        stored = json.loads(json.dumps(raw))
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[plural][name] = stored
        if echo:
            self._tell(plural, event, stored)

    def delete(self, plural, key):
        self.version += 1
        gone = self.objects[plural].pop(key)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._tell(plural, "DELETED", gone)

    def bookmark(self, plural):
        raw = {"kind": "Pod", "metadata": {"resourceVersion": str(self.version)}}
        self._tell(plural, "BOOKMARK", raw)

    def fall_behind(self):
        """Keep back what watches would deliver."""
        self.late = []

    def catch_up(self):
        late, self.late = self.late, None
        for entry in late:
            self._tell(*entry)

    def _tell(self, plural, event, raw):
        if self.late is not None:
            self.late.append((plural, event, raw))
            return
        self.history.append((int(raw["metadata"]["resourceVersion"]), plural, event, raw))
        for wanted, name, queue in self.watchers:
            if wanted == plural and name in ("", raw["metadata"].get("name")):
                queue.put_nowait({"type": event, "object": raw})

    @staticmethod
    def _key(raw):
        namespace = raw["metadata"].get("namespace")
        return f"{namespace}/{raw['metadata']['name']}" if namespace else raw["metadata"]["name"]

    async def _get(self, request):
        parts = request.path.strip("/").split("/")
        if request.query.get("sendInitialEvents"):
            return web.json_response({"kind": "Status", "code": 422}, status=422)
        if parts[:2] == ["api", "v1"] and parts[2] == "namespaces" and len(parts) == 6:
            if self.fault == "read":
                return web.json_response({"kind": "Status", "code": 403}, status=403)
            found = self.objects[parts[4]].get(f"{parts[3]}/{parts[5]}")
            return web.json_response(found or {"code": 404}, status=200 if found else 404)
        # One plural in several groups.
        shared = parts[-1] in ("elasticquotas", "podgroups")
        plural = f"{parts[-1]}.{parts[1]}" if shared else parts[-1]
        if request.query.get("watch"):
            return await self._watch(request, plural)
        if plural not in self.objects:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        self.lists.append(plural)
        items = list(self.objects[plural].values())
        field = request.query.get("fieldSelector", "")
        if field:
            items = [i for i in items if i["metadata"]["name"] == field.partition("=")[2]]
        return web.json_response(
            {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        )

    async def _watch(self, request, plural):
        response = web.StreamResponse()
        await response.prepare(request)
        queue = asyncio.Queue()
        name = request.query.get("fieldSelector", "").partition("metadata.name=")[2]
        since = int(request.query.get("resourceVersion") or self.version)
        # What happened between the list and this watch.
        for version, wanted, event, raw in self.history:
            if wanted == plural and version > since and name in ("", raw["metadata"].get("name")):
                queue.put_nowait({"type": event, "object": raw})
        entry = (plural, name, queue)
        self.watchers.append(entry)
        try:
            while True:
                event = await queue.get()
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self.watchers.remove(entry)

    async def _post(self, request):
        parts = request.path.strip("/").split("/")
        body = await request.json()
        if parts[-1] == "events":
            self.events.append(body)
            return web.json_response(body, status=201)
        key = f"{parts[3]}/{parts[5]}"
        if self.fault == "held before":
            await self._hold()
        if self.fault == "refused":
            return web.json_response({"code": 403, "message": "no"}, status=403)
        if self.fault == "before":
            request.transport.abort()
            return web.Response()
        pod = self.objects["pods"].get(key)
        if pod is None:
            return web.json_response({"code": 404}, status=404)
        wrong_uid = body["metadata"]["uid"] != pod["metadata"]["uid"]
        if wrong_uid or pod["spec"].get("nodeName"):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        bound = json.loads(json.dumps(pod))
        bound["spec"]["nodeName"] = body["target"]["name"]
        bound["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        self.put("pods", bound, echo=self.echo)
        self.bindings.append((key, body["target"]["name"]))
        if self.fault == "held after":
            await self._hold()
        if self.fault == "after":
            request.transport.abort()
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def _create(self, request):
        if self.fault == "create":
            self.faults += 1
            return web.json_response({"code": 403, "message": "no"}, status=403)
        plural, body = request.path.rpartition("/")[2], await request.json()
        if self._key(body) in self.objects[plural]:
            return web.json_response({"code": 409, "reason": "AlreadyExists"}, status=409)
        self.put(plural, body)
        return web.json_response(body, status=201)

    async def _patch(self, request):
        """Merge into an object; a uid in the patch has to be the object's."""
        own = request.path.endswith("/pods/koord-extender")
        if self.fault == "patch" and not own:
            self.faults += 1
            return web.json_response({"code": 500, "message": "no"}, status=500)
        parts = request.path.strip("/").removesuffix("/status").split("/")
        plural, key = parts[-2], f"{parts[-3]}/{parts[-1]}"
        if plural == "leases":
            # Applied, and read by nobody here.
            return web.json_response(await request.json(), status=201)
        found, body = self.objects[plural].get(key), await request.json()
        if found is None:
            return web.json_response({"code": 404}, status=404)
        merged = json.loads(json.dumps(found))
        wanted = body.get("metadata", {}).pop("uid", None)
        if wanted not in (None, found["metadata"].get("uid")):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        notes = body.pop("metadata", {}).get("annotations", {})
        merged["metadata"].setdefault("annotations", {}).update(notes)
        merged.setdefault("status", {}).update(body.get("status", {}))
        self.put(plural, merged)
        return web.json_response(self.objects[plural][key])

    async def _hold(self):
        """Stay in the middle of a binding until the caller is gone or the test goes on."""
        self.held.set()
        await self.release.wait()

    @contextlib.asynccontextmanager
    async def serving(self):
        runner = web.AppRunner(self.application(), shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield access.Access(server=f"http://127.0.0.1:{port}")
        finally:
            await runner.cleanup()


@pytest.fixture
def api_server():
    return ApiServer()
