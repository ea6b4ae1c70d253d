"""A real control plane with nodes that are only objects, filled and emptied over the API."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from api.wire import durations
from benchmarks import figures
from benchmarks.plane import feed, layouts
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.processes import binaries, credentials
from tests.e2e import binaries as builds

USER = "koord-extender"
_BUSY_EACH = 3
_BUSY_CORES = "60"
"""Of 64, far above the load at which nodes are refused by default."""
NAMESPACE = "bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MERGE = {"Content-Type": "application/merge-patch+json"}
PROTOBUF = "application/vnd.kubernetes.protobuf"
_CONNECTIONS = 32
_PATIENCE = 120.0
_RENEWED_SECONDS = 90.0
"""Half of the age at which a load report counts no longer."""
_METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SHARE = 0.1
_SETTLED = 0.03
"""Cores that an idle control plane takes at most."""
_SETTLING_SECONDS = 60.0
_LOOK_SECONDS = 2.0
# Else one controller annotates a new cluster's nodes for minutes, 20 a second.
_QUICKLY = ("--kube-api-qps=2000", "--kube-api-burst=4000")
_BUFFER = 16 << 20
_ENDLESS = aiohttp.ClientTimeout(total=None)
_IDENTITY = re.compile(rb"\x2a\x24([0-9a-f-]{36})\x32(.)([0-9]+)", re.DOTALL)
_NODE_NAME = 10 << 3 | 2
"""The key of a pod's node in protobuf: field 10, a text."""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """What one drain of the queue showed, its first and last tenth left out."""

    pods_per_second: float
    milliseconds: Mapping[str, float]
    """Processor time per scheduled pod by program."""
    resident: float = 0.0
    """Resident memory of the extender in MiB afterwards."""


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a control plane, which are only objects: how many, what each is and uses."""

    count: int
    offers: Callable[[int], Mapping[str, str]]
    labels: Callable[[int], Mapping[str, str]]
    uses: Callable[[int], Mapping[str, str]]
    """Resources that a node reports as used."""


def even(count: int) -> Nodes:
    """Return nodes of one size."""
    return Nodes(
        count,
        offers=lambda _: {
            "cpu": "64", "memory": "256Gi", "pods": "110",
            "kubernetes.io/batch-cpu": "30000", "kubernetes.io/batch-memory": "120Gi",
        },
        labels=lambda number: {f"example.com/label-{i}": f"value-{number % 7}" for i in range(12)},
        uses=lambda number: {"cpu": str(2 + number % 20), "memory": f"{8 + number % 60}Gi"},
    )  # fmt: skip


class Rig:
    """A control plane and the clients that fill it."""

    def __init__(
        self,
        plane: binaries.Plane,
        session: aiohttp.ClientSession,
        workdir: Path,
        nodes: Nodes,
        cores: layouts.Cores,
    ) -> None:
        self.plane = plane
        self.cores = cores
        self.workdir = workdir
        self.nodes = nodes.count
        self._nodes = nodes
        self._session = session
        self._turn = 0

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> bytes:
        """Ask the API server; anything but success is an error."""
        async with self._session.request(
            method, f"{self.plane.server}{path}", json=body, **options
        ) as answer:
            data = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {data[:300]!r}")
            return data

    async def version(self) -> str:
        """Return the version from which a watch shows every pod that is created from now on."""
        listed = json.loads(await self.call("GET", PODS, params={"limit": "1"}))
        return str(listed["metadata"]["resourceVersion"])

    async def fill(self) -> None:
        """Create the nodes, a report for each, and the namespace of the pods."""
        await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        await until(lambda: self._exists(account))
        await many(self._node(number) for number in range(self.nodes))
        await many(self._report(number, "POST", _METRICS) for number in range(self.nodes))
        await self.refresh_reports()

    async def _exists(self, path: str) -> bool:
        try:
            await self.call("GET", path)
        except RuntimeError:
            return False
        return True

    async def _node(self, number: int) -> None:
        offered = self._nodes.offers(number)
        status = {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        metadata = {"name": feed.node_name(number), "labels": self._nodes.labels(number)}
        await self.call("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})

    async def _report(self, number: int, method: str, path: str, busy: bool = False) -> None:
        name = feed.node_name(number)
        used = dict(self._nodes.uses(number))
        if busy and number % _BUSY_EACH == 0:
            used["cpu"] = _BUSY_CORES
        usage = {"nodeUsage": {"resources": used}}
        status = {"updateTime": durations.moment(time.time()), "nodeMetric": usage}
        if method == "POST":
            kind = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}
            await self.call("POST", path, {**kind, "metadata": {"name": name}, "spec": {}})
            return
        await self.call("PATCH", f"{path}/{name}/status", {"status": status}, headers=_MERGE)

    async def refresh_reports(self, *, busy: bool = False) -> None:
        """Let every node report anew, as its agent does every minute; a third of them much load."""
        await many(self._report(number, "PATCH", _METRICS, busy) for number in range(self.nodes))

    async def renew_reports(
        self, clock: clocks.Clock, every_seconds: float = _RENEWED_SECONDS
    ) -> None:
        """Let nodes report anew until cancelled, one after the other, each in so many seconds."""
        began = clock.monotonic()
        for turn in itertools.count():
            due = began + (turn + 1) * every_seconds / self.nodes
            await clock.sleep(max(0.0, due - clock.monotonic()))
            await self._report(turn % self.nodes, "PATCH", _METRICS)

    async def pods_on_busy_nodes(self) -> int:
        """Count the pods on nodes that report too much load where `busy` ones do."""
        full = {feed.node_name(number) for number in range(0, self.nodes, _BUSY_EACH)}
        pods = json.loads(await self.call("GET", PODS))["items"]
        return sum(pod["spec"].get("nodeName") in full for pod in pods)

    async def define(self, files: Iterable[Path]) -> None:
        """Create the custom resource definitions of other programs where there are none yet."""
        known = json.loads(await self.call("GET", _DEFINITIONS))["items"]
        have = {item["metadata"]["name"] for item in known}
        wanted = [document for file in files for document in yaml.safe_load_all(file.read_text())]
        missing = [document for document in wanted if document["metadata"]["name"] not in have]
        await self.create(_DEFINITIONS, missing)
        await until(self._are_served)

    async def _are_served(self) -> bool:
        items = json.loads(await self.call("GET", _DEFINITIONS))["items"]
        served = {"type": "Established", "status": "True"}
        return all(
            any(served.items() <= has.items() for has in item["status"].get("conditions", ()))
            for item in items
        )

    async def settle(self, seconds: float = _SETTLING_SECONDS) -> None:
        """Wait until the control plane has nothing left to do, but not for ever."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            before = self._worked()
            await asyncio.sleep(_LOOK_SECONDS)
            if self._worked() - before <= _SETTLED * _LOOK_SECONDS:
                return
        print("the control plane did not come to rest", flush=True)

    def _worked(self) -> float:
        return sum(figures.cpu_seconds(pid) for pid in self.plane.pids().values())

    async def start_scheduler(self, config: Mapping[str, Any], **options: str) -> None:
        """Start a scheduler on the cores of the control plane."""
        with self.cores.control():
            await self.plane.start_scheduler(config, **options)

    async def create_pods(self, count: int, kilobytes: int = 7) -> None:
        """Create waiting pods of 2, 7 or 60 KB, a third of them batch work."""
        self._turn += 1
        first = self._turn * 100_000
        numbers = range(first, first + count)
        await self.create(PODS, (waiting_pod(number, kilobytes) for number in numbers))

    async def create(self, path: str, bodies: Iterable[Any]) -> None:
        """Create objects, several at a time."""
        await many(self.call("POST", path, body) for body in bodies)

    async def delete_pods(self) -> None:
        """Remove every pod at once."""
        await self.call("DELETE", PODS, {"gracePeriodSeconds": 0})
        await until(self._is_empty)

    async def _is_empty(self) -> bool:
        return not json.loads(await self.call("GET", PODS, params={"limit": "1"}))["items"]

    async def drained(
        self, count: int, pids: Mapping[str, int], begin: Callable[[], Coroutine[Any, Any, None]]
    ) -> Run:
        """Begin to schedule and watch until every waiting pod has a node."""
        marks: list[tuple[int, float, dict[str, float]]] = []
        bounds = [int(count * _SHARE), int(count * (1 - _SHARE))]
        bound = self._bound(await self.version())
        done = 0
        async with asyncio.timeout(_PATIENCE), supervise.Supervisor("drain") as supervisor:
            # Beside the watch: a client that does not read is cut off.
            supervisor.spawn("begin", begin())
            async for many in bound:
                done += many
                while bounds and done >= bounds[0]:
                    used = {
                        name: figures.cpu_seconds(pid)
                        for name, pid in {**self.plane.pids(), **pids}.items()
                    }
                    marks.append((done, time.perf_counter(), used))
                    bounds.pop(0)
                if done >= count:
                    break
        (low, start, before), (high, end, after) = marks
        work = {name: (after[name] - before[name]) * 1000 / (high - low) for name in before}
        return Run((high - low) / (end - start), work)

    async def _bound(self, version: str) -> AsyncIterator[int]:
        """Yield how many pods more got a node, for ever, watching anew where cut off.

        In protobuf, as the scheduler watches, so that counting costs the API server no encoding.
        """
        name = feed.node_name(0)
        # The field of the node as protobuf writes it: annotations may hold the name as well.
        word = bytes((_NODE_NAME, len(name))) + name.partition("0")[0].encode()
        seen: set[str] = set()
        async for frames in self.frames(version):
            before = len(seen)
            seen.update(identity_of(frame)[0] for frame in frames if word in frame)
            if len(seen) > before:
                yield len(seen) - before

    async def frames(self, version: str) -> AsyncIterator[list[bytes]]:
        """Yield the watch events of pods in protobuf as they come, watching anew where cut off."""
        headers = {"Accept": f"{PROTOBUF};stream=watch"}
        while True:
            rest = b""
            query = {"watch": "true", "resourceVersion": version}
            async with self._session.get(
                f"{self.plane.server}{PODS}",
                params=query,
                headers=headers,
                read_bufsize=_BUFFER,
                timeout=_ENDLESS,
            ) as answer:
                async for chunk in answer.content.iter_any():
                    rest += chunk
                    found = []
                    while len(rest) >= 4 + (size := int.from_bytes(rest[:4], "big")):
                        found.append(rest[4 : 4 + size])
                        rest = rest[4 + size :]
                    if found:
                        version = identity_of(found[-1])[1] or version
                        yield found

    async def lines(self, path: str, version: str) -> AsyncIterator[bytes]:
        """Yield the watch events of a few objects in JSON, until the API server ends the watch."""
        query = {"watch": "true", "resourceVersion": version}
        async with self._session.get(
            f"{self.plane.server}{path}", params=query, read_bufsize=_BUFFER, timeout=_ENDLESS
        ) as answer:
            async for line in answer.content:
                yield line


def identity_of(frame: bytes) -> tuple[str, str]:
    """Return uid and version of the object in one event; empty where there are none."""
    found = _IDENTITY.search(frame)
    if found is None:
        return "", ""
    uid, length, digits = found.groups()
    return uid.decode(), digits[: length[0]].decode()


def waiting_pod(number: int, kilobytes: int) -> dict[str, Any]:
    """Return a pod of 2, 7 or 60 KB as its author writes it."""
    body: dict[str, Any] = json.loads(feed.pod_text(number, "", moment="", kilobytes=kilobytes))
    body["metadata"] = {
        "name": body["metadata"]["name"],
        "labels": body["metadata"]["labels"],
        "annotations": body["metadata"]["annotations"],
    }
    body["spec"].pop("nodeName")
    body["spec"]["containers"][0].pop("volumeMounts")
    body.pop("status")
    return body


async def many(work: Iterable[Awaitable[Any]]) -> None:
    """Do work with as many hands as there are connections."""
    waiting = iter(work)

    async def hand() -> None:
        for one in waiting:
            await one

    await asyncio.gather(*(hand() for _ in range(_CONNECTIONS)))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is true, but not for ever."""
    async with asyncio.timeout(_PATIENCE):
        while not await condition():  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def running(
    nodes: Nodes,
    *,
    audit: bool = False,
    flags: tuple[str, ...] = (),
    layout: layouts.Layout = layouts.Layout.SHARED,
) -> AsyncIterator[Rig]:
    """Run a control plane with so many nodes."""
    cores = layouts.Cores(layout)
    clock = clocks.SystemClock()
    options = binaries.Options(
        users=(credentials.User(USER, ("system:masters",)),),
        audit=audit,
        apiserver_flags=("--delete-collection-workers=16", *flags),
        controllers_flags=_QUICKLY,
    )
    async with contextlib.AsyncExitStack() as stack:
        workdir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="koord-bench-")))
        programs = builds.build(builds.version())
        with cores.control():
            plane = await stack.enter_async_context(
                binaries.running(programs, workdir / "plane", options=options, clock=clock)
            )
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        async with clients.Client(access, clock=clock, user_agent="bench") as kube:
            await apply.definitions(kube, clock)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {plane.token}"},
                connector=aiohttp.TCPConnector(
                    limit=_CONNECTIONS, ssl=ssl.create_default_context(cadata=plane.ca.decode())
                ),
                timeout=aiohttp.ClientTimeout(total=_PATIENCE),
            )
        )
        rig = Rig(plane, session, workdir, nodes, cores)
        await rig.fill()
        yield rig


def has_binaries() -> bool:
    """Whether a real control plane can be run here."""
    return builds.find(builds.version()) is not None or builds.can_build()
