"""What score plug-ins read of pods on nodes and of nodes, shared between those that are alike."""

import hashlib
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from api.kubernetes import core
from domain.scoring import objects, releases, requests
from domain.scoring import pod as scored_pod
from domain.scoring.indexes import affinity

LARGEST: Final = 1 << 48
"""Amounts beyond this are cut: no machine has them, and sums must stay within 64 bits."""

_MOST_AMOUNTS: Final = 4096
_MOST_IMAGES: Final = 4096
"""Names of images on a node; a kubelet lists 50 images, the largest first, unless configured to
list more, and each is looked at whenever the node changes."""
_POD_AFFINITY: Final = ("podAffinity", "podAntiAffinity")


_Amounts = tuple[tuple[int, ...], tuple[int, int]]


class PlacedPod(core.Pod, frozen=True, gc=False):
    """A pod with what a kubelet granted to it as a whole, but without what only filters read."""

    status: objects.PodStatus = objects.PodStatus()


class PodTraits(msgspec.Struct, frozen=True, weakref=True):
    """What a pod on a node does to the scores of others."""

    labels: Mapping[str, str]
    requested: tuple[int, ...]
    """Plain requests of the scored resources, in their order."""
    nonzero: tuple[int, int]
    """NonZeroRequested: cpu in thousandths and memory in bytes."""
    terms: tuple[affinity.PodTerm, ...]
    """Affinity terms that may score other pods."""
    terminating: bool


class NodeTraits(msgspec.Struct, frozen=True, gc=False):
    """What score plug-ins read of a node besides its labels and what it offers."""

    taints: tuple[core.Taint, ...] = ()
    """PreferNoSchedule taints."""
    images: tuple[objects.Image, ...] = ()


class Projector:
    """Reads pods and nodes; what is alike is one object."""

    def __init__(self, resources: Sequence[str], release: releases.Release) -> None:
        self._resources, self._release = tuple(resources), release
        self._pods: weakref.WeakValueDictionary[bytes, PodTraits] = weakref.WeakValueDictionary()
        self._amounts: dict[_Amounts, _Amounts] = {}
        self._images: weakref.WeakValueDictionary[tuple[object, ...], objects.Image] = (
            weakref.WeakValueDictionary()
        )

    def pod(self, pod: core.Pod) -> PodTraits:
        """Return the traits of a pod."""
        key = digest(encoded(_shape(pod)))
        found = self._pods.get(key)
        if found is None:
            found = self._pods[key] = self._read(pod)
        return found

    def node(self, node: core.Node) -> NodeTraits:
        """Return the traits of a node."""
        images: tuple[objects.Image, ...] = ()
        if isinstance(node.status, objects.NodeStatus):
            images = tuple(
                self._images.setdefault((one.names, one.size_bytes), one)
                for one in _listed(node.status.images)
            )
        return NodeTraits(
            tuple(t for t in node.spec.taints if t.effect == scored_pod.PREFER_NO_SCHEDULE),
            images,
        )

    def _read(self, pod: core.Pod) -> PodTraits:
        plain = requests.plain(pod, self._release)
        cpu, memory = requests.nonzero_placed(pod, self._release)
        requested = tuple(_bounded(plain.get(name, 0)) for name in self._resources)
        amounts = requested, (_bounded(cpu), _bounded(memory))
        if len(self._amounts) >= _MOST_AMOUNTS:
            self._amounts.clear()
        requested, nonzero = self._amounts.setdefault(amounts, amounts)
        intern = sys.intern
        return PodTraits(
            # Pods that differ in one label share the rest.
            labels={intern(name): intern(value) for name, value in pod.metadata.labels.items()},
            requested=requested,
            nonzero=nonzero,
            terms=affinity.read(pod),
            terminating=pod.metadata.deletion_timestamp is not None,
        )


def _listed(images: Sequence[objects.Image]) -> Iterator[objects.Image]:
    """Yield as many images as a node may have."""
    left = _MOST_IMAGES
    for one in images:
        left -= max(1, len(one.names))
        if left < 0:
            return
        yield one


encoded: Final = msgspec.msgpack.Encoder().encode
"""Returns bytes that are equal for equal values."""


def digest(text: bytes) -> bytes:
    """Return a key that is as good as what was encoded, and shorter."""
    return hashlib.blake2b(text, digest_size=16).digest()


def _shape(pod: core.Pod) -> tuple[object, ...]:
    """Return everything that the traits of a pod depend on."""
    spec, status = pod.spec, pod.status
    written = spec.affinity or {}
    terms = [written.get(kind) for kind in _POD_AFFINITY]
    return (
        pod.metadata.labels,
        pod.metadata.deletion_timestamp is not None,
        # Only a term without namespaces of its own means that of its pod.
        (pod.metadata.namespace, terms) if any(terms) else None,
        [(one.name, one.restart_policy, one.resources) for one in spec.containers],
        [(one.name, one.restart_policy, one.resources) for one in spec.init_containers],
        (spec.resources, spec.overhead),
        _granted(status),
    )


def _granted(status: core.PodStatus) -> tuple[object, ...]:
    """Return what a kubelet says of the resources of a pod."""
    statuses = (*status.init_container_statuses, *status.container_statuses)
    pending = status.condition("PodResizePending")
    level: tuple[object, ...] = ()
    if isinstance(status, objects.PodStatus):
        level = (status.allocated_resources, status.resources)
    return (
        [(one.name, one.allocated_resources, one.resources) for one in statuses],
        pending.reason if pending is not None else None,
        level,
    )


def _bounded(value: int) -> int:
    return max(0, min(value, LARGEST))
