"""Hours of load out of a Prometheus: cAdvisor's figures of pods, and what nodes use besides."""

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from api import resources
from api.kubernetes import core
from cli import reading
from cli.output import progress
from cli.prometheus import cadvisor, samples
from cli.prometheus import client as prometheus
from cli.simulation.load import collected, replay, series
from cli.snapshot import format as formats
from domain import wording

_CHUNK: Final = 288
"""Moments that are asked for at once; fewer where an answer becomes too large."""
_SHORTEST_WINDOW: Final = 300.0
"""Seconds over which a rate is taken at least, since it needs two samples."""
MOST_BYTES: Final = 1 << 30
_HOST_NAME: Final = "kubernetes.io/hostname"
_LABELS: Final = ("node", "kubernetes_io_hostname", "instance")
"""Labels that may name a node, the most reliable first."""
_BY: Final = ", ".join(_LABELS)
_NAMESPACE: Final = re.compile(r"[a-z0-9-]{1,63}")
_MOST_NAMESPACES: Final = 100
_EXPORTED: Final = 'rate(node_cpu_seconds_total{mode!~"idle|iowait|steal"}[%s])'
_IN_USE: Final = (
    "avg_over_time(node_memory_MemTotal_bytes[%s])"
    " - avg_over_time(node_memory_MemAvailable_bytes[%s])"
)
_NAMED: Final = (
    "max by (nodename) (sum by (instance) (max by (instance, cpu, mode) ({}))"
    " * on (instance) group_left (nodename) max by (instance, nodename) (node_uname_info))"
)


class HistoryError(ValueError):
    """Load that a Prometheus does not have; says what it should scrape."""


class History(NamedTuple):
    """Rows of recorded load, and what is to be said about them."""

    rows: Sequence[series.Row]
    notes: tuple[str, ...]


class _Figures(NamedTuple):
    """Two queries, one for cores and one for bytes."""

    cpu: str
    memory: str


class _Besides(NamedTuple):
    """A source of what nodes use outside pods."""

    said: str
    figures: _Figures
    labels: Sequence[str] = _LABELS
    whole: bool = True
    """Whether the figures include the pods."""


def wanted(
    snapshot: formats.Snapshot, until: float, steps: int, step_seconds: float
) -> collected.Wanted:
    """Return which pods and nodes of a snapshot are asked for, and at which moments."""
    pods, nodes = set(), {}
    for raw in snapshot.of(resources.PODS):
        pod = reading.either(None, msgspec.convert, raw, core.Pod)
        if pod is not None and not pod.finished and not replay.runs_on_lent(pod):
            pods.add(pod.metadata.key)
    for raw in snapshot.of(resources.NODES):
        node = reading.either(None, msgspec.convert, raw, core.Node)
        if node is not None:
            name = node.metadata.name
            nodes[node.metadata.labels.get(_HOST_NAME, name)] = nodes[name] = name
    first = until - (steps - 1) * step_seconds
    span = samples.Range(first, steps, step_seconds)
    found = collected.Wanted(span, frozenset(pods), nodes)
    if found.rows > series.MOST_ROWS:
        raise HistoryError(
            f"{steps} steps of {wording.count(len(pods), 'online pod', 'online pods')} would be up "
            f"to {found.rows} figures, at most {series.MOST_ROWS} are read: write a longer --step "
            "or fewer --hours"
        )
    return found


async def read(
    source: prometheus.Prometheus,
    asked: collected.Wanted,
    step: progress.Step = progress.silent,
) -> History:
    """Read the load of the pods and nodes that are asked for."""
    reader = _Reader(source, asked, step)
    pods = await reader.pods()
    nodes, told = await reader.nodes()
    rows = [*pods.rows, *nodes]
    if pods.seen:
        # A figure holds until the next one, so that the last needs an end.
        end = asked.span.points * asked.span.step
        rows.append((end, *pods.rows[-1][1:]))
    return History(rows, (*collected.notes(pods, asked), *told))


class _Reader:
    def __init__(
        self, source: prometheus.Prometheus, asked: collected.Wanted, step: progress.Step
    ) -> None:
        self._source, self._asked, self._step = source, asked, step
        self._window = f"{max(asked.span.step, _SHORTEST_WINDOW):.0f}s"
        self._selector = cadvisor.CONTAINERS

    async def pods(self) -> collected.Collected:
        """Return what pods used."""
        among = _among(self._asked.pods)
        for self._selector in (cadvisor.CONTAINERS, cadvisor.PODS):
            found = collected.OfPods(self._asked)
            asked = self._of_containers(cadvisor.of_pods, self._selector + among)
            series_seen = 0
            async for part, answer in self._answers("use of pods", asked):
                series_seen += len(answer)
                found.add(part, answer)
            if series_seen:
                break
        else:
            raise HistoryError(
                "the Prometheus has no container_cpu_usage_seconds_total of these hours with "
                "the labels namespace and pod: let it scrape the cAdvisor metrics of the kubelets"
            )
        pods = found.collected()
        if not pods.rows:
            none_of = wording.count(len(self._asked.pods), "online pod", "online pods")
            raise HistoryError(
                f"the Prometheus has figures of none of {none_of}: it may scrape another "
                "cluster, keep container_memory_working_set_bytes "
                "no longer, or the snapshot may have other names (koord snapshot --rename)"
            )
        return pods

    def _of_containers(self, shape: Callable[[str], str], selector: str) -> _Figures:
        cpu = cadvisor.cpu(selector, self._window)
        return _Figures(shape(cpu), shape(cadvisor.mean_memory(selector, self._window)))

    async def nodes(self) -> tuple[list[series.Row], list[str]]:
        """Return what nodes used outside pods, by the first source that knows a node."""
        missing = set(self._asked.nodes.values())
        rows: list[series.Row] = []
        notes: list[str] = []
        pods: collected.OfNodes | None = None
        for one in self._besides():
            if not missing:
                break
            found = await self._of_nodes("use of nodes", one.figures, one.labels)
            if one.whole and found.nodes:
                pods = pods or await self._of_nodes(
                    "pods by node", self._of_containers(_of_nodes, self._selector), _LABELS
                )
                found = found.less(pods)
            more = [row for row in found.rows() if row[1] in missing]
            if known := {row[1] for row in more}:
                notes.append(f"what {_use(known)} outside pods comes from {one.said}")
                missing -= known
                rows += more
        if missing:
            notes.append(
                f"what {_use(missing)} outside pods is not in the Prometheus: what the snapshot "
                "says of it counts all the time"
            )
        return rows, notes

    def _besides(self) -> Iterator[_Besides]:
        """Yield the sources of what nodes use, the best first."""
        window = self._window
        agents = 'avg_over_time(koordlet_node_metric_system_usage{resource="%s"}[%s])'
        yield _Besides(
            "Koord's agents",
            _Figures(*(_whole(agents % (resource, window)) for resource in ("cpu", "memory"))),
            whole=False,
        )
        root = self._of_containers(_whole, cadvisor.ROOT)
        yield _Besides("cAdvisor", root)
        cpu, memory = _EXPORTED % window, _IN_USE % (window, window)
        busy = f"sum by ({_BY}) (max by ({_BY}, cpu, mode) ({cpu}))"
        yield _Besides("node_exporter", _Figures(busy, _whole(memory)))
        named = _Figures(_NAMED.format(cpu), _NAMED.format(memory))
        yield _Besides("node_exporter, by the names of hosts", named, ("nodename",))

    async def _of_nodes(
        self, said: str, asked: _Figures, labels: Sequence[str]
    ) -> collected.OfNodes:
        found = collected.OfNodes(self._asked)
        async for part, answer in self._answers(said, asked):
            found.add(part, answer, labels)
        return found

    async def _answers(
        self, said: str, asked: _Figures
    ) -> AsyncIterator[tuple[int, list[samples.Series]]]:
        """Yield what both queries bring, some moments at a time."""
        for part, query in enumerate(asked):
            at, size = 0, _CHUNK
            while at < self._asked.span.points:
                self._step(f"reading {said}", at, self._asked.span.points)
                size = min(size, self._asked.span.points - at)
                first = self._asked.span.first + at * self._asked.span.step
                try:
                    answer = await self._source.over(
                        query, self._asked.span._replace(first=first, points=size)
                    )
                except prometheus.RangeTooLargeError as error:
                    if size == 1:
                        raise HistoryError(
                            f"{error}; even one moment is too much: let another Prometheus "
                            "record sums by pod, or save the load in parts by --until"
                        ) from error
                    size //= 2
                    continue
                if self._source.received > MOST_BYTES:
                    raise HistoryError(
                        f"the Prometheus has sent more than {MOST_BYTES >> 20} MiB: write a "
                        "longer --step or fewer --hours"
                    )
                at += size
                yield part, answer


def _use(nodes: Collection[str]) -> str:
    return wording.count(len(nodes), "node uses", "nodes use")


def _of_nodes(query: str) -> str:
    return cadvisor.of_nodes(query, _BY)


def _whole(query: str) -> str:
    return cadvisor.whole(query, _BY)


def _among(pods: Iterable[str]) -> str:
    """Return a matcher of the namespaces of pods; nothing where they are many."""
    found = sorted({pod.partition("/")[0] for pod in pods})
    if len(found) > _MOST_NAMESPACES or not all(map(_NAMESPACE.fullmatch, found)):
        return ""
    return f',namespace=~"{"|".join(found)}"'
