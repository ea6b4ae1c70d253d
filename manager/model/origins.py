"""Where pods come from: their labels, their owner and the names of their containers. Pure.

Pods of one template say the same, so they share what is kept of it.
"""

import functools
from typing import Final, NamedTuple

import msgspec

from api.kubernetes import core

_MOST_SHARED: Final = 65_536
_LONGEST_SHARED: Final = 2048
"""Characters of what pods of a template have in common; longer ones are kept with each pod alone,
so that what was written once is not remembered for ever."""


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
    labels = tuple(sorted(pod.metadata.labels.items()))
    size = sum(map(len, names)) + sum(len(key) + len(value) for key, value in labels)
    make = _shared if size <= _LONGEST_SHARED else _shared.__wrapped__
    return make(labels, owner(pod.metadata), names)


def owner(metadata: core.ObjectMeta) -> Owner | None:
    """Return the controller that an object names."""
    found = metadata.controller
    return None if found is None else Owner(found.api_version, found.kind, found.name)


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared(
    labels: tuple[tuple[str, str], ...], by: Owner | None, containers: tuple[str, ...]
) -> Origin:
    return Origin(dict(labels), by, containers)
