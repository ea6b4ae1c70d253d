"""Fills stores from objects that were saved, as a list brings them; no API server is asked."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from kube.client import errors, wire
from kube.informers import informer_set, reflector

Objects = Callable[[reflector.Projection[Any]], Iterable[Mapping[str, Any]]]
"""What was saved of one selection."""
_VERSION = 1


def fill(members: informer_set.InformerSet, saved: Objects) -> list[str]:
    """Put all objects into the stores; return why some could not be read."""
    return [flaw for member in members.members for flaw in _fill(member, saved)]


def _fill(member: reflector.Reflector[Any], saved: Objects) -> Iterable[str]:
    projection, store = member.projection, member.store
    reader: wire.Reader[Any] = wire.Reader(projection.type, projection.project)
    for raw in saved(projection):
        try:
            found = reader.event(orjson.dumps({"type": "ADDED", "object": raw}))
        except errors.Malformed as error:
            yield f"{projection.resource.plural}: {error}"
            continue
        if isinstance(found, wire.Event):
            if found.item.flaw:
                yield f"{projection.resource.plural} {found.item.meta.key}: {found.item.flaw}"
            store.accept(found.item.meta, found.item.value)
    store.finished(_VERSION)
