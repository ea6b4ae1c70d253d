"""What an API server completes in a pod that is created, for pods that it never saw. Pure.

A template is stored as its author wrote it. Requests that are missing follow from limits in the
pods that are made of it, by SetDefaults_Pod of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_CONTAINERS: Final = ("containers", "initContainers")


def with_requests(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of a pod, as JSON, with the requests that follow from limits."""
    found = dict(spec)
    for part in _CONTAINERS:
        if isinstance(found.get(part), list):
            found[part] = list(map(_completed, found[part]))
    level = _mapping(found.get("resources"))
    if limits := _mapping(level.get("limits")):
        requested = set(_requested(found))
        missing = {name: amount for name, amount in limits.items() if name not in requested}
        found["resources"] = {**level, "requests": {**missing, **_written(level)}}
    return found


def _completed(container: Any) -> Any:
    """Return a container that requests what it limits, where it does not say otherwise."""
    resources = _mapping(_mapping(container).get("resources"))
    limits = _mapping(resources.get("limits"))
    if not limits:
        return container
    return {**container, "resources": {**resources, "requests": {**limits, **_written(resources)}}}


def _requested(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the resources that containers request: then a pod as a whole requests their sum."""
    for part in _CONTAINERS:
        written = spec.get(part)
        for container in written if isinstance(written, list) else ():
            yield from _written(_mapping(_mapping(container).get("resources")))


def _written(resources: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the requests that are written; null and absent are the same."""
    requests = _mapping(resources.get("requests"))
    return {name: amount for name, amount in requests.items() if amount is not None}


def _mapping(written: Any) -> Mapping[str, Any]:
    return written if isinstance(written, Mapping) else {}
