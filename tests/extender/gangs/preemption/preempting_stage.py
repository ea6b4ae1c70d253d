"""A running extender whose gangs preempt, and an API server from which pods leave slowly."""

import asyncio
import json

from aiohttp import web

from api import names
from api.wire import durations
from tests.extender.conftest import NOW
from tests.extender.gangs.stage import gang_stage

GRACE = 5.0
ARGUMENTS = "{profiles: [{pluginConfig: [{name: Coscheduling, args: {enablePreemption: true}}]}]}"


class EvictingServer(gang_stage.GangServer):
    """Pods leave after their grace period, when the test lets them; budgets refuse some."""

    def __init__(self, *, preempts=True):
        super().__init__()
        self.objects["poddisruptionbudgets"] = {}
        self.leaving, self.dry, self.guarded = [], [], {}
        self.evictions_left = None
        """After how many evictions every further one is cut; None: after none."""
        if preempts:
            self.config(names.CONFIG_MAP_SCHEDULER, {names.CONFIG_MAP_SCHEDULER: ARGUMENTS})

    def config(self, name, data):
        metadata = {"name": name, "namespace": names.NAMESPACE}
        self.put("configmaps", {"metadata": metadata, "data": data})

    async def _patch(self, request):
        body = await request.json()
        notes = body.get("metadata", {}).get("annotations", {})
        if names.ANNOTATION_PREEMPTION not in notes or self.cut:
            return await super()._patch(request)
        parts = request.path.strip("/").split("/")
        found = self.objects["pods"].get(f"{parts[-3]}/{parts[-1]}")
        if found is None:
            return web.json_response({"code": 404}, status=404)
        meta = found["metadata"]
        asked = body["metadata"]
        version = asked.get("resourceVersion", meta["resourceVersion"])
        if (asked["uid"], version) != (meta["uid"], meta["resourceVersion"]):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        merged = json.loads(json.dumps(found))
        texts = merged["metadata"].setdefault("annotations", {}) | notes
        merged["metadata"]["annotations"] = {k: v for k, v in texts.items() if v is not None}
        self.put("pods", merged)
        return web.json_response(merged)

    async def _post(self, request):
        if not request.path.endswith("/eviction") or self.cut:
            return await super()._post(request)
        parts, body = request.path.strip("/").split("/"), await request.json()
        key, options = f"{parts[3]}/{parts[5]}", body["deleteOptions"]
        pod = self.objects["pods"].get(key)
        if pod is None:
            return web.json_response({"code": 404}, status=404)
        if pod["metadata"]["uid"] != options["preconditions"]["uid"]:
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        if self.guarded.get(parts[5]) == "cut" and "dryRun" in options:
            request.transport.abort()
            return web.Response()
        if self.guarded.get(parts[5]) in ("always", "dry" if "dryRun" in options else "real"):
            said = {"code": 429, "message": "Cannot evict pod as it would violate its budget"}
            return web.json_response(said, status=429)
        if "dryRun" in options:
            self.dry.append(parts[5])
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if self.evictions_left is not None:
            if not self.evictions_left:
                await asyncio.Event().wait()
            self.evictions_left -= 1
        if "deletionTimestamp" not in pod["metadata"]:
            self.leaving.append(parts[5])
            gone = json.loads(json.dumps(pod))
            gone["metadata"]["deletionTimestamp"] = durations.moment(int(NOW + 3600))
            self.put("pods", gone)
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    def leave(self):
        """Let all pods go whose eviction was accepted."""
        for key, pod in tuple(self.objects["pods"].items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.delete("pods", key)

    def running(self, make, gang, nodes, *, priority=0, cpu="4", least=None):
        """A gang that runs, one member on each of these nodes."""
        for number, node in enumerate(nodes):
            raw = make.pod(f"{gang}-{number}", node=node, requests={"cpu": cpu})
            raw["metadata"]["annotations"] = {
                names.ANNOTATION_GANG_NAME: gang,
                names.ANNOTATION_GANG_MIN_AVAILABLE: str(least or len(nodes)),
            }
            raw["spec"]["priority"] = priority
            self.put("pods", raw)

    def said(self, reason):
        found = self.events
        return [one for one in found if one.get("reason") == reason]

    def records(self):
        return [
            pod["metadata"]["annotations"][names.ANNOTATION_PREEMPTION]
            for pod in self.objects["pods"].values()
            if names.ANNOTATION_PREEMPTION in pod["metadata"].get("annotations", {})
        ]


def kept(extender):
    """The places that are kept while pods leave."""
    found = extender.books.nominations.values()
    return {one.pod.name: one.node for one in found if one.evidence == "preemption"}
