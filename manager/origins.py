"""Where pods come from: their labels, their owner and the names of their containers. Pure.

Pods of one template say the same, so they share what is kept of it.
"""

import functools
from typing import Final, NamedTuple

import msgspec

from api import core

_MOST_SHARED: Final = 65_536


class Owner(NamedTuple):
    """The controller of an object."""

    api_version: str
    kind: str
    name: str


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What the pods of one template have in common."""

    labels: dict[str, str]
    owner: Owner | None
    containers: tuple[str, ...]


def of(pod: core.Pod) -> Origin:
    """Return where a pod comes from."""
    names = tuple(container.name for container in pod.spec.containers)
    return _shared(tuple(sorted(pod.metadata.labels.items())), owner(pod.metadata), names)


def owner(metadata: core.ObjectMeta) -> Owner | None:
    """Return the controller that an object names."""
    found = metadata.controller
    return None if found is None else Owner(found.api_version, found.kind, found.name)


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(
    labels: tuple[tuple[str, str], ...], by: Owner | None, containers: tuple[str, ...]
) -> Origin:
    return Origin(dict(labels), by, containers)
