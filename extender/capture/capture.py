"""Places a Reservation where kube-scheduler wants to bind its stand-in, and binds nothing.

The capacity is counted for the Reservation before its status is written, and stays counted until
the watch shows it, the write is refused, or a later write has proven that it never comes.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from api import names, resources
from api.koordinator import scheduling
from extender.capture import access, plan, running_pods
from extender.state import claims, ledger, records
from extender.state.reservations import reservation_claims
from extender.verbs import bind_window, pod_truth, reserving
from kube.client import client as clients
from kube.client import errors, wire
from kube.controllers import recorder
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

CAPTURED: Final = "captured"
"""How the answer of a bind call begins that has placed a Reservation."""
SWEEP_SECONDS: Final = 1.0
_ECHO_SECONDS: Final = 60.0
"""How long a Reservation is counted that was placed and that the watch does not show."""
_TRIES: Final = 3
_KIND: Final = resources.RESERVATIONS
_UNKNOWN: Final = (errors.Unreachable, errors.ServerFailure, errors.Malformed)
"""Errors after which a write may have happened."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """The dependencies of Captures."""

    books: ledger.Ledger
    reserving: reserving.Reserving
    client: clients.Client
    projector: records.Projector
    clock: clocks.Clock
    new_id: Callable[[], str]
    read_seconds: float
    reserved: store.Store[claims.Claim]
    """Reservations, as the watch shows them."""
    events: recorder.EventRecorder | None = None


class _Changed(Exception):  # noqa: N818 - no error: it is read anew
    """The Reservation was written by others since it was read."""


class Captures:
    """Captures stand-ins, each Reservation once at a time."""

    def __init__(
        self, parts: Parts, bucket: token_bucket.ClockedBucket, registry: metrics.Registry
    ) -> None:
        self._parts = parts
        self._access = access.Access(parts.client, parts.clock, parts.read_seconds)
        self._bucket = bucket
        self._busy: set[str] = set()
        """Reservations that are being placed, by uid."""
        self._uncertain: dict[str, plan.Capture] = {}
        """Those whose status was sent and not answered, by uid."""
        self._unshown: dict[str, tuple[str, int]] = {}
        """Name and resource version of those that were placed, by uid, until the watch has told
        what has become of them."""
        self._count = registry.counter(
            "koord_captures_total",
            "Bind calls for stand-ins that placed a Reservation; kube-scheduler counts each of "
            "them as an error.",
        )

    @staticmethod
    def concerns(pod: records.PodRecord) -> bool:
        """Whether a pod stands in for a Reservation."""
        return names.LABEL_STAND_IN in pod.labels

    async def capture(
        self, truth: pod_truth.Truth, node: str, window: Callable[[], bind_window.Window]
    ) -> str:
        """Place the Reservation of a stand-in; the answer is never empty: no pod was bound."""
        pod = truth.pod
        assert pod is not None
        wanted = await self._access.target(pod)
        if isinstance(wanted, str):
            return wanted
        if wanted.uid in self._busy:
            return f"Reservation {wanted.name} is being placed at this moment"
        self._busy.add(wanted.uid)
        try:
            if wanted.uid in self._uncertain:
                unknown = await self._settle(self._uncertain[wanted.uid])
                if unknown:
                    return unknown
            await self._bucket.wait()
            return await self._captured(truth, wanted, node, window)
        finally:
            self._busy.discard(wanted.uid)

    async def _captured(
        self,
        truth: pod_truth.Truth,
        wanted: plan.Target,
        node: str,
        window: Callable[[], bind_window.Window],
    ) -> str:
        assert truth.pod is not None
        for _ in range(_TRIES):
            try:
                raw = await self._access.get(_KIND, wanted.name)
            except errors.KubeError as error:
                return f"Reservation {wanted.name} could not be read: {error}"
            useless = plan.refusal(raw, wanted)
            if useless or raw is None:
                await self._access.remove(truth.pod)
                return f"no pod was bound: {useless}; its stand-in was removed"
            held = self._reserve(truth, raw, node, wanted.over)
            if isinstance(held, str):
                return held
            try:
                return await self._write(held, truth.pod, window())
            except _Changed:
                continue
        return f"Reservation {wanted.name} changes too often; it was not placed"

    def _reserve(
        self, truth: pod_truth.Truth, raw: Mapping[str, Any], node: str, over: Sequence[str]
    ) -> plan.Capture | str:
        """Count the Reservation on the node, with what plug-ins allocate to it; no await."""
        parts = self._parts
        assert truth.pod is not None
        if claims.reservation(plan.uid(raw)) in parts.books.cluster.all_claims():
            return f"Reservation {plan.written_name(raw)} holds a node already"
        running = running_pods.found(parts.books.cluster, over, node)
        if isinstance(running, str):
            return running
        reserved = parts.reserving.reserve(truth, node)
        if isinstance(reserved, str):
            return reserved
        # What plug-ins granted goes over to the Reservation in this step.
        parts.books.forget(truth.pod.uid)
        granted = dict(reserved.annotations)
        for key in (names.PLACEMENT, names.ANNOTATION_RESERVATION_ALLOCATED):
            granted.pop(key, None)
        held = plan.planned(raw, node, granted, parts.new_id(), parts.clock.now(), running)
        if isinstance(held, str):
            return held
        claim = self._claim(held.placed)
        if claim is None:
            return f"Reservation {held.target.name} holds nothing"
        if running:
            asked = dict(truth.pod.requirements.requests)
            short = plan.shortfall(dict(claim.pod.requirements.requests), running, asked)
            if short:
                return f"{running_pods.CHANGED}: they hold less {short} by now"
        parts.books.reservations.assume(claim)
        return held

    def _claim(self, placed: Mapping[str, Any]) -> claims.Claim | None:
        written = scheduling.read_reservation(placed)
        return reservation_claims.claim(written, self._parts.projector)

    # -- writes ----------------------------------------------------------------------------

    async def _write(
        self, held: plan.Capture, pod: records.PodRecord, window: bind_window.Window
    ) -> str:
        """Write annotations, then the status; raises `_Changed` where others have written."""
        name = held.target.name
        api = self._parts.client.fenced(window)
        try:
            noted = await api.patch(_KIND, name, held.first())
        except errors.Conflict as error:
            self._release(held)
            raise _Changed from error
        except errors.KubeError as error:
            # Annotations place nothing: whatever became of them, the next attempt replaces them.
            self._release(held)
            return f"Reservation {name} was not placed: {error}"
        except BaseException:
            self._release(held)
            raise
        self._uncertain[held.target.uid] = held
        try:
            raw = await api.patch(
                _KIND, name, held.second(plan.version(noted)), subresource="status"
            )
        except errors.Conflict as error:
            self._release(held)
            raise _Changed from error
        except errors.NotSent as error:
            self._release(held)
            return f"Reservation {name} was not placed: {error}"
        except _UNKNOWN as error:
            answer = await self._settle(held)
            return answer or await self._concluded(held, pod, str(error))
        except errors.KubeError as error:
            self._release(held)
            return f"Reservation {name} was not placed: {error}"
        self._placed(held, raw)
        return await self._finish(held, pod)

    def _release(self, held: plan.Capture) -> None:
        self._uncertain.pop(held.target.uid, None)
        self._parts.books.reservations.forget(claims.reservation(held.target.uid))

    def _placed(self, held: plan.Capture, raw: Mapping[str, Any]) -> None:
        """Count the Reservation as the API server has it, until the watch shows it."""
        self._uncertain.pop(held.target.uid, None)
        ident = claims.reservation(held.target.uid)
        try:
            claim = self._claim(raw)
        except store.UNREADABLE:
            # It was changed meanwhile so that nobody can read it: it keeps what it was given.
            claim = self._claim(held.placed)
        if claim is None:
            # It has ended meanwhile.
            self._parts.books.reservations.forget(ident)
        else:
            expires_at = self._parts.clock.now() + _ECHO_SECONDS
            self._parts.books.reservations.placed(claim, expires_at)
            self._unshown[held.target.uid] = held.target.name, wire.number(plan.version(raw))
            self._compare(held.target.uid)
        self._count.inc()
        if self._parts.events is not None:
            regarding = recorder.Regarding(
                _KIND.api_version, _KIND.kind, held.target.name, "", held.target.uid
            )
            note = f"placed on node {held.node}"
            self._parts.events.event(regarding, "Normal", "Scheduled", note, "Binding")

    async def _finish(self, held: plan.Capture, pod: records.PodRecord) -> str:
        await self._access.remove(pod)
        return (
            f"{CAPTURED}: Reservation {held.target.name} now holds node {held.node} and its "
            "stand-in pod was removed; this is how Reservations are placed, no failure"
        )

    # -- outcomes that are not known -------------------------------------------------------

    async def _settle(self, held: plan.Capture) -> str:
        """Find out what became of a status that was never answered; make a late one fail.

        Returns why that is not known, empty where it is.
        """
        wanted = held.target
        try:
            raw = await self._access.fenced(wanted, self._parts.new_id())
        except errors.KubeError as error:
            return (
                f"whether Reservation {wanted.name} was placed on {held.node} is not known: {error}"
            )
        # Where it is gone, or another one has its name, nothing can place it any more.
        if raw is not None and plan.node(raw) == held.node:
            self._placed(held, raw)
        else:
            self._release(held)
        return ""

    async def _concluded(self, held: plan.Capture, pod: records.PodRecord, error: str) -> str:
        """Return the answer once it is known what became of a write."""
        claim = self._parts.books.cluster.claim(claims.reservation(held.target.uid))
        if claim is not None and claim.node == held.node:
            return await self._finish(held, pod)
        return f"Reservation {held.target.name} was not placed: {error}"

    def _compare(self, uid: str) -> None:
        """Release a Reservation that has ended or is gone before the watch was seen to show it.

        The answer of a write may come later than what the watch says of the end of the object.
        """
        name, version = self._unshown[uid]
        if self._parts.reserved.known_to(name) >= version:
            del self._unshown[uid]
            self._parts.books.reservations.forget(claims.reservation(uid))

    async def sweep(self) -> None:
        """Resolve uncertain writes, which were never answered; runs forever."""
        while True:
            await self._parts.clock.sleep(SWEEP_SECONDS)
            await self.sweep_once()

    async def sweep_once(self) -> None:
        """Place or release every Reservation whose write was never answered.

        Those that were placed and are gone by now are released too.
        """
        for uid in tuple(self._unshown):
            self._compare(uid)
        for uid, held in tuple(self._uncertain.items()):
            if uid in self._busy or self._uncertain.get(uid) is not held:
                continue
            self._busy.add(uid)
            try:
                unknown = await self._settle(held)
            finally:
                self._busy.discard(uid)
            if unknown:
                logger.warning("%s", unknown)
