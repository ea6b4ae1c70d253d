"""ElasticQuotas of all three groups, watched side by side and passed on to plug-ins.

What changes with every pod, such as the status, is left out: only what people write is a change.
"""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from api import resources
from api.koordinator import quota
from api.wire import base
from extender.state import deltas, ledger
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

Quotas = store.Store[quota.Quota]


def add(members: informer_set.InformerSet) -> tuple[Quotas, ...]:
    """Add the three groups; one whose CRD is not installed holds nothing."""
    return tuple(_add(members, resource) for resource in resources.QUOTA_RESOURCES)


def _add(members: informer_set.InformerSet, resource: resources.Resource) -> Quotas:
    reader = Reader()
    found = members.add(reflector.Projection(resource, dict, reader.read))
    reader.known = found
    return found


class Reader:
    """Reads quotas; an edit that cannot be read leaves the last one in force."""

    def __init__(self) -> None:
        self.known: Quotas = store.Store()

    def read(self, raw: dict[str, Any]) -> quota.Quota:
        """Return what people wrote; raises where nothing readable was known of the object."""
        try:
            found = quota.review_written(raw).value
        except (base.ReadError, *store.UNREADABLE) as error:
            return self._last(raw, error)
        return msgspec.structs.replace(found, used={}, resource_version="")

    def _last(self, raw: dict[str, Any], error: Exception) -> quota.Quota:
        metadata = raw["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        last = self.known.get(key)
        if last is None or last.uid != metadata.get("uid"):
            raise error
        logger.warning(
            "quota cannot be read and stays as it was key=%s error=%s", key, str(error)[:200]
        )
        return last


def connect(watched: Sequence[Quotas], books: ledger.Ledger) -> None:
    """Tell the cluster state of every quota."""

    def tell(change: store.Change[quota.Quota]) -> None:
        some = change.new or change.old
        if some is not None:
            key = some.identity
            books.cluster.apply(
                deltas.ObjectDelta(deltas.ELASTIC_QUOTA, key, change.old, change.new)
            )

    for one in watched:
        one.listen(tell)
