import contextlib
import io
import itertools
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import aiohttp
import orjson
import pytest

from simulator.apiserver import apiserver
from simulator.scheduler import intree

SERIAL = itertools.count(1)


def make_pod(name="x", *, priority=0, requests=None, labels=None, status=None, **spec):
    container = {"name": "main", "resources": {"requests": requests or {}}}
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "labels": labels or {}}
    return {
        "metadata": meta,
        "spec": {
            "containers": [container],
            "priority": priority,
            "schedulerName": "default-scheduler",
            **spec,
        },
        "status": status or {},
    }


def make_node(name="n", *, labels=None, taints=None, unschedulable=False, **allocatable):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}
    spec = {"taints": taints or [], "unschedulable": unschedulable}
    meta = {"name": name, "labels": labels or {}}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": meta, "spec": spec, "status": status}


@pytest.fixture
def pod():
    """Build the raw pod that the scheduler reads."""
    return make_pod


@pytest.fixture
def node():
    """Build a raw node."""
    return make_node


@pytest.fixture
def pod_info():
    """Build a pod as the checks see it."""
    return lambda *args, **options: intree.read_pod(make_pod(*args, **options))


@pytest.fixture
def node_info():
    """Build a node with pods on it as the checks see it."""

    def build(*pods, **options):
        return intree.read_node(make_node(**options), {pod.uid: pod for pod in pods})

    return build


class Api:
    """A plain client of one API server; answers carry status, headers and body."""

    def __init__(self, session, server):
        self.session = session
        self.server = server

    async def call(self, method, path, body=None, *, media="application/json", **options):
        headers = {"Content-Type": media, **options.pop("headers", {})}
        raw = orjson.dumps(body) if isinstance(body, dict | list) else body
        data = io.BytesIO(raw) if isinstance(raw, bytes) else raw
        async with self.session.request(
            method, f"{self.server.url}{path}", data=data, headers=headers, **options
        ) as response:
            raw = await response.read()
            kind = response.content_type
            parsed = orjson.loads(raw) if kind == "application/json" else raw.decode()
            return Answer(response.status, response.headers, parsed)

    async def must(self, method, path, body=None, **options):
        answer = await self.call(method, path, body, **options)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body}"
        return answer.body

    @contextlib.asynccontextmanager
    async def watch(self, path, **query):
        params = {"watch": "true", **query}
        async with self.session.get(f"{self.server.url}{path}", params=params) as response:
            assert response.status == 200, await response.text()

            async def following():
                line = await response.content.readline()
                return orjson.loads(line) if line else None

            yield following


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self):
        return self.body["message"]

    @property
    def warnings(self):
        return self.headers.getall("Warning", [])


@contextlib.asynccontextmanager
async def connected(server, token=None):
    context = ssl.create_default_context(cadata=server.ca.decode())
    bearer = server.token if token is None else token
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Api(session, server)


@pytest.fixture
def connect():
    """Connect to a server, by default as its administrator."""
    return connected


@pytest.fixture
async def server(clock):
    """An API server on virtual time."""
    async with apiserver.running(clock=clock) as started:
        yield started


@pytest.fixture
async def api(server):
    """A client of that server."""
    async with connected(server) as client:
        yield client


@pytest.fixture
def maps():
    return "/api/v1/namespaces/default/configmaps"
