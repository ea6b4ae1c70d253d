"""PodGroups of scheduling.sigs.k8s.io and of Kubernetes itself, passed on as objects for plug-ins.

A cluster that does not serve ``scheduling.k8s.io`` has none of the second sort. Where two versions
of it are served both show the same objects, and the newer one counts.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from api import resources
from api.wire import base
from domain.gangs import pod_groups
from extender.state import deltas, ledger
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

PodGroups = store.Store[pod_groups.PodGroup]


def add(members: informer_set.InformerSet) -> tuple[PodGroups, ...]:
    """Watch PodGroups, those of Kubernetes itself last and the newest version of these first."""
    return (
        _add(members, resources.POD_GROUPS, pod_groups.read, optional=False),
        *(
            _add(members, resource, pod_groups.read_native, optional=True)
            for resource in resources.NATIVE_POD_GROUPS
        ),
    )


def _add(
    members: informer_set.InformerSet,
    resource: resources.Resource,
    read: Callable[[dict[str, Any]], pod_groups.PodGroup],
    *,
    optional: bool,
) -> PodGroups:
    reader = Reader(read)
    found = members.add(reflector.Projection(resource, dict, reader.read, optional=optional))
    reader.known = found
    return found


class Reader:
    """Reads PodGroups; an edit that cannot be read leaves the last one in force."""

    def __init__(self, read: Callable[[dict[str, Any]], pod_groups.PodGroup]) -> None:
        self.known: PodGroups = store.Store()
        self._read = read

    def read(self, raw: dict[str, Any]) -> pod_groups.PodGroup:
        """Return what a PodGroup says; raises where nothing readable was known of the object."""
        try:
            return self._read(raw)
        except (base.ReadError, *store.UNREADABLE) as error:
            metadata = raw["metadata"]
            key = f"{metadata.get('namespace', '')}/{metadata['name']}"
            last = self.known.get(key)
            if last is None or last.uid != metadata.get("uid"):
                raise
            logger.warning(
                "PodGroup cannot be read and stays as it was key=%s error=%s",
                *(key, str(error)[:200]),
            )
            return last


def connect(watched: Sequence[PodGroups], books: ledger.Ledger) -> None:
    """Tell the cluster state of every PodGroup; of one object in two stores the first counts."""
    told: dict[str, pod_groups.PodGroup] = {}

    def tell(change: store.Change[pod_groups.PodGroup]) -> None:
        some = change.new or change.old
        if some is None:
            return
        key = some.gang_id
        alike = watched[1:] if some.is_native else watched[:1]
        shown = (one.get(change.key) for one in alike)
        before, after = told.get(key), next((one for one in shown if one is not None), None)
        if before == after:
            return
        if after is None:
            del told[key]
        else:
            told[key] = after
        books.cluster.apply(deltas.ObjectDelta(deltas.POD_GROUP, key, before, after))

    for one in watched:
        one.listen(tell)
