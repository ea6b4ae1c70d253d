"""The places that are kept for gangs while pods leave: claims in the ledger, and the record."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from api import names, resources
from extender.framework.eviction import victims
from extender.gangs.planning import planner
from extender.gangs.preemption import candidates, record, search
from extender.state import claims, cluster_state, ledger, records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks

_TRIES: Final = 4
_PAUSE: Final = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Underway:
    """A gang group for which pods are leaving."""

    record: record.Record
    lead: records.PodRecord
    """The member that carries the record."""
    since: float
    """On the wall clock: when this process began it, or read of it."""
    own: bool
    """Whether this process planned it; else it was read from a member."""
    evicted: frozenset[str] = frozenset()
    """Uids of the pods whose eviction the API server has accepted."""
    settled: bool = False
    """Whether the gang is to be planned now: its victims have left, or some were never evicted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """Keeps and releases places, and writes the record."""

    books: ledger.Ledger
    client: clients.Client
    pods: store.Store[records.PodRecord]
    clock: clocks.Clock

    # -- claims ----------------------------------------------------------------------------

    def keep(
        self,
        one: Underway,
        members: Iterable[planner.Member],
        plan: Sequence[planner.Placement] = (),
    ) -> None:
        """Keep every place of a record for the members that are still without a node."""
        granted = {each.pod.uid: each.granted for each in plan}
        for pod in (member.pod for member in members):
            node = one.record.places.get(pod.uid)
            if node is not None:
                self.books.nominate(
                    pod,
                    node,
                    evidence=victims.EVIDENCE,
                    expires_at=one.record.until,
                    granted=granted.get(pod.uid, {}),
                )

    def release(self, uids: Iterable[str]) -> None:
        """Keep nothing for these members any longer."""
        for uid in uids:
            claim = self.books.nominations.get(uid)
            if claim is not None and claim.evidence == victims.EVIDENCE:
                self.books.withdraw(uid)

    def unchanged(self, found: search.Victims, seen: cluster_state.ClusterState) -> bool:
        """Whether victims and planned nodes hold what they held when the search began."""
        nodes = found.nodes | {claim.node for claim in found.found.victims}
        return all(_held(self.books.cluster, node) == _held(seen, node) for node in nodes)

    # -- the record ------------------------------------------------------------------------

    async def note(self, one: Underway) -> str:
        """Write the record on its member; an empty answer is success.

        Of two extenders that preempt for one gang at once one succeeds: what is written holds for
        the member as the watch showed it, unless only something else of it has changed.
        """
        text, pod = record.encode(one.record), one.lead
        before, said = noted(pod), ""
        for _ in range(_TRIES):
            present = self.pods.get(pod.key)
            if present is None or present.uid != pod.uid or present.node:
                return "the member that would carry the record is gone"
            if noted(present) != before:
                return "another extender preempts for this gang"
            version = str(self.pods.version_of(pod.key))
            said, is_conflict = await self._annotate(pod, text, version)
            if not is_conflict:
                return said
            await self.clock.sleep(_PAUSE)
        return said

    async def clear(self, one: Underway) -> None:
        """Take the record off its member, if it is still that one."""
        present = self.pods.get(one.lead.key)
        if present is not None and present.uid == one.lead.uid:
            await self._annotate(present, None, "")

    async def _annotate(
        self, pod: records.PodRecord, text: str | None, version: str
    ) -> tuple[str, bool]:
        metadata: dict[str, object] = {
            "uid": pod.uid, "annotations": {names.ANNOTATION_PREEMPTION: text}
        }  # fmt: skip
        if version:
            metadata["resourceVersion"] = version
        try:
            await self.client.patch(
                resources.PODS, pod.name, {"metadata": metadata}, namespace=pod.namespace
            )
        except errors.KubeError as error:
            return str(error) or type(error).__name__, isinstance(error, errors.Conflict)
        return "", False


def _held(cluster: cluster_state.ClusterState, node: str) -> dict[str, claims.Claim]:
    return {claim.id: claim for claim in cluster.claims_on(node)}


def noted(pod: records.PodRecord) -> str:
    """Return what is noted on a member of a preemption for its gang."""
    return pod.gang.preempting if pod.gang is not None else ""


def made(
    found: search.Victims, group: str, ident: str, now: float, hold_seconds: float
) -> record.Record:
    """Return the record of a preemption."""
    leave = [now + claim.pod.requirements.grace_seconds for claim in found.found.victims]
    leave += [
        max(claim.pod.leaves_at, now + claim.pod.requirements.grace_seconds)
        for claim in found.found.leaving
    ]
    uids = tuple(claim.pod.uid for claim in (*found.found.victims, *found.found.leaving))
    return record.Record(
        id=ident,
        group=group,
        places={one.pod.uid: one.node for one in found.placements},
        victims=uids[: candidates.MOST_VICTIMS],
        at=now,
        until=max(now, *leave) + hold_seconds,
    )
