"""The controllers of pods: how many pods each should have, and whether it rolls out a revision."""

import functools
from collections.abc import Callable, Mapping

from api import resources
from descheduler.model import object_projection, objects
from kube.informers import informer_set, reflector, store

Read = Callable[[object_projection.Controller], objects.Workload | None]


class Workloads:
    """Stores of all kinds of controllers; Jobs are left out, since their pods do not move.

    Pods whose controller is not known stay where they are, so no round waits for `more`.
    """

    def __init__(self, members: informer_set.InformerSet, more: informer_set.InformerSet) -> None:
        self._stores = (
            *(members.add(_projection(kind)) for kind in object_projection.KINDS),
            *(more.add(_projection(kind)) for kind in object_projection.MORE_KINDS),
        )
        self._known: Mapping[str, objects.Workload] | None = None
        for one in self._stores:
            one.listen(self._changed)

    def by_uid(self) -> Mapping[str, objects.Workload]:
        """Return all workloads as they are now; what is returned does not change."""
        if self._known is None:
            listed = (workload for one in self._stores for workload in one)
            self._known = object_projection.resolved(listed)
        return self._known

    def _changed(self, _change: store.Change[objects.Workload]) -> None:
        self._known = None


def _projection(kind: resources.Resource) -> reflector.Projection[objects.Workload]:
    read: Read = functools.partial(object_projection.workload, kind.kind)
    if kind is resources.REPLICA_SETS:
        read = object_projection.replica_set
    return reflector.Projection(
        kind, object_projection.Controller, read, optional=kind in object_projection.MORE_KINDS
    )
