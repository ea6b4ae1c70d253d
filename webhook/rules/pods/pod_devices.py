"""Say what containers ask of GPUs in one form, and refuse what contradicts itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from api.wire import quantity
from domain.devices import gpus
from webhook import review

GROUP = "device"
FIELD = "spec.containers"


def normalise(pod: review.Pod) -> review.Pod | review.Refusal:
    """Give every regular container that asks for GPUs the one form that all readers expect."""
    spec = review.section(pod, "spec")
    containers: list[Any] | None = None
    for index, container in enumerate(spec.get("containers") or ()):
        resources = container.get("resources")
        if not resources:
            continue
        asked = gpus.Asked(resources.get("requests") or {}, resources.get("limits") or {})
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
        containers[index] = {**container, "resources": {**resources, **parts}}
    return pod if containers is None else {**pod, "spec": {**spec, "containers": containers}}


def check(pod: review.Pod) -> review.Refusal | None:
    """Refuse a pod with a container whose GPU requests contradict each other."""
    try:
        found = tuple(dict.fromkeys(_faults(pod)))
    except quantity.QuantityError as wrong:
        return review.Refusal(GROUP, (f"{FIELD}: {wrong}",))
    return review.Refusal(GROUP, found) if found else None


def _faults(pod: review.Pod) -> Iterator[str]:
    for container in review.section(pod, "spec").get("containers") or ():
        requests: Mapping[str, Any] = (container.get("resources") or {}).get("requests") or {}
        if not gpus.ASKED.isdisjoint(requests):
            yield from gpus.faults(requests)
