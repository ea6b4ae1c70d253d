"""Readings that not every node needs, taken in a tick, each at an interval of its own."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from agent.host import files
from agent.model import cgroup_layout, state
from agent.store import time_series

_logger = logging.getLogger(__name__)


class Sight(msgspec.Struct, frozen=True):
    """What a collector may look at in one tick."""

    at: float
    """Monotonic seconds."""
    layout: cgroup_layout.Layout
    kept: files.Kept
    """Files that stay open from one look to the next."""
    samples: time_series.Histories
    """Where figures go, under keys that begin with `node`, `pod`, `container` or `host`."""
    pods: tuple[state.PodState, ...] = ()
    host_applications: tuple[state.HostApplication, ...] = ()
    processors: tuple[state.Processor, ...] = ()
    keep_seconds: float = 1800.0
    """How long figures of the node are kept."""
    pod_keep_seconds: float = 300.0
    """How long figures of pods are kept."""

    disks: dict[str, str] = msgspec.field(default_factory=dict)
    """Where to put the disks of volume groups and of volumes, as decisions know them."""

    def spots(self) -> Iterator["Spot"]:
        """Yield the groups of pods, and of their containers that run."""
        for one in self.pods:
            metadata = one.pod.metadata
            labels = (metadata.namespace, metadata.name)
            if one.group:
                yield Spot(("pod", metadata.uid), one.group, (*labels, ""), one)
            for container in one.containers:
                if container.group and container.running:
                    key = ("container", metadata.uid, container.name)
                    yield Spot(key, container.group, (*labels, container.name), one)

    def add(self, key: tuple[str, ...], figure: str, value: float) -> None:
        """Keep a figure as long as others of its kind are kept."""
        keep = self.keep_seconds if key[0] == "node" else self.pod_keep_seconds
        self.samples.add((*key, figure), self.at, value, keep)


LABELS: Final = ("pod_namespace", "pod_name", "container")
"""Labels of a metric of pods and containers; a pod as a whole has no container."""


class Spot(msgspec.Struct, frozen=True):
    """One cgroup that is read, and the labels of its figures."""

    key: tuple[str, ...]
    group: str
    labels: tuple[str, str, str]
    pod: state.PodState


class Collector(Protocol):
    """One source of figures; it may keep counters, file descriptors and nothing that grows."""

    @property
    def name(self) -> str:
        """What the source is called where its failures are named."""

    @property
    def seconds(self) -> float:
        """Time between two looks."""

    def collect(self, sight: Sight) -> None:
        """Look once; a ReadingError says why the source as a whole has nothing to tell."""

    def close(self) -> None:
        """Let go of everything that is open."""


class Collectors:
    """All collectors of one agent, called when they are due."""

    def __init__(self, collectors: Sequence[Collector] = ()) -> None:
        self._collectors = tuple(collectors)
        self._due: dict[str, float] = {}
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """Why a source had nothing to tell when it was last looked at, by its name."""
        return self._problems

    def step(self, sight: Callable[[], Sight]) -> None:
        """Call those that are due; `sight` is asked only when there is one."""
        found: Sight | None = None
        for collector in self._collectors:
            found = found or sight()
            if found.at < self._due.get(collector.name, found.at):
                continue
            self._due[collector.name] = found.at + collector.seconds
            try:
                collector.collect(found)
            except files.ReadingError as error:
                self._problems[collector.name] = str(error)
            except Exception as error:
                # One source with a fault must not take the others and the decisions with it.
                self._problems[collector.name] = f"{type(error).__name__}: {error}"
                _logger.exception("collector failed name=%s", collector.name)
            else:
                self._problems.pop(collector.name, None)

    def close(self) -> None:
        """Let go of everything that is open."""
        for collector in self._collectors:
            collector.close()
