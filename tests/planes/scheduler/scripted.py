"""A scheduler extender whose answers a test writes; it decides nothing by itself."""

import asyncio
import contextlib
import dataclasses
import json
import time

from aiohttp import web

from tests.planes import raw


@dataclasses.dataclass(frozen=True)
class Call:
    verb: str
    body: dict
    at: float
    connection: str = ""

    @property
    def pod(self):
        """The name of the pod that the call is about."""
        if "PodName" in self.body:
            return self.body["PodName"]
        return self.body["Pod"]["metadata"]["name"]


class Extender:
    """Accepts every node, scores nothing and binds, until a test replaces one of the answers.

    Each answer is an async function from the request's body to the answer's body, or to a whole
    response where the body alone cannot say it.
    """

    def __init__(self, api):
        self._api = api
        self.url = ""
        self.calls = []
        self._arrived = asyncio.Condition()
        self.annotations = {}
        self.labels = {}
        self.open = set()
        self.reset()

    def reset(self):
        self.calls.clear()
        self.annotations = {"koord.sh/placement": "{}"}
        self.labels = {}
        self.filter = self.accept
        self.prioritize = self.indifferent
        self.bind = self.write_binding
        self.preempt = self.as_proposed

    def of(self, verb, pod=None):
        return [c for c in self.calls if c.verb == verb and (pod is None or c.pod == pod)]

    async def called(self, verb, pod, times=1, timeout=raw.PATIENCE):
        """Wait until the scheduler has called this often; returns the calls."""
        async with asyncio.timeout(timeout), self._arrived:
            await self._arrived.wait_for(lambda: len(self.of(verb, pod)) >= times)
        return self.of(verb, pod)

    async def idle(self, timeout=raw.PATIENCE):
        """Wait until every connection has been closed for want of calls."""

        async def closed():
            return all(transport.is_closing() for transport in self.open)

        await raw.eventually(closed, timeout)

    async def accept(self, body):
        return {"NodeNames": body["NodeNames"], "FailedNodes": {}, "Error": ""}

    async def indifferent(self, body):
        return [{"Host": name, "Score": 0} for name in body["NodeNames"]]

    async def as_proposed(self, body):
        return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}

    async def write_binding(self, body):
        namespace, name = body["PodNamespace"], body["PodName"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": body["PodUID"],
                "annotations": self.annotations,
                "labels": self.labels,
            },
            "target": {"kind": "Node", "name": body["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        answer = await self._api.call("POST", path, binding)
        return {"Error": "" if answer.status < 300 else answer.message}

    async def _handle(self, request):
        verb = request.match_info["verb"]
        body = json.loads(await request.read())
        peer = request.transport.get_extra_info("peername")
        self.open.add(request.transport)
        async with self._arrived:
            self.calls.append(Call(verb, body, time.monotonic(), str(peer)))
            self._arrived.notify_all()
        answer = await getattr(self, verb)(body)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)


@contextlib.asynccontextmanager
async def listening(api, *, keepalive_seconds=3600, context=None):
    """An extender on a port of its own; connections may idle this long, TLS by the context."""
    extender = Extender(api)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/{verb}", extender._handle)
    runner = web.AppRunner(
        app, keepalive_timeout=keepalive_seconds, shutdown_timeout=0.1, handler_cancellation=True
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        scheme = "http" if context is None else "https"
        extender.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
        yield extender
    finally:
        await runner.cleanup()
