"""An API server, and webhooks that are started and stopped around one manual clock."""

import base64
import contextlib

import pytest

from api import names, resources
from api.kubernetes import crds
from kube.client import access as accesses
from process.runtime import clock as clocks
from simulator import faults
from simulator.apiserver import apiserver
from tests import loopback, patience
from tests.planes import raw
from webhook import app, settings

NAMESPACE = names.NAMESPACE
DAY = 24 * 3600.0
PODS = "/api/v1/namespaces/default/pods"
PROFILES = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
CLASS = {"metadata": {"name": "koord-batch"}, "value": 5000}


def profile(name="batch", mark="yes", **spec):
    return {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"colocate": mark}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
            **spec,
        },
    }


def pod(name, mark="yes"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"colocate": mark}},
        "spec": {
            "containers": [
                {"name": "main", "image": "x:1", "resources": {"requests": {"cpu": "2"}}}
            ]
        },
    }


def is_colocated(created):
    requests = created["spec"]["containers"][0]["resources"]["requests"]
    return names.BATCH_CPU in requests and names.CPU not in requests


class World:
    """An API server, and webhooks that are started and stopped around one manual clock."""

    def __init__(self, clock, folder):
        self.clock = clock
        self.folder = folder
        self.faults = faults.Faults(clocks.SystemClock())
        self.server = self.api = self.access = None

    @contextlib.asynccontextmanager
    async def webhook(self, name="one", **more):
        chosen = settings.Settings.model_validate(
            {
                "server": listener() | more.pop("server", {}),
                "health": listener(),
                "certificates": {"names": ("127.0.0.1",), "folder": self.folder / name},
                "registration": {"url": "self"},
                **more,
            }
        )
        async with app.running(chosen, access=self.access, clock=self.clock) as running:
            yield running

    async def until(self, predicate, step=0.05):
        """Let virtual time go on in steps until a predicate is true."""
        await patience.until(predicate, lambda: self.clock.advance(step))

    async def ready(self, running):
        checks = running.health
        await self.until(lambda: not checks.failing() and not checks.warnings())

    async def create(self, name, mark="yes"):
        return await self.api.post(PODS, pod(name, mark))

    @property
    def bundle(self):
        found = self.server.state.objects.get(resources.MUTATING_WEBHOOKS, "koord-webhook")
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])


def listener():
    at_once = ("announce_seconds", "linger_seconds", "drain_seconds")
    return {"host": "127.0.0.1", "port": 0, **dict.fromkeys(at_once, 0.0)}


@pytest.fixture
def clock():
    """Begins so far back that a leaf is due for renewal today, as TLS clients see it."""
    return loopback.LoopbackClock(clocks.SystemClock().now() - 62 * DAY)


@pytest.fixture
async def world(clock, tmp_path):
    made = World(clock, tmp_path)
    real = clocks.SystemClock()
    async with apiserver.running(
        clock=real, options=apiserver.Options(faults=made.faults, encrypted=False)
    ) as server:
        made.server = server
        made.access = accesses.Access(server.url, server.ca, accesses.StaticToken(server.token))
        async with raw.connected(server.url, server.ca, server.token) as made.api:
            await made.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
            await made.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", CLASS)
            for document in crds.documents().values():
                await made.api.post(
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document
                )
            await made.api.post(PROFILES, profile())
            yield made
