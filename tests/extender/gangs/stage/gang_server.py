"""An API server of nodes, PodGroups and pods, whose writes fail as a test asks for."""

import asyncio
import json

from api import names
from kube.client import errors
from tests.extender.histories import faulty_server

WRITES = ("lost", "unanswered", "late", "refused", "unsent", "broken")
"""What may become of a write; all but the first two concern Bindings alone."""


class Server(faulty_server.Server):
    """Objects with versions, and the faults of the next writes in order."""

    def __init__(self):
        super().__init__(None)
        self.nodes, self.pod_groups = {}, {}
        self.faults, self.evicted = [], []
        self.incarnations = 0
        self.looks_at = 0
        """Nodes that kube-scheduler looks at: where no fewer refuse a member, it is nominated."""
        self.admits = True
        """Whether plans may be noted on pods with a node, as without admission policies."""
        self.bindings_left = None
        """Bindings that still arrive before all further ones are lost; None: any number."""

    def fault(self, **shares):
        """Return the next fault, where it concerns this kind of request."""
        return self.faults.pop(0) if self.faults and self.faults[0] in shares else ""

    def deliver(self):
        """Carry out the Binding that was given up first."""
        if self.late:
            try:
                self.commit(*self.late.pop(0))
            except errors.KubeError:
                return

    # -- objects -----------------------------------------------------------------------------

    def uid(self, name):
        self.incarnations += 1
        return f"{name}-{self.incarnations}"

    def _tell(self, key, pod):
        self._say("pods", key, pod)

    def _say(self, kind, key, raw):
        for watcher in self.watchers:
            watcher[kind].append((key, raw, self.version))

    def put_other(self, kind, key, raw):
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        getattr(self, kind)[key] = raw
        self._say(kind, key, raw)

    def delete_other(self, kind, key):
        self.version += 1
        del getattr(self, kind)[key]
        self._say(kind, key, None)

    # -- as kube-scheduler sees it --------------------------------------------------------------

    def free(self, assumed):
        """Millicpu that each node has free; None: it takes no pods."""
        found = {
            name: None
            if raw["spec"].get("unschedulable")
            else int(raw["status"]["allocatable"]["cpu"])
            for name, raw in self.nodes.items()
        }
        for key, pod in self.pods.items():
            node = pod["spec"].get("nodeName") or assumed.get(key)
            if found.get(node) is not None:
                found[node] -= cpu(pod)
        return found


class Line(faulty_server.Line):
    """The client of one life of an extender."""

    def __init__(self, server, process, on_bind):
        super().__init__(server, process)
        self._on_bind = on_bind
        self.alive = True

    async def bind(self, namespace, name, **more):
        if self.alive:
            self._on_bind(f"{namespace}/{name}", more["uid"])
        server = self._server
        if server.bindings_left == 0:
            raise faulty_server.LOST
        await super().bind(namespace, name, **more)
        if server.bindings_left:
            server.bindings_left -= 1

    async def patch(self, resource, name, body, *, namespace, subresource="", **options):
        del resource, subresource, options
        await asyncio.sleep(0)
        fault = self._server.fault(lost=1, unanswered=1)
        if fault == "lost":
            raise faulty_server.LOST
        key = f"{namespace}/{name}"
        pod = json.loads(json.dumps(self._found(namespace, name)))
        if pod["metadata"]["uid"] != body["metadata"].get("uid", pod["metadata"]["uid"]):
            raise errors.Conflict(409)
        notes = body["metadata"].get("annotations", {})
        if names.ANNOTATION_PLAN in notes and pod["spec"]["nodeName"] and not self._server.admits:
            raise errors.Forbidden(403)
        pod["metadata"]["annotations"].update(notes)
        if "spec" in body:
            pod["spec"]["schedulingGates"] = []
        status = dict(body.get("status", {}))
        written = {one["type"]: one for one in status.pop("conditions", [])}
        kept = {one["type"]: one for one in pod["status"].get("conditions", [])}
        pod["status"] |= status | {"conditions": list((kept | written).values())}
        if pod != self._server.pods[key]:
            self._server.put(key, pod)
        if fault:
            raise faulty_server.LOST
        return self._server.pods[key]

    async def evict(self, namespace, name, *, uid):
        await asyncio.sleep(0)
        if self._server.fault(lost=1):
            raise faulty_server.LOST
        pod = self._found(namespace, name)
        if pod["metadata"]["uid"] != uid:
            raise errors.Conflict(409)
        self._server.evicted.append(uid)
        self._server.delete(f"{namespace}/{name}")


def cpu(pod):
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def gated(pod):
    return bool(pod["spec"].get("schedulingGates"))


def leaving(pod):
    return "deletionTimestamp" in pod["metadata"]
