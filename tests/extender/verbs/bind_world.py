"""A binder, what it knows, and an API server that fails at a chosen step."""

import asyncio
import itertools
import json

from api.kubernetes import extender as wire
from extender.settings import BindSettings
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.runtime import clock

BATCH_10 = {"kubernetes.io/batch-cpu": "10000"}


class Killed(BaseException):
    """The process ends here."""


class Server:
    """What the binder needs of an API server, with a fault at a chosen step."""

    def __init__(self):
        self.pods = {}
        self.fault = None
        self.writes = 0
        self.annotations = {}
        self.reads = 0
        self.gate = None
        self.versions = []
        self.fences = 0
        self.stalled = []
        self.version = 100

    async def get(self, resource, name, namespace=""):
        del resource
        self.reads += 1
        await asyncio.sleep(0)
        if self.fault == "killed in read":
            raise Killed
        if self.fault in ("read fails", "both fail"):
            raise errors.Unreachable("no answer")
        if f"{namespace}/{name}" not in self.pods:
            raise errors.NotFound(404)
        return self.pods[f"{namespace}/{name}"]

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        if self.gate:
            await self.gate.wait()
        await asyncio.sleep(0)
        guard.check()
        self.versions.append(version)
        fault = self.fault
        if fault == "killed before write":
            raise Killed
        if fault in ("lost before write", "both fail"):
            raise errors.Unreachable("no answer")
        if fault == "not sent":
            raise errors.NotSent("no connection")
        if fault == "refused":
            raise errors.Forbidden(403, message="not allowed")
        if fault == "server failure":
            raise errors.ServerFailure(500)
        if fault == "stalls":
            self.stalled.append((f"{namespace}/{name}", uid, version, node, annotations))
            raise errors.Unreachable("no answer")
        self._commit(f"{namespace}/{name}", uid, version, node, annotations)
        if fault == "killed after write":
            raise Killed
        if fault == "answer lost":
            raise errors.Unreachable("no answer")

    def _commit(self, key, uid, version, node, annotations):
        pod = self._waiting(key, uid, version)
        self.writes += 1
        pod["metadata"].setdefault("annotations", {}).update(annotations)
        pod["spec"]["nodeName"] = node
        self.put(key, pod)
        self.annotations = dict(annotations)

    def put(self, key, pod):
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.pods[key] = json.loads(json.dumps(pod))

    def deliver(self):
        """Let what had stalled arrive; return what became of it."""
        outcomes = []
        for late in self.stalled:
            try:
                self._commit(*late)
            except errors.KubeError as error:
                outcomes.append(type(error).__name__)
            else:
                outcomes.append("bound")
        self.stalled.clear()
        return outcomes

    async def patch(self, resource, name, body, *, namespace):
        del resource
        await asyncio.sleep(0)
        if self.fault in ("patch fails", "both fail"):
            raise errors.Unreachable("no answer")
        key = f"{namespace}/{name}"
        pod = self.pods.get(key)
        if pod is None:
            raise errors.NotFound(404)
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            raise errors.Conflict(409)
        self.fences += 1
        notes = pod["metadata"].setdefault("annotations", {})
        if notes.items() >= body["metadata"]["annotations"].items():
            return pod
        notes.update(body["metadata"]["annotations"])
        self.put(key, pod)
        return self.pods[key]

    def _waiting(self, key, uid, version):
        pod = self.pods.get(key)
        if pod is None:
            raise errors.NotFound(404)
        if pod["metadata"]["uid"] != uid or pod["spec"]["nodeName"]:
            raise errors.Conflict(409)
        if version and version != pod["metadata"]["resourceVersion"]:
            raise errors.Conflict(409, message="ResourceVersion in precondition")
        return json.loads(json.dumps(pod))


class World:
    """A picture, a server and a binder between them."""

    def __init__(self, picture, make):
        self.picture, self.make = picture, make
        self.server = Server()
        self.store = store.Store()
        self.clock = clock.ManualClock()
        self.enforced = True
        self.numbers = itertools.count(1)
        self.binder = self.started()
        picture.lend(30)
        picture.add(
            make.node("n1"), make.node("n2"), make.pod("online", node="n1", requests={"cpu": "80"})
        )

    def started(self):
        p = self.picture
        parts = bind.Parts(
            p.books, p.pipeline, self.server, self.store, p.projector, self.clock, p.switches
        )
        return bind.Binder(parts, BindSettings(read_seconds=8), new_id=self.ids)

    def ids(self):
        return f"decision-{next(self.numbers)}"

    def create(self, name="job", requests=BATCH_10, uid="", seen=True):
        raw = self.make.pod(name, band="koord-batch", requests=requests, uid=uid)
        self.server.put(f"default/{name}", raw)
        if seen:
            self.observe(name)
        return self.server.pods[f"default/{name}"]

    def observe(self, name="job"):
        """Let the watch tell what the server has."""
        key = f"default/{name}"
        raw = self.server.pods.get(key)
        if raw is None:
            self.picture.add(self.make.pod(name, phase="Succeeded"))
            return
        self.picture.add(raw)
        self.store._entries.pop(key, None)
        version = int(raw["metadata"].get("resourceVersion", 0))
        meta = store.Meta(key, raw["metadata"]["uid"], version)
        self.store.put(meta, self.picture.record(raw))

    async def bind(self, node="n1", name="job", uid="", connected=lambda: True):
        asked = wire.BindingArgs(name, "default", uid or f"uid-{name}", node)
        return await self.binder.bind(asked, connected)

    def counted(self, name="job"):
        placed = self.picture.cluster.placed(f"uid-{name}")
        return placed.node if placed else ""
