"""Bind is the transaction: check again, reserve, permit, write, confirm or undo.

Nothing that an earlier call found is trusted. What is reserved is counted before the write and
stays counted until the watch shows it, the write is refused, or the pod was read back.
"""

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import Callable

from api.kubernetes import extender as wire
from extender.capture import capture
from extender.framework import pipeline
from extender.settings import BindSettings
from extender.state import claims, ledger, records
from extender.verbs import (
    bind_window,
    outcomes,
    permit_waits,
    pod_truth,
    reserving,
    waiting_pods,
)
from kube.client import client as clients
from kube.client import errors
from kube.controllers import recorder
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

_FENCED = "a later attempt to bind the pod has begun; nothing was written"
_CHANGED = "pod changed while it was being bound; nothing was written"


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What binding works on."""

    books: ledger.Ledger
    plugins: pipeline.Pipeline
    client: clients.Client
    pods: store.Store[records.PodRecord]
    projector: records.Projector
    clock: clocks.Clock
    switches: switches.Switches
    events: recorder.EventRecorder | None = None
    """Where the placement of a Reservation is reported."""
    figures: metrics.Registry | None = None
    reserved: store.Store[claims.Claim] = dataclasses.field(default_factory=store.Store)
    """Reservations, as the watch shows them."""


class Binder:
    """Binds pods, each at most once at a time."""

    def __init__(
        self,
        parts: Parts,
        settings: BindSettings,
        *,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self._parts = parts
        self._settings = settings
        figures = parts.figures or metrics.Registry()
        self._new_id = new_id or _ids()
        self._access = pod_truth.PodAccess(
            parts.client, parts.projector, parts.clock, settings.read_seconds
        )
        self._reserving = reserving.Reserving(
            parts.books, parts.plugins, parts.switches, parts.clock, self._new_id
        )
        self.captures = capture.Captures(
            capture.Parts(
                parts.books,
                self._reserving,
                parts.client,
                parts.projector,
                parts.clock,
                self._new_id,
                settings.read_seconds,
                parts.reserved,
                parts.events,
            ),
            token_bucket.ClockedBucket(
                parts.clock, settings.captures_per_second, settings.captures_burst
            ),
            figures,
        )
        self.waiting = waiting_pods.WaitingPods(parts.clock, figures)
        self._running: dict[str, tuple[str, asyncio.Future[str]]] = {}
        self.outcomes = outcomes.Outcomes(
            outcomes.Parts(parts.books, parts.pods, self._access, parts.clock, self._new_id),
            self._running,
            settings.promise_seconds,
        )
        self._permitting = permit_waits.PermitWaits(
            parts.books, parts.clock, self._reserving, self.waiting, self.outcomes
        )

    async def bind(
        self, asked: wire.BindingArgs, connected: Callable[[], bool] = lambda: True
    ) -> str:
        """Bind a pod to a node; an empty answer is success, else the reason why not."""
        running = self._running.get(asked.pod_uid)
        if running is not None:
            node, done = running
            if node != asked.node:
                return f"pod is being bound to {node} at this moment"
            return await asyncio.shield(done)
        done = asyncio.get_running_loop().create_future()
        self._running[asked.pod_uid] = (asked.node, done)
        answer = "binding was interrupted"
        try:
            answer = await self._bind(asked, connected)
        finally:
            del self._running[asked.pod_uid]
            done.set_result(answer)
        return answer

    async def _bind(self, asked: wire.BindingArgs, connected: Callable[[], bool]) -> str:
        deadline = self._parts.clock.monotonic() + self._settings.deadline_seconds
        try:
            truth = await self.outcomes.find(asked)
        except errors.KubeError as error:
            return f"pod could not be read: {error}"
        if truth.pod is not None and not truth.pod.node and self.captures.concerns(truth.pod):
            return await self.captures.capture(truth, asked.node, self._window)
        window = self._window()
        fence = truth.fence
        while True:
            answer = outcomes.known(truth, asked.node)
            if answer is not None:
                return answer
            if truth.fence != fence:
                return _FENCED
            if not window.is_open():
                return _CHANGED
            reserved = self._reserving.reserve(truth, asked.node)
            if isinstance(reserved, str):
                return reserved
            attempt = permit_waits.Attempt(deadline, connected)
            if self._reserving.permits(reserved):
                outcome = await self._let_go(reserved, attempt)
            else:
                outcome = await self._sent(reserved, attempt, window)
            if isinstance(outcome, str):
                return outcome
            truth = outcome

    def _window(self) -> bind_window.Window:
        return bind_window.Window.opened(self._parts.clock, self._settings.start_seconds)

    async def _let_go(
        self, reserved: reserving.Reserved, attempt: permit_waits.Attempt
    ) -> str | pod_truth.Truth:
        """Wait for what plug-ins let the pod wait for, then write; its turn ends with that."""
        async with contextlib.AsyncExitStack() as turn:
            refusal = await self._permitting.waited(reserved, attempt, turn)
            if refusal is not None:
                return refusal
            return await self._sent(reserved, attempt, self._window())

    async def _sent(
        self,
        reserved: reserving.Reserved,
        attempt: permit_waits.Attempt,
        window: bind_window.Window,
    ) -> str | pod_truth.Truth:
        """Write what is reserved, unless nobody waits for the answer any more."""
        if attempt.is_over(self._parts.clock):
            self._parts.books.forget(reserved.pod.uid)
            return permit_waits.LEFT
        # Figures follow now: kube-scheduler waits for the next filter call, not for this.
        asyncio.get_running_loop().call_soon(self._parts.books.cluster.view)
        return await self._write(reserved, window)

    # -- write -----------------------------------------------------------------------------

    async def _write(
        self, bind: reserving.Reserved, window: bind_window.Window
    ) -> str | pod_truth.Truth:
        """Write; a pod that still waits but is not what was checked comes back as it is now."""
        books, pod = self._parts.books, bind.pod
        try:
            await self._parts.client.bind(
                pod.namespace,
                pod.name,
                uid=pod.uid,
                node=bind.node,
                annotations=dict(bind.annotations),
                version=bind.version,
                guard=window,
            )
        except errors.NotSent as error:
            books.forget(pod.uid)
            return f"{error}; nothing was written"
        except (errors.Unreachable, errors.ServerFailure, errors.Malformed) as error:
            books.mark_uncertain(pod.uid)
            return await self._settle(bind, error)
        except (errors.Conflict, errors.AlreadyExists) as error:
            return await self._contested(bind, error)
        except errors.NotFound:
            books.forget(pod.uid)
            return outcomes.GONE
        except errors.Deposed as error:
            books.forget(pod.uid)
            return f"{error}; nothing was written"
        except errors.KubeError as error:
            books.forget(pod.uid)
            return f"binding was refused: {error}"
        except BaseException:
            # Interrupted in the middle: the write may yet succeed.
            books.mark_uncertain(pod.uid)
            raise
        return ""

    async def _settle(self, bind: reserving.Reserved, error: errors.KubeError) -> str:
        """Find out what became of a write that ended without an answer."""
        assumed = self._parts.books.assumptions.get(bind.pod.uid)
        if assumed is None:
            # The watch has shown the pod on its node, or gone, meanwhile.
            return self.outcomes.shown(bind.pod.uid, bind.node)
        try:
            truth = await self.outcomes.settle(assumed)
        except errors.KubeError as unreadable:
            return f"binding has no known outcome ({error}); fencing the pod failed: {unreadable}"
        answer = outcomes.known(truth, bind.node)
        return f"binding failed: {error}" if answer is None else answer

    async def _contested(
        self, bind: reserving.Reserved, error: errors.KubeError
    ) -> str | pod_truth.Truth:
        """Look at a pod that was not as it was checked; certainly nothing was written."""
        pod = bind.pod
        try:
            truth = await self._access.read(pod.key, pod.uid)
        except errors.KubeError as unreadable:
            self._parts.books.forget(pod.uid)
            return f"binding was refused ({error}); reading the pod failed: {unreadable}"
        if truth.bound_to(bind.node):
            self._parts.books.renew(pod.uid, self._parts.clock.monotonic())
            return ""
        self._parts.books.forget(pod.uid)
        if truth.pod is not None and not truth.pod.node and truth.version == bind.version:
            return f"binding failed: {error}"
        return truth


def _ids() -> Callable[[], str]:
    """Return a maker of names that no two placements share; asking the system each time is slow."""
    rng = random.Random()
    return lambda: f"{rng.getrandbits(128):032x}"
