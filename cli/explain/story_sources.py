"""Reads what a story is made of, and notes of every source whether it answered.

Objects come from the API server. Pages of our processes are asked through it, pod by pod, or at
an address that was given; a story does without them where they cannot be asked.
"""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import orjson

from api import names, resources
from api.kubernetes import core
from cli import reading
from cli.doctor import support_bundle
from cli.doctor.checkup import facts
from cli.explain import lending_breakdown, node_layout, stories
from cli.explain.pod import batch_capacity
from cli.quota import cluster
from cli.reservations import cluster as reserved
from cli.snapshot import format as formats
from cli.snapshot import reader
from kube.client import client as clients
from kube.client import errors, failures, wire
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from process.runtime import clock as clocks

T = TypeVar("T")
Raw = Mapping[str, Any]

EXTENDER, MANAGER, WEBHOOK = "extender", "manager", "webhook"
PROCESSES: Final = (EXTENDER, MANAGER, WEBHOOK)
EVERYTHING, RESERVATIONS, MIGRATIONS = "the cluster", "Reservations", "PodMigrationJobs"
"""Names of the sources that say whether there is a gang, a Reservation, a PodMigrationJob."""
_COMPONENTS: Final = {EXTENDER: "scheduler", MANAGER: "manager", WEBHOOK: "webhook"}
_SECONDS: Final = 5.0
_POD: Final = msgspec.json.Decoder(core.Pod)
_NODE: Final = msgspec.json.Decoder(core.Node)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Where to look."""

    namespace: str = names.NAMESPACE
    """Where the processes run."""
    urls: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Addresses of health ports by process; others are reached through the API server."""


class Sources:
    """Reads from one cluster."""

    def __init__(self, kube: clients.Client, clock: clocks.Clock, options: Options) -> None:
        self._kube = kube
        self._clock = clock
        self._options = options
        self.noted: list[stories.Source] = []

    # -- objects -----------------------------------------------------------------------------

    async def pod(self, key: str) -> Raw | None:
        """Return a pod; None where there is none."""
        namespace, _, name = key.partition("/")
        try:
            return await self._kube.get(resources.PODS, name, namespace)
        except errors.NotFound:
            return None

    async def node(self, name: str) -> Raw | None:
        """Return a node; None where there is none."""
        try:
            return await self._kube.get(resources.NODES, name)
        except errors.NotFound:
            return None

    async def tried(self, body: Raw, namespace: str) -> tuple[Raw | None, str]:
        """Try to create a pod without creating it; return what it would become, or the refusal."""
        try:
            return await self._kube.create(resources.PODS, body, namespace, dry_run=True), ""
        except errors.ApiError as error:
            return None, error.message or str(error)

    async def events(self, namespace: str, fields: str) -> Sequence[Raw]:
        """Return the events of a selection, the oldest first."""
        read = self._kube.list(resources.CORE_EVENTS, namespace, fields=fields)
        found = await self._learned("events", read)
        return sorted(found.items, key=_moment) if found else ()

    async def explanation(self, key: str) -> Raw | None:
        """Return the ScheduleExplanation about a pod that was confirmed last."""
        read = self._kube.list(resources.SCHEDULE_EXPLANATIONS, key.partition("/")[0])
        found = await self._learned("ScheduleExplanations", read)
        about = [
            item
            for item in (found.items if found else ())
            if (item.get("spec") or {}).get("questionObjectKey") == key
        ]
        return max(about, key=_confirmed, default=None)

    async def metric(self, node: str) -> Raw | None:
        """Return the report of a node."""
        read = self._kube.get(resources.NODE_METRICS, node)
        return await self._learned("NodeMetric", read, optional=True)

    async def layout(self, node: Raw) -> node_layout.Objects:
        """Return what says how a node is laid out, and which pods are there."""
        name = str(node["metadata"]["name"])
        kinds = {
            "NodeResourceTopology": resources.NODE_RESOURCE_TOPOLOGIES,
            "Device": resources.DEVICES,
        }
        topology, device = [
            await self._learned(title, self._kube.get(kind, name), optional=True)
            for title, kind in kinds.items()
        ]
        read = self._kube.list(resources.PODS, fields=f"spec.nodeName={name}")
        pods = await self._learned("pods", read)
        return node_layout.Objects(node, topology, device, pods.items if pods else ())

    async def offers(self, node: str = "") -> list[batch_capacity.Offer] | None:
        """Return what nodes, or one of them, have left for batch work."""
        fields = f"spec.nodeName={node}" if node else ""
        pods = await self._learned("pods", self._held(fields))
        nodes = await self._learned("nodes", self._nodes(node))
        if pods is None or nodes is None:
            return None
        settings = await self._learned("cluster settings", self._rules())
        return batch_capacity.offers(nodes, pods, settings)

    async def _settings(self) -> Mapping[str, str]:
        """Return what the settings of the cluster say; the defaults hold without a ConfigMap."""
        where = names.CONFIG_MAP_SLO, self._options.namespace
        try:
            found = await self._kube.get(resources.CONFIG_MAPS, *where)
        except errors.NotFound:
            return {}
        return found.get("data") or {}

    async def _rules(self) -> effective.ClusterSettings:
        return cluster_settings.read(None, await self._settings()).settings

    async def _held(self, fields: str) -> list[tuple[str, dict[str, int]]]:
        found: list[tuple[str, dict[str, int]]] = []
        async for page in _pages(self._kube, clients.Selection(resources.PODS, fields=fields)):
            # Page by page, because whole pods of a large cluster fill gigabytes.
            for pod in _each(page, _POD):
                held = reading.either(None, batch_capacity.held, pod)
                found += [held] if held is not None else []
        return found

    async def _nodes(self, name: str) -> list[core.Node]:
        fields = f"metadata.name={name}" if name else ""
        found: list[core.Node] = []
        async for page in _pages(self._kube, clients.Selection(resources.NODES, fields=fields)):
            found += _each(page, _NODE)
        return found

    async def quotas(self, *, pods: bool) -> cluster.Cluster | None:
        """Return all quotas, with every pod and node where a pod waits for its quota."""
        found = await self._learned("ElasticQuotas", self._taken(resources.QUOTA_RESOURCES))
        if found is None or any(why != reader.NOT_INSTALLED for why in found.unread.values()):
            return None
        if pods and any(found.objects.values()):
            budgets = resources.POD_DISRUPTION_BUDGETS
            everything = (*resources.QUOTA_RESOURCES, resources.NODES, resources.PODS, budgets)
            found = await self._learned("what quotas hold", self._taken(everything)) or found
        return cluster.build(found)

    async def reservations(self, *, pods: bool) -> reserved.Cluster | None:
        """Return all Reservations with nodes; with every pod, or else as their status has them."""
        wanted = (resources.RESERVATIONS, resources.NODES, *((resources.PODS,) if pods else ()))
        found = await self._learned(RESERVATIONS, self._taken(wanted[:1]))
        if found is None:
            return None
        for what, why in found.unread.items():
            if why != reader.NOT_INSTALLED:
                self._note(what, None, why)
        if not (found.of(resources.RESERVATIONS) or pods):
            return None
        found = await self._learned("what Reservations hold", self._taken(wanted))
        return None if found is None else reserved.build(found)

    async def migrations(self) -> Sequence[Raw]:
        """Return all PodMigrationJobs."""
        read = self._kube.list(resources.POD_MIGRATION_JOBS)
        found = await self._learned(MIGRATIONS, read)
        return found.items if found else ()

    async def everything(self) -> formats.Snapshot | None:
        """Return what a snapshot holds; what may not be read is noted and left out."""
        read = reader.taken(self._kube, self._clock, self._options.namespace)
        found = await self._learned(EVERYTHING, read)
        for what, why in sorted(found.unread.items()) if found is not None else ():
            if why != reader.NOT_INSTALLED:
                self._note(what, None, why)
        return found

    async def _taken(self, wanted: Sequence[resources.Resource]) -> formats.Snapshot:
        return await reader.taken(self._kube, self._clock, self._options.namespace, wanted)

    # -- pages of processes ------------------------------------------------------------------

    async def lending(self, node: Raw) -> dict[str, Any] | None:
        """Return why a node lends what it lends: from a manager, else calculated here."""
        name = str(node["metadata"]["name"])
        found = await self.page(MANAGER, f"debug/nodes/{name}")
        return found or await self._learned("calculation here", self._calculated(node))

    async def _calculated(self, node: Raw) -> dict[str, Any]:
        name = str(node["metadata"]["name"])
        pods = await self._kube.list(resources.PODS, fields=f"spec.nodeName={name}")
        try:
            metric: Raw | None = await self._kube.get(resources.NODE_METRICS, name)
        except errors.NotFound:
            metric = None
        data = await self._settings()
        return lending_breakdown.explained(node, pods.items, metric, data, self._clock)

    async def page(
        self, process: str, path: str, query: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return a page of a process: of the first of its replicas that has it."""
        url = self._options.urls.get(process)
        if url:
            return await self._at(process, f"{url.rstrip('/')}/{path}", query or {})
        component = _COMPONENTS[process]
        try:
            pods = await self._kube.list(
                resources.PODS, self._options.namespace, labels=support_bundle.SELECTOR
            )
        except errors.KubeError as error:
            return self._note(process, None, str(error))
        ours = [pod for pod in pods.items if facts.component(pod) == component]
        if not ours:
            where = f"no pod of it runs in {self._options.namespace}"
            return self._note(process, None, f"{where}; --{process}-url names an address")
        return await self._through(process, ours, path, query or {})

    async def _through(
        self, process: str, pods: Sequence[Raw], path: str, query: Mapping[str, str]
    ) -> dict[str, Any] | None:
        port, problems, answered = support_bundle.HEALTH_PORTS[_COMPONENTS[process]], [], ""
        for pod in pods:
            name = facts.name(pod)
            full = resources.PODS.path(self._options.namespace, f"{name}:{port}", f"proxy/{path}")
            try:
                text = await self._kube.read(full, query, seconds=_SECONDS)
                return self._note(process, _page(text), name)
            except errors.NotFound:
                answered = name
            except (errors.KubeError, ValueError) as error:
                problems.append(f"{name}: {error}")
        if answered:
            # Only the replica that the scheduler calls knows of waiting pods.
            return self._note(process, {}, f"{answered} knows nothing of it") or None
        return self._note(process, None, "; ".join(problems))

    async def _at(self, process: str, url: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        limit = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.get(url, params=query) as answer,
            ):
                if answer.status == 404:
                    return self._note(process, {}, f"{url} knows nothing of it") or None
                if answer.status != 200:
                    return self._note(process, None, f"{url} answers {answer.status}")
                return self._note(process, _page(await answer.read()), url)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return self._note(process, None, f"{url}: {failures.unanswered(error)}")

    # -- notes -------------------------------------------------------------------------------

    def _note(self, name: str, answer: dict[str, Any] | None, note: str) -> dict[str, Any] | None:
        self.noted.append(stories.Source(name, answer is not None, note))
        return answer

    async def _learned(self, name: str, read: Awaitable[T], *, optional: bool = False) -> T | None:
        try:
            answer = await read
        except reading.UNREADABLE as error:
            self.noted.append(stories.Source(name, False, reading.why(error)))
            return None
        except errors.KubeError as error:
            if optional and isinstance(error, errors.NotFound):
                self.noted.append(stories.Source(name, True, "there is none"))
            else:
                self.noted.append(stories.Source(name, False, str(error)))
            return None
        self.noted.append(stories.Source(name, True))
        return answer


async def _pages(kube: clients.Client, selection: clients.Selection) -> AsyncIterator[bytes]:
    query = {"limit": str(clients.PAGE)}
    while True:
        page = await kube.page(selection, query)
        yield page
        following = wire.page(page)[0].metadata.continue_
        if not following:
            return
        query["continue"] = following


def _page(text: bytes | str) -> dict[str, Any]:
    """Read a page of a process; it is an object or a ValueError."""
    found = orjson.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"its page is no object but {type(found).__name__}")
    return found


def _each(page: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """Yield the objects of a page of a list that can be read."""
    for raw in wire.page(page)[0].items or ():
        found = reading.either(None, decoder.decode, raw)
        if found is not None:
            yield found


def _moment(event: Raw) -> str:
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
        or ""
    )


def _confirmed(item: Raw) -> str:
    return str((item.get("status") or {}).get("lastUpdateTime") or "")
