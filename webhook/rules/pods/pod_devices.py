"""Normalise the GPU requests of containers, and refuse contradictory ones."""

from collections.abc import Iterator, Mapping
from typing import Any

from api.kubernetes import core
from api.wire import quantity
from domain.devices import pod_devices
from domain.devices.allocation import gpus
from domain.devices.requests import request_faults
from domain.pods import resources
from webhook import review

GROUP = "device"
FIELD = "spec.containers"


def normalise(pod: review.Pod) -> review.Pod | review.Refusal:
    """Give every regular container that asks for GPUs the one form that all readers expect."""
    spec = review.section(pod, "spec")
    containers: list[Any] | None = None
    for index, container in enumerate(spec.get("containers") or ()):
        written = container.get("resources")
        if not written:
            continue
        asked = gpus.Asked(written.get("requests") or {}, written.get("limits") or {})
        if not gpus.concern(asked):
            continue
        try:
            found = gpus.normalised(asked)
        except quantity.QuantityError as wrong:
            return review.Refusal(GROUP, (f"{FIELD}[{index}].resources: {wrong}",))
        if found == asked:
            continue
        containers = list(spec["containers"]) if containers is None else containers
        parts = {"requests": found.requests, "limits": found.limits}
        containers[index] = {**container, "resources": {**written, **parts}}
    return pod if containers is None else {**pod, "spec": {**spec, "containers": containers}}


def check(pod: review.Pod) -> review.Refusal | None:
    """Refuse a pod with a container whose GPU requests contradict each other."""
    try:
        found = tuple(dict.fromkeys(_faults(pod)))
    except quantity.QuantityError as wrong:
        return review.Refusal(GROUP, (f"{FIELD}: {wrong}",))
    return review.Refusal(GROUP, found) if found else None


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


def _faults(pod: review.Pod) -> Iterator[str]:
    for container in review.section(pod, "spec").get("containers") or ():
        requests: Mapping[str, Any] = (container.get("resources") or {}).get("requests") or {}
        if not gpus.ASKED.isdisjoint(requests):
            yield from gpus.faults(requests)
