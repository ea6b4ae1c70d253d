"""Pods as the console needs them, and sums of them by node; kept in step with the watch. Pure."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations
from domain.gangs import declaration
from domain.pods import pending_reason, resources
from kube.informers import store

_MOST_SHAPES: Final = 20_000
_DEFAULTS: Final = declaration.Defaults()
_LONGEST: Final = 1024
"""Characters that are kept of why a pod waits; tenants and schedulers write it."""


class Asked(NamedTuple):
    """What pods of one shape ask for: cpu in milli-cores, memory in bytes."""

    quality: str
    band: str
    cpu: int
    memory: int
    batch_cpu: int
    batch_memory: int

    @property
    def batch(self) -> bool:
        """Whether such pods run on what online pods do not use."""
        return self.band in (qos.Band.BATCH, qos.Band.FREE)


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """Why a pod has no node."""

    kind: str
    text: str
    since: float
    scheduler: str
    priority: int


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that has not ended."""

    namespace: str
    name: str
    node: str
    asked: Asked
    waiting: Waiting | None = None
    """None where it has a node."""
    gang: str = ""
    minimum: int = 0
    """Members that its gang needs, where the pod itself says so."""


class Reader:
    """Projects pods; equal shapes are one object each, and their number is bounded."""

    def __init__(self) -> None:
        self._shapes: dict[Asked, Asked] = {}

    def pod(self, raw: core.Pod) -> Pod | None:
        """Project a pod; one that has ended is of no interest."""
        if raw.finished:
            return None
        metadata, spec = raw.metadata, raw.spec
        node = sys.intern(spec.node_name)
        gang, minimum = _gang(raw)
        return Pod(
            namespace=sys.intern(metadata.namespace),
            name=metadata.name,
            node=node,
            asked=self._asked(raw),
            waiting=None if node else _waiting(raw),
            gang=gang,
            minimum=minimum,
        )

    def _asked(self, raw: core.Pod) -> Asked:
        requests = resources.pod_requests(raw)
        found = Asked(
            sys.intern(str(qos.of_pod(raw))),
            sys.intern(str(qos.band_of_pod(raw))),
            requests.get(names.CPU, 0),
            requests.get(names.MEMORY, 0),
            requests.get(names.BATCH_CPU, 0),
            requests.get(names.BATCH_MEMORY, 0),
        )
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        return self._shapes.setdefault(found, found)


def _waiting(raw: core.Pod) -> Waiting:
    why = pending_reason.of(raw)
    return Waiting(
        why.kind,
        why.text[:_LONGEST],
        _moment(raw.metadata.creation_timestamp),
        sys.intern(raw.spec.scheduler_name),
        raw.spec.priority or 0,
    )


def _gang(raw: core.Pod) -> tuple[str, int]:
    """Return the gang of a pod, empty without one, and the minimum that the pod declares."""
    metadata, group = raw.metadata, raw.spec.scheduling_group
    found = declaration.membership(metadata.namespace, metadata.labels, metadata.annotations, group)
    if found is None:
        return "", 0
    declared = declaration.of_pod(
        metadata.namespace, metadata.labels, metadata.annotations, _DEFAULTS, group
    )
    return found[0], declared.min_member if declared is not None else 0


def _moment(written: str | None) -> float:
    try:
        return durations.timestamp(written) if written else 0.0
    except ValueError:
        return 0.0


class Sums:
    """What the pods of one node request, and which they are."""

    __slots__ = ("batch_cpu", "batch_memory", "batch_pods", "cpu", "keys", "memory")

    def __init__(self) -> None:
        self.cpu = self.memory = self.batch_cpu = self.batch_memory = self.batch_pods = 0
        self.keys: dict[str, Pod] = {}

    def change(self, asked: Asked, sign: int) -> None:
        """Add or take off a pod."""
        self.cpu += sign * asked.cpu
        self.memory += sign * asked.memory
        self.batch_cpu += sign * asked.batch_cpu
        self.batch_memory += sign * asked.batch_memory
        self.batch_pods += sign * asked.batch


_NOTHING: Final = Sums()


class PodIndex:
    """All pods by what pages ask for: node, namespace of those that wait, gang."""

    def __init__(self) -> None:
        self.waiting: dict[str, Pod] = {}
        """By namespace/name, those without a node."""
        self.placed = 0
        self._waiting_in: dict[str, int] = {}
        self._nodes: dict[str, Sums] = {}
        self._gangs: dict[str, dict[str, Pod]] = {}

    def changed(self, change: store.Change[Any]) -> None:
        """Take in a change of a pod."""
        if change.old is not None:
            self._remove(change.key, change.old)
        if change.new is not None:
            self._add(change.key, change.new)

    def of_node(self, name: str) -> Sums:
        """Return what the pods of a node request."""
        return self._nodes.get(name, _NOTHING)

    @property
    def nodes(self) -> Iterator[tuple[str, Sums]]:
        """Yield the nodes that have pods."""
        return iter(self._nodes.items())

    def of_gang(self, gang: str) -> Mapping[str, Pod]:
        """Return the members of a gang."""
        return self._gangs.get(gang, {})

    @property
    def gangs(self) -> Iterable[str]:
        """The ids of gangs that have members."""
        return self._gangs.keys()

    @property
    def waiting_namespaces(self) -> Iterable[str]:
        """Namespaces in which pods wait."""
        return self._waiting_in.keys()

    def _add(self, key: str, pod: Pod) -> None:
        if pod.node:
            sums = self._nodes.get(pod.node)
            if sums is None:
                sums = self._nodes[pod.node] = Sums()
            sums.change(pod.asked, 1)
            sums.keys[key] = pod
            self.placed += 1
        else:
            self.waiting[key] = pod
            self._waiting_in[pod.namespace] = self._waiting_in.get(pod.namespace, 0) + 1
        if pod.gang:
            self._gangs.setdefault(pod.gang, {})[key] = pod

    def _remove(self, key: str, pod: Pod) -> None:
        if pod.node:
            self._leave(key, pod)
        elif self.waiting.pop(key, None) is not None:
            self._waiting_in[pod.namespace] -= 1
            if not self._waiting_in[pod.namespace]:
                del self._waiting_in[pod.namespace]
        members = self._gangs.get(pod.gang)
        if members is not None:
            members.pop(key, None)
            if not members:
                del self._gangs[pod.gang]

    def _leave(self, key: str, pod: Pod) -> None:
        sums = self._nodes.get(pod.node)
        if sums is None or sums.keys.pop(key, None) is None:
            return
        sums.change(pod.asked, -1)
        self.placed -= 1
        if not sums.keys:
            del self._nodes[pod.node]
