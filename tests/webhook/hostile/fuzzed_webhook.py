"""The webhook behind a socket, and what its answers must hold."""

import asyncio
import base64
import collections
import contextlib
import dataclasses
import json
import time

import jsonpatch
from aiohttp import web

from api.kubernetes.webhooks import admission
from domain.quota.tree import quota_trees
from process.configuration import settings as process_settings
from process.configuration import switches
from process.http import fast_path, server
from process.runtime import metrics
from tests.planes.admission import admissions
from tests.webhook.hostile.fuzzed_reviews import CONFIG
from webhook import conversion, gates, handlers, review
from webhook import settings as webhook_settings

MOST_SECONDS, MOST_MEBIBYTES, PATIENCE = 2.0, 64.0, 60.0
LIMIT = webhook_settings.ReviewServer().max_body_bytes
EVERYTHING = frozenset(gates.DESCRIPTIONS) - {gates.SKIP_RESOURCES, gates.DISABLE_RECORD,
                                              gates.DISABLE_DEVICES}  # fmt: skip
PICTURE = review.Picture(
    profiles=admissions.PROFILES[:12],
    namespaces={"default": {"home": "yes"}},
    priority_classes=admissions.CLASSES,
    draw=lambda _: 50,
    gates=EVERYTHING,
    trees=admissions.TREES,
    limits={"default": [("limits", admissions.DEFAULTS)]},
    nodes={"n": {"pool": "a"}},
    settings=CONFIG["data"],
    binding=review.Binding(users=("scheduler",)),
)
HEAD = (
    "POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-apiserver-admission\r\n"
    "Content-Length: {length}\r\nAccept: application/json, */*\r\n"
    "Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
)


class Served:
    """The paths of the webhook behind a real socket, on a loop of their own."""

    def __init__(self):
        self.picture = PICTURE
        self.figures = metrics.Registry()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        self.streams = None
        self.statuses = collections.Counter()
        self.reviews = collections.Counter()
        """The same, without bodies that are random bytes."""
        self.runner.run(self._start())

    async def answered(self, asked, needs):
        """Stand in for what is read from the API server."""
        found = {name: (quota_trees.Member(name, "elsewhere"),) for name in needs.quotas}
        pods = ("a/p",) if needs.pods else ()
        bound = {"metadata": {"labels": {}}} if needs.bound else None
        return dataclasses.replace(asked, bound=bound, pods=pods, quotas=found)

    async def _start(self):
        live = switches.Switches("webhook")
        reviews = handlers.Admission(lambda: self.picture, self.figures, live, reads=self)
        app = web.Application(client_max_size=LIMIT)
        app.add_routes(reviews.routes())
        app[fast_path.ROUTES] = reviews.short_way()
        app.add_routes(conversion.Conversion(self.figures).routes())
        listening = process_settings.ServerSettings(host="127.0.0.1", port=0)
        site = await self.stack.enter_async_context(server.running_site(app, listening))
        self.port = int(site.url.rpartition(":")[2])

    async def _post(self, target, body):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(HEAD.format(target=target, length=len(body)).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        answer = await reader.readexactly(length)
        if "connection: close" in head:
            writer.close()
            self.streams = None
        return int(head.split()[1]), answer

    def post(self, path, body):
        """Send a body; returns the status and what came back.

        Processor time is bounded: others may use this machine as well.
        """
        started = time.process_time()
        found = self.runner.run(asyncio.wait_for(self._post(path, body), PATIENCE))
        assert time.process_time() - started < MOST_SECONDS, (path, body[:500])
        self.statuses[found[0]] += 1
        return found

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
        self.runner.run(self.stack.aclose())
        self.runner.close()


def read(body):
    """Read a review as the webhook does: what is nested too deeply for a reader is left out."""
    try:
        return admission.decode(body)
    except RecursionError:
        return admission.decode(admission.trimmed(body))


def check(served, path, body, *, shaped=True):
    """Send a body, which has the shape of a review, and hold the answer to what is promised."""
    # Of both ways, one has a parser and a router of its own.
    status, answer = served.post(f"{path}?timeout=5s" if len(body) % 2 else path, body)
    assert status in (200, 400, 413), (status, answer)
    served.reviews[status] += shaped
    if status != 200:
        return
    asked = read(body)
    response = json.loads(answer)["response"]
    assert response["uid"] == asked.uid
    told = " ".join([*response.get("warnings", ()), str(response.get("status"))])
    assert "could not review" not in told, told
    assert all(len(text) <= 256 for text in response.get("warnings", ())), response["warnings"]
    if response.get("patch"):
        operations = json.loads(base64.b64decode(response["patch"]))
        jsonpatch.apply_patch(asked.object, operations)
