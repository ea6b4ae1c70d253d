"""What pods ask for, under the names by which kube-scheduler finds it on nodes."""

from collections.abc import Mapping
from typing import Any, Final

from api import names
from api.koordinator import resource_names

GROUPS: Final = ("initContainers", "containers")
PARTS: Final = ("requests", "limits")
_OVERCOMMITTED: Final = "kubernetes.io/"
"""Of resources without this prefix Kubernetes demands a limit that equals the request."""
_NONE: Final[Mapping[str, Any]] = {}


def in_pod(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rename what the containers of a pod, or of a patch of one, ask for.

    The overhead stays: the API server demands what the RuntimeClass says.
    """
    spec = _section(body, "spec")
    changed = {}
    for group in GROUPS:
        before = spec.get(group)
        if not isinstance(before, list):
            continue
        after = list(map(_container, before))
        if any(new is not old for new, old in zip(after, before, strict=True)):
            changed[group] = after
    return {**body, "spec": {**spec, **changed}} if changed else body


def _container(one: Any) -> Any:
    if not isinstance(one, Mapping):
        return one
    written = _section(one, "resources")
    renamed = in_container(written)
    return one if renamed is written else {**one, "resources": renamed}


def in_container(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the resources of a container without deprecated names, the same object without any.

    Under its old name a resource may have been one that needs no limit.
    """
    requests, limits = (_section(written, part) for part in PARTS)
    present, most = resource_names.current(requests), resource_names.current(limits)
    if present is requests and most is limits:
        return written
    equal = {
        name: present[name]
        for old, name in names.DEPRECATED_RESOURCES.items()
        if (old in requests or old in limits)
        and name in present
        and name not in limits
        and not name.startswith(_OVERCOMMITTED)
    }
    parts = {"requests": present, "limits": {**most, **equal}}
    return {**written, **{part: amounts for part, amounts in parts.items() if amounts}}


def _section(written: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    found = written.get(part)
    return found if isinstance(found, Mapping) else _NONE
