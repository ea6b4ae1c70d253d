"""Normalise the GPU requests of containers, and refuse contradictory ones."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.kubernetes import core
from api.wire import quantity
from domain.devices import pod_devices
from domain.devices.allocation import gpus
from domain.devices.requests import request_faults
from domain.pods import resources
from webhook import review

GROUP = "device"
_GROUPS: Final = ("initContainers", "containers")
"""A pod asks for what both ask for together, so both have to speak in one form."""


def normalise(pod: review.Pod) -> review.Pod | review.Refusal:
    """Give every container that asks for GPUs the one form that all readers expect."""
    spec = review.section(pod, "spec")
    changed: dict[str, Any] = {}
    for group in _GROUPS:
        for index, container in enumerate(spec.get(group) or ()):
            try:
                found = _normalised(container)
            except quantity.QuantityError as wrong:
                return review.Refusal(GROUP, (f"spec.{group}[{index}].resources: {wrong}",))
            if found is not container:
                changed.setdefault(group, list(spec[group]))[index] = found
    return {**pod, "spec": {**spec, **changed}} if changed else pod


def _normalised(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a container that asks for GPUs in one form: the same object where it did already."""
    written = container.get("resources")
    if not written:
        return container
    asked = gpus.Asked(written.get("requests") or {}, written.get("limits") or {})
    if not gpus.concern(asked):
        return container
    found = gpus.normalised(asked)
    if found == asked:
        return container
    parts = {"requests": found.requests, "limits": found.limits}
    return {**container, "resources": {**written, **parts}}


def pairs(before: review.Pod, after: review.Pod) -> Iterator[tuple[Any, Any]]:
    """Yield each container before and after a change that adds and removes none."""
    for group in reversed(_GROUPS):
        both = (review.section(pod, "spec").get(group) or () for pod in (before, after))
        yield from zip(*both, strict=True)


def check(pod: review.Pod) -> review.Refusal | None:
    """Refuse a pod with a container whose GPU requests contradict each other."""
    spec = review.section(pod, "spec")
    found: list[str] = []
    for group in _GROUPS:
        for index, container in enumerate(spec.get(group) or ()):
            try:
                found += _faults(container)
            except quantity.QuantityError as wrong:
                return review.Refusal(GROUP, (f"spec.{group}[{index}].resources: {wrong}",))
    return review.Refusal(GROUP, tuple(dict.fromkeys(found))) if found else None


def illegal(pod: core.Pod) -> review.Refusal | None:
    """Refuse a pod whose containers together ask for devices in a way that no node can serve."""
    found = request_faults.faults(resources.pod_requests(pod))
    return review.Refusal(GROUP, found) if found else None


def doubts(pod: core.Pod) -> Iterator[str]:
    """Yield why no node will serve the device requests of a pod, or what of them has no effect."""
    asked = resources.pod_requests(pod)
    yield from request_faults.faults(asked)
    found = pod_devices.read(asked, {**pod.metadata.labels, **pod.metadata.annotations})
    if isinstance(found, pod_devices.PodDevices):
        for text in request_faults.doubts(found):
            yield f"metadata: {text}"


def _faults(container: Mapping[str, Any]) -> Iterator[str]:
    requests: Mapping[str, Any] = (container.get("resources") or {}).get("requests") or {}
    if not gpus.ASKED.isdisjoint(requests):
        yield from gpus.faults(requests)
