"""An API server that evicts, minds versions, and can be held at every write of a preemption."""

import asyncio
import json

from aiohttp import web

from api import names
from api.wire import durations
from tests.extender import conftest

GRACE = 5.0


class EvictingServer(conftest.ApiServer):
    """Pods leave after their grace period, when the test lets them."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.evictions, self.tried, self.guarded = [], [], set()
        self.stop, self.stopped, self.go_on = "", asyncio.Event(), asyncio.Event()
        self.hinted, self.nudged, self.errors = [], [], {}

    async def _at(self, step):
        """Stay at a step of the sequence for ever, as seen by a process that is killed there."""
        if self.stop == step:
            self.stopped.set()
            await self.go_on.wait()

    async def _patch(self, request):
        parts = request.path.strip("/").removesuffix("/status").split("/")
        body = await request.json()
        pod = self.objects.get(parts[-2], {}).get(f"{parts[-3]}/{parts[-1]}")
        if parts[-2] != "pods" or pod is None or parts[-1] == "koord-extender":
            return await super()._patch(request)
        metadata = body.get("metadata", {})
        notes = metadata.get("annotations", {})
        if "status" in body:
            what = "hint"
        else:
            what = "note" if names.ANNOTATION_PREEMPTION in notes else "nudge"
        await self._at(f"{what} before")
        pod = self.objects["pods"].get(f"{parts[-3]}/{parts[-1]}")
        if pod is None:
            return web.json_response({"code": 404}, status=404)
        version = metadata.get("resourceVersion", pod["metadata"]["resourceVersion"])
        uid = metadata.get("uid", pod["metadata"]["uid"])
        if (version, uid) != (pod["metadata"]["resourceVersion"], pod["metadata"]["uid"]):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        merged = json.loads(json.dumps(pod))
        for part, values in (
            (merged["metadata"].setdefault("annotations", {}), notes),
            (merged["status"], body.get("status", {})),
        ):
            part.update(values)
            for key in [key for key, value in part.items() if value is None]:
                del part[key]
        self.put("pods", merged)
        if what == "hint":
            self.hinted.append(body["status"]["nominatedNodeName"])
        if what == "nudge":
            self.nudged.append(parts[-1])
        await self._at(f"{what} after")
        return web.json_response(self.objects["pods"][f"{parts[-3]}/{parts[-1]}"])

    async def _post(self, request):
        if not request.path.endswith("/eviction"):
            return await super()._post(request)
        parts, body = request.path.strip("/").split("/"), await request.json()
        key, options = f"{parts[3]}/{parts[5]}", body["deleteOptions"]
        dry = "dryRun" in options
        await self._at("dry run before" if dry else "evict before")
        pod = self.objects["pods"].get(key)
        if key in self.errors:
            return web.json_response({"code": self.errors[key]}, status=self.errors[key])
        if pod is None:
            return web.json_response({"code": 404}, status=404)
        if pod["metadata"]["uid"] != options["preconditions"]["uid"]:
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        self.tried.append((parts[5], dry))
        if parts[5] in self.guarded:
            said = {"code": 429, "message": "Cannot evict pod as it would violate its budget"}
            return web.json_response(said, status=429)
        if not dry and "deletionTimestamp" not in pod["metadata"]:
            self.evictions.append(parts[5])
            leaving = json.loads(json.dumps(pod))
            moment = durations.moment(int(self.clock.now() + GRACE))
            leaving["metadata"]["deletionTimestamp"] = moment
            self.put("pods", leaving)
        await self._at("dry run after" if dry else "evict after")
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    def leave(self):
        """Let all pods go whose eviction was accepted."""
        for key, pod in tuple(self.objects["pods"].items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.delete("pods", key)
