"""Pods of an API server, and the connections over which what is sent is lost or late by chance."""

import asyncio
import json

from kube.client import errors

LOST = errors.Unreachable("no answer")


class Server:
    """Pods with versions, and faults by chance; Bindings may be carried out later."""

    def __init__(self, chance):
        self.chance = chance
        self.version = 100
        self.pods = {}
        self.late = []
        self.watchers = []
        self.granted_by = {}
        """Uid of a bound pod to the process whose Binding it was."""

    def fault(self, **shares):
        """Draw a fault; what is left of 1 is none."""
        drawn = self.chance.random()
        for name, share in shares.items():
            drawn -= share
            if drawn < 0:
                return name
        return ""

    def put(self, key, pod):
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.pods[key] = json.loads(json.dumps(pod))
        self._tell(key, self.pods[key])

    def delete(self, key):
        self.version += 1
        del self.pods[key]
        self._tell(key, None)

    def _tell(self, key, pod):
        for watcher in self.watchers:
            watcher.append((key, pod, self.version))

    def changed(self, key, **metadata):
        pod = json.loads(json.dumps(self.pods[key]))
        pod["metadata"].setdefault("annotations", {}).update(metadata)
        return pod

    def commit(self, process, key, uid, version, node, annotations):
        pod = self.pods.get(key)
        if pod is None:
            raise errors.NotFound(404)
        metadata = pod["metadata"]
        if metadata["uid"] != uid or pod["spec"]["nodeName"]:
            raise errors.Conflict(409)
        if version != metadata["resourceVersion"]:
            raise errors.Conflict(409, message="version")
        bound = self.changed(key, **annotations)
        bound["spec"]["nodeName"] = node
        self.granted_by[uid] = process
        self.put(key, bound)

    def deliver(self):
        """Carry out one Binding that its sender has given up."""
        if self.late:
            late = self.late.pop(self.chance.randrange(len(self.late)))
            try:
                self.commit(*late)
            except errors.KubeError:
                return


class Line:
    """The client of one process: what it sends may be lost, refused, late or not answered."""

    def __init__(self, server, process):
        self._server, self._process = server, process

    async def get(self, resource, name, namespace=""):
        del resource
        await asyncio.sleep(0)
        if self._server.fault(lost=0.1):
            raise LOST
        return self._found(namespace, name)

    def _found(self, namespace, name):
        pod = self._server.pods.get(f"{namespace}/{name}")
        if pod is None:
            raise errors.NotFound(404)
        return pod

    async def patch(self, resource, name, body, *, namespace, **options):
        del resource, options
        await asyncio.sleep(0)
        fault = self._server.fault(lost=0.15, unanswered=0.15)
        if fault == "lost":
            raise LOST
        pod = self._found(namespace, name)
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            raise errors.Conflict(409)
        key = f"{namespace}/{name}"
        self._server.put(key, self._server.changed(key, **body["metadata"]["annotations"]))
        if fault == "unanswered":
            raise LOST
        return self._server.pods[key]

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        await asyncio.sleep(0)
        guard.check()
        fault = self._server.fault(
            refused=0.05, unsent=0.05, lost=0.08, late=0.2, unanswered=0.1, broken=0.05
        )
        binding = (self._process, f"{namespace}/{name}", uid, version, node, annotations)
        if fault == "refused":
            raise errors.Forbidden(403)
        if fault == "unsent":
            raise errors.NotSent("no connection")
        if fault == "broken":
            raise errors.ServerFailure(500)
        if fault == "late":
            self._server.late.append(binding)
        if fault in ("late", "lost"):
            raise LOST
        self._server.commit(*binding)
        if fault == "unanswered":
            raise LOST
