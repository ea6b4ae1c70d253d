"""A binder between a picture of two nodes and a server that fails at a chosen write."""

import asyncio
import itertools
import json

from api import names, resources
from api.kubernetes import extender as wire
from extender.plugins.reservation import tracker
from extender.settings import BindSettings
from extender.state import claims
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.runtime import clock

UID = "uid-of-r"
IDENT = claims.reservation(UID)
FIRST, SECOND, DELETE = "annotations", "status", "delete"
FENCE = "fence"


class Killed(BaseException):
    """The process ends here."""


FAULTS = {
    **dict.fromkeys(("killed before", "killed after"), Killed()),
    **dict.fromkeys(("answer lost", "late", "lost", "always"), errors.Unreachable("no answer")),
    "not sent": errors.NotSent("no connection"),
    "refused": errors.Forbidden(403, message="not allowed"),
}


def merged(old, patch):
    """Return what a merge patch makes of a value."""
    if not isinstance(patch, dict):
        return patch
    base = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = merged(base.get(key), value)
    return base


class Server:
    """Pods and Reservations with versions, and a fault at a chosen step."""

    def __init__(self):
        self.version = 100
        self.objects = {}
        self.fault = ("", "")
        self.late = []
        self.log = []
        self.before = {}
        self.after = {}

    def put(self, key, body):
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = json.loads(json.dumps(body))
        return self.objects[key]

    def fenced(self, guard):
        self.guard = guard
        return self

    async def get(self, resource, name, namespace=""):
        await asyncio.sleep(0)
        found = self.objects.get((resource.plural, name))
        if found is None:
            raise errors.NotFound(404)
        return json.loads(json.dumps(found))

    async def patch(self, resource, name, body, *, subresource=""):
        await asyncio.sleep(0)
        fences = not subresource and "resourceVersion" not in body["metadata"]
        step = SECOND if subresource else FENCE if fences else FIRST
        return await self.step(step, lambda: self.commit(resource, name, body))

    async def delete(self, resource, name, namespace, *, uid):
        def remove():
            found = self.objects.get((resource.plural, name))
            if found is None:
                raise errors.NotFound(404)
            if found["metadata"]["uid"] != uid:
                raise errors.Conflict(409)
            del self.objects[resource.plural, name]

        return await self.step(DELETE, remove)

    async def step(self, step, write):
        self.log.append(step)
        meanwhile = self.before.pop(step, None)
        if meanwhile:
            meanwhile()
        at, kind = self.fault
        if at != step:
            written = write()
            self.after.pop(step, lambda: None)()
            return written
        if kind != "always":
            self.fault = ("", "")
        if kind == "late":
            self.late.append(write)
        elif kind in ("killed after", "answer lost"):
            write()
        raise FAULTS[kind]

    def commit(self, resource, name, body):
        found = self.objects.get((resource.plural, name))
        if found is None:
            raise errors.NotFound(404)
        for key in ("uid", "resourceVersion"):
            wanted = body["metadata"].get(key)
            if wanted and wanted != found["metadata"][key]:
                raise errors.Conflict(409, message=key)
        return json.loads(json.dumps(self.put((resource.plural, name), merged(found, body))))

    def arrive(self):
        """Let what is late arrive; return what became of it."""
        outcomes = []
        for write in self.late:
            try:
                write()
            except errors.KubeError as error:
                outcomes.append(type(error).__name__)
            else:
                outcomes.append("written")
        self.late.clear()
        return outcomes


class World:
    """A picture with two nodes, a server, and a binder between them."""

    def __init__(self, picture, make):
        self.picture, self.make = picture, make
        self.server, self.store, self.clock = Server(), store.Store(), clock.ManualClock()
        self.shown = store.Store()
        self.shown.listen(lambda change: picture.books.reservations.watched(change.old, change.new))
        self.numbers = itertools.count(1)
        self.binder = self.started()
        picture.add(make.node("n1"), make.node("n2"))

    def started(self):
        p = self.picture
        parts = bind.Parts(
            p.books,
            p.pipeline,
            self.server,
            self.store,
            p.projector,
            self.clock,
            p.switches,
            reserved=self.shown,
        )
        return bind.Binder(parts, BindSettings(), new_id=lambda: f"attempt-{next(self.numbers)}")

    def restart(self):
        """Forget everything that only the process knew."""
        for claim in self.picture.cluster.claims_on("n1") + self.picture.cluster.claims_on("n2"):
            self.picture.books.reservations.forget(claim.id)
        self.binder = self.started()

    def reserve(self, uid=UID, generation=1, **status):
        template = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
        owners = [{"labelSelector": {"matchLabels": {"job": "x"}}}]
        body = {
            "metadata": {
                "name": "r",
                "uid": uid,
                "generation": generation,
                "creationTimestamp": "2026-07-01T12:00:00Z",
            },
            "spec": {"template": {"spec": template}, "owners": owners},
            "status": status,
        }
        return self.server.put((resources.RESERVATIONS.plural, "r"), body)

    def stand_in(self, name="s", uid="uid-s", cpu="4", notes=None):
        raw = self.make.pod(name, uid=uid, requests={"cpu": cpu})
        raw["metadata"]["labels"] = {names.LABEL_STAND_IN: "r"}
        notes = {
            names.ANNOTATION_STAND_IN_NAME: "r",
            names.ANNOTATION_STAND_IN_UID: UID,
            names.ANNOTATION_STAND_IN_GENERATION: "1",
            **(notes or {}),
        }
        raw["metadata"]["annotations"] = notes
        raw = self.server.put((resources.PODS.plural, name), raw)
        self.picture.add(raw)
        meta = store.Meta(f"default/{name}", uid, int(raw["metadata"]["resourceVersion"]))
        self.store.put(meta, self.picture.record(raw))

    async def bind(self, node="n1", name="s", uid="uid-s"):
        return await self.binder.bind(wire.BindingArgs(name, "default", uid, node), lambda: True)

    @property
    def reservation(self):
        return self.server.objects.get((resources.RESERVATIONS.plural, "r"))

    def node(self):
        found = self.reservation
        return (found or {}).get("status", {}).get("nodeName", "")

    async def in_doubt(self, how):
        """Bind while the status goes astray and every fence after it fails; the place stays."""
        self.server.fault = (SECOND, how)
        self.server.before[FENCE] = lambda: setattr(self.server, "fault", (FENCE, "always"))
        assert "is not known" in await self.bind()
        assert self.counted() == "n1"

    def counted(self):
        held = self.picture.cluster.claim(IDENT)
        return held.node if held else ""

    def usable(self):
        return tracker.usable(self.picture.cluster.claim(IDENT))

    def is_there(self):
        return (resources.PODS.plural, "s") in self.server.objects


def deleted(world):
    del world.server.objects[resources.RESERVATIONS.plural, "r"]
