"""Which victims a disruption budget keeps once others have left: a dry run of each cannot tell."""

import collections
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api import resources
from api.wire import base
from domain.pods import disruption_budgets
from domain.quota import reclaim
from kube.client import client as clients
from kube.informers import store


class _Pod(NamedTuple):
    namespace: str
    name: str
    labels: Mapping[str, str]


class _Victim(NamedTuple):
    id: str
    pod: _Pod


class Disruptions:
    """Counts evictions against budgets as they are watched.

    Labels are read where a budget may not let all victims go: nothing else of quotas needs them,
    and those of all pods would fill the memory of every replica.
    """

    def __init__(
        self, watched: store.Store[disruption_budgets.Budget], reader: clients.Client
    ) -> None:
        self._watched = watched
        self._reader = reader

    async def kept(self, victims: Sequence[reclaim.Holder]) -> frozenset[str]:
        """Return the uids of pods whose budgets would refuse them after those before them."""
        evictions = collections.Counter(map(_namespace, victims))
        known = (one for one in self._watched.values() if one.namespace in evictions)
        budgets = disruption_budgets.Budgets(known)
        read = [
            await self._read(victim)
            for victim in victims
            if budgets.may_be_exhausted(_namespace(victim), evictions[_namespace(victim)])
        ]
        return budgets.exhausted_by(read)

    async def _read(self, victim: reclaim.Holder) -> _Victim:
        """Return a victim with its labels; one that is gone has none."""
        namespace, _, name = victim.key.partition("/")
        # By a list: permission to get pods would serve nothing else.
        found = await self._reader.list(resources.PODS, namespace, fields=f"metadata.name={name}")
        labels: Mapping[str, str] = {}
        for raw in found.items:
            metadata = base.section(raw, "metadata")
            if metadata.get("uid") == victim.uid:
                labels = base.section(metadata, "labels")
        return _Victim(victim.uid, _Pod(namespace, name, labels))


def _namespace(victim: reclaim.Holder) -> str:
    return victim.key.partition("/")[0]
