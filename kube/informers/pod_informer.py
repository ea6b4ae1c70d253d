"""Informers of the pods of a cluster watch in protobuf, where the API server speaks that.

A pod event that is watched in JSON costs the API server an encoding of the whole pod; one in
protobuf is shared with kube-scheduler and kube-controller-manager. The agent, which watches the
pods of one node, watches in JSON and saves the memory of the library.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from api import resources
from api.kubernetes import protobuf_fields
from kube.client import protobuf
from kube.informers import informer_set, reflector, shared_store

T = TypeVar("T")

_EVENTS: Final = protobuf.Codec("Pod", protobuf_fields.POD)


def projection(
    kind: type[Any], project: Callable[[Any], T | None], *, fields: str = ""
) -> reflector.Projection[T]:
    """Keep what a process wants of pods; `kind` has no other fields than the schema names."""
    return reflector.Projection(resources.PODS, kind, project, fields, binary=_EVENTS)


def shared(members: informer_set.InformerSet, kind: type[T]) -> shared_store.SharedStore[T]:
    """Add a watch of all pods for everybody of a process who wants something of them."""
    found: shared_store.SharedStore[T] = shared_store.SharedStore()
    members.add(projection(kind, found.project), found)
    return found
