"""Reports allocations that overlap, and evicts the pod that was bound later.

Every extender of the cluster finds the same overlap. What the watch says is read again from the
API server first, and the eviction holds for the pod as it was read only: of several extenders one
succeeds, and the others find a pod that is leaving.
"""

import logging
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from api import resources
from api.kubernetes import core
from domain import wording
from extender.overlap import detector, used_up
from extender.settings import OverlapSettings
from extender.state import allocations, claims, cluster_state, records
from extender.state.reservations import reservation_claims
from kube.client import client as clients
from kube.client import errors
from kube.controllers import controller, recorder, workqueue
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise, token_bucket

logger = logging.getLogger(__name__)

_AGAIN_SECONDS: Final = 30.0
"""After how long a node is looked at again on which an overlap was left."""
_CHANGED_SECONDS: Final = 1.0
"""The same, where a pod changed between being read and being evicted."""
_MOST_COUNTED: Final = 4096
_OF_RESERVATIONS: Final = frozenset({reservation_claims.NAME})
"""What says which Reservation a pod uses: it conflicts with no other such allocation."""


class Parts(NamedTuple):
    """What the controller works on."""

    client: clients.Client
    clock: clocks.Clock
    cluster: cluster_state.ClusterState
    codecs: Collection[allocations.AllocationCodec]
    projector: records.Projector
    events: recorder.EventRecorder
    switches: switches.Switches


class OverlapController:
    """Reconciles nodes: afterwards nothing on them is allocated twice, or people know why."""

    def __init__(self, parts: Parts, settings: OverlapSettings, registry: metrics.Registry) -> None:
        self._parts = parts
        self._settings = settings
        self._queue = workqueue.Queue(parts.clock, first_pause_seconds=1.0)
        self._worker = controller.Controller(
            "overlap", self.reconcile, self._queue, parts.clock, registry=registry
        )
        self._bucket = token_bucket.Bucket(
            settings.per_second, settings.burst, parts.clock.monotonic()
        )
        self._counted: dict[tuple[str, str, str], None] = {}
        self._used_up = used_up.UsedUp(parts.client, parts.projector)
        self._found = registry.counter(
            "koord_extender_overlaps_total",
            "Pairs of bound pods to which the same thing is allocated, by plug-in.",
            ("plugin",),
        )
        self._evictions = registry.counter(
            "koord_extender_overlap_evictions_total",
            "Evictions because of overlapping allocations, by what became of them.",
            ("result",),
        )

    def follow(
        self, pods: store.Store[records.PodRecord], reserved: store.Store[claims.Claim]
    ) -> None:
        """Look at every pod that the watch shows bound; the state has to know it by then."""
        if self._parts.codecs:
            pods.listen(self._look)
            reserved.listen(self._remember)

    def _remember(self, change: store.Change[claims.Claim]) -> None:
        """Look at what a Reservation keeps, and keep one in mind that is used up."""
        if change.new is None:
            if change.old is not None:
                self._used_up.remember(change.old)
            return
        claim = self._parts.cluster.claim(change.new.id)
        if claim is None:
            return
        held = detector.holders(self._parts.cluster.claims_on(claim.node))
        mine = next((one for one in held if one.id == claim.id), None)
        if mine is not None and detector.conflict_with_any(mine, held, self._parts.codecs):
            self._queue.add(claim.node)

    def _claims(self, node: str, reservation: str = "") -> tuple[claims.Claim, ...]:
        """Return the claims on a node, and the Reservations that pods there have used up.

        With the id of a Reservation: that alone, and the pods that use it.
        """
        live = self._parts.cluster.claims_on(node)
        if reservation:
            live = tuple([one for one in live if reservation in (one.id, one.consumes)])
        gone = self._used_up.of(live)
        if not gone:
            return live
        known = {one.id for one in live}
        return (*live, *[one for one in gone if one.id not in known])

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to work, where any plug-in allocates something."""
        if self._parts.codecs:
            self._worker.start(supervisor)

    def _look(self, change: store.Change[records.PodRecord]) -> None:
        """Queue the node of a pod that holds what another one holds."""
        new, parts = change.new, self._parts
        if new is None or not new.node or not new.allocations:
            return
        claim = parts.cluster.claim(new.uid)
        if claim is None:
            return
        overlap = None
        if not claim.allocations.keys() <= _OF_RESERVATIONS:
            held = detector.holders(self._claims(new.node))
            overlap = detector.conflict_with_any(claim, held, parts.codecs)
        if overlap is not None or (claim.consumes and self._is_overused(new.node, claim.consumes)):
            self._queue.add(new.node)

    def _is_overused(self, node: str, reservation: str) -> bool:
        """Whether pods use a Reservation beyond what it may give, as far as is known."""
        held = self._claims(node, reservation)
        return bool(detector.overused(held) or self._used_up.unknown(held))

    async def reconcile(self, node: str) -> controller.Outcome:
        """Look at one node."""
        parts = self._parts
        await self._used_up.read(parts.cluster.claims_on(node))
        found = detector.overlaps(self._claims(node), parts.codecs)
        if not found or not parts.switches.asks:
            return controller.Outcome("no allocations overlap", changed=False)
        waits: list[float] = []
        for overlap in found:
            self._count(overlap)
            waits.append(await self._resolve(overlap))
        told = wording.count(len(found), "allocation overlaps", "allocations overlap")
        return controller.Outcome(told, min(waits))

    async def _resolve(self, overlap: detector.Overlap) -> float:
        """Do what can be done about an overlap; return when to look again."""
        parts = self._parts
        if not (self._settings.evict and parts.switches.enforces):
            self._tell(overlap, "it is left in place")
            return _AGAIN_SECONDS
        confirmed = await self._confirmed(overlap)
        if confirmed is None:
            return _AGAIN_SECONDS
        overlap, version = confirmed
        if not self._bucket.take(parts.clock.monotonic()):
            return 1.0 / self._settings.per_second
        later = overlap.later.pod
        try:
            await parts.client.evict(
                later.namespace, later.name, uid=later.uid, resource_version=version
            )
        except (errors.NotFound, errors.Conflict):
            # It changed or left since it was read, perhaps by another extender's eviction.
            self._evictions.labels("changed").inc()
            return _CHANGED_SECONDS
        except (errors.TooManyRequests, errors.Forbidden) as error:
            self._evictions.labels("refused").inc()
            self._tell(overlap, f"its eviction was refused: {error}")
            return _AGAIN_SECONDS
        self._evictions.labels("evicted").inc()
        self._tell(overlap, "it was evicted")
        return _AGAIN_SECONDS

    async def _confirmed(self, seen: detector.Overlap) -> tuple[detector.Overlap, str] | None:
        """Return an overlap as the API server shows it, with the version of the later pod.

        None: there is none any more, or the later pod is leaving. The order is that of the objects:
        the state gives a pod that does not say when it was bound the moment at which this process
        first saw it, which is another moment for every extender.
        """
        present: list[claims.Claim] = []
        beside: list[claims.Claim] = []
        versions: dict[str, str] = {}
        for claim in (*seen.others, seen.kept, seen.later):
            if claim.kind is claims.ClaimKind.RESERVATION:
                beside += await self._reserved(claim)
                continue
            found = await self._read(claim)
            if found is None:
                continue
            granted, pod = found
            present.append(granted)
            if pod.metadata.deletion_timestamp is None:
                versions[granted.id] = pod.metadata.resource_version
        reserved = [one for one in self._claims(seen.later.node) if one.id == seen.later.consumes]
        # As they were read just now, where they were.
        once = {one.id: one for one in (*reserved, *beside, *present)}
        again = detector.overlaps(once.values(), self._parts.codecs)
        if not again or again[0].later.id not in versions:
            return None
        return again[0], versions[again[0].later.id]

    async def _reserved(self, seen: claims.Claim) -> list[claims.Claim]:
        """Read a Reservation; return it, if it still keeps something, and all who use it."""
        parts = self._parts
        offered = reservation_claims.offered(seen)
        raw = await used_up.present(parts.client, offered.name) if offered is not None else None
        found = used_up.as_claim(raw, parts.projector) if raw is not None else None
        if found is None or (found.id, found.node) != (seen.id, seen.node):
            return []
        users = [one for one in parts.cluster.claims_on(seen.node) if one.consumes == seen.id]
        return [found, *users]

    async def _read(self, claim: claims.Claim) -> tuple[claims.Claim, core.Pod] | None:
        """Read the pod of a claim; None if it is gone, another one or elsewhere."""
        name, namespace = claim.pod.name, claim.pod.namespace
        try:
            pod = msgspec.convert(
                await self._parts.client.get(resources.PODS, name, namespace), core.Pod
            )
        except errors.NotFound:
            return None
        record = self._parts.projector.pod(pod)
        if record is None or (record.uid, record.node) != (claim.pod.uid, claim.node):
            return None
        granted = record.allocations
        again = msgspec.structs.replace(
            claim, pod=record, allocations=granted, consumes=allocations.consumed(granted)
        )
        return again, pod

    def _count(self, overlap: detector.Overlap) -> None:
        """Count an overlap once, however often it is found."""
        pair = (overlap.plugin, overlap.kept.id, overlap.later.id)
        if pair in self._counted:
            return
        if len(self._counted) >= _MOST_COUNTED:
            del self._counted[next(iter(self._counted))]
        self._counted[pair] = None
        self._found.labels(overlap.plugin).inc()
        note = "allocations overlap plugin=%s node=%s kept=%s later=%s"
        kept, later = overlap.kept, overlap.later
        logger.error(note, overlap.plugin, later.node, kept.pod.key, later.pod.key)

    def _tell(self, overlap: detector.Overlap, what: str) -> None:
        """Put it where describing the pod and the node shows it."""
        later, kept = overlap.later.pod, overlap.kept.pod.key
        offered = reservation_claims.offered(overlap.kept)
        if offered is not None:
            kept = f"Reservation {offered.name}"
        note = (
            f"what {overlap.plugin} allocated to {later.key} was allocated to {kept}, "
            f"which was bound earlier; {what}"
        )
        pod = recorder.Regarding("v1", "Pod", later.name, later.namespace, later.uid)
        for about in (pod, recorder.Regarding("v1", "Node", overlap.later.node)):
            self._parts.events.event(about, "Warning", "AllocationsOverlap", note, "Evict")
