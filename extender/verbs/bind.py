"""Bind is the transaction: check again, reserve, permit, write, confirm or undo.

Nothing that an earlier call found is trusted. What is reserved is counted before the write and
stays counted until the watch shows it, the write is refused, or the pod was read back.
"""

import asyncio
import dataclasses
import logging
import math
import random
from collections.abc import Callable

from api.kubernetes import extender as wire
from extender.framework import pipeline
from extender.settings import BindSettings
from extender.state import ledger, records
from extender.verbs import outcomes, pod_truth, reserving, waiting_pods
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_BREATH = 1.0
"""How often a call that waits looks whether it may go on, and whether its caller is there."""
_LATE = "too much time passed between the check and the write"
_FENCED = "a later attempt to bind the pod has begun; nothing was written"
_LEFT = "the caller has stopped waiting; nothing was bound"
_CHANGED = "pod changed while it was being bound; nothing was written"


@dataclasses.dataclass(frozen=True, slots=True)
class _Window:
    """How long what was checked may still be written.

    A process that stood still for longer may have been replaced, and others have decided meanwhile.
    """

    clock: clocks.Clock
    end: float

    def is_open(self) -> bool:
        return self.clock.monotonic() < self.end

    def check(self) -> None:
        """Raise Deposed when the write must not leave any more."""
        if not self.is_open():
            raise errors.Deposed(_LATE)

    def remaining(self) -> float:
        """A write that has left may take its time: its outcome is read back."""
        return math.inf


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
        self._new_id = new_id or _ids()
        self._access = pod_truth.PodAccess(
            parts.client, parts.projector, parts.clock, settings.read_seconds
        )
        self._reserving = reserving.Reserving(
            parts.books, parts.plugins, parts.switches, parts.clock, self._new_id
        )
        self.waiting = waiting_pods.WaitingPods(parts.clock)
        self._running: dict[str, tuple[str, asyncio.Future[str]]] = {}
        self.outcomes = outcomes.Outcomes(
            outcomes.Parts(parts.books, parts.pods, self._access, parts.clock, self._new_id),
            self._running,
            settings.promise_seconds,
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
            reserved = await self._reserved(truth, asked.node, deadline, connected)
            if isinstance(reserved, str):
                return reserved
            if self._reserving.permits():
                window = self._window()
            outcome = await self._write(reserved, window)
            if isinstance(outcome, str):
                return outcome
            truth = outcome

    def _window(self) -> _Window:
        clock = self._parts.clock
        return _Window(clock, clock.monotonic() + self._settings.start_seconds)

    async def _reserved(
        self,
        truth: pod_truth.Truth,
        node: str,
        deadline: float,
        connected: Callable[[], bool],
    ) -> reserving.Reserved | str:
        """Reserve, and wait for what plug-ins let the pod wait for."""
        reserved = self._reserving.reserve(truth, node)
        if isinstance(reserved, str):
            return reserved
        if self._reserving.permits():
            refusal = await self._waited(reserved, deadline, connected)
            if refusal is not None:
                return refusal
        if self._parts.clock.monotonic() >= deadline or not connected():
            self._parts.books.forget(reserved.pod.uid)
            return _LEFT
        return reserved

    # -- permit ----------------------------------------------------------------------------

    async def _waited(
        self, reserved: reserving.Reserved, deadline: float, connected: Callable[[], bool]
    ) -> str | None:
        """Return None once the pod may be bound, else the answer; then nothing is reserved."""
        refusal = "waiting was interrupted"
        try:
            refusal = await self._permitted(reserved, deadline, connected)
            if not refusal and reserved.pod.uid not in self._parts.books.assumptions:
                return ""
        finally:
            if refusal:
                self._parts.books.forget(reserved.pod.uid)
        return refusal or None

    async def _permitted(
        self, reserved: reserving.Reserved, deadline: float, connected: Callable[[], bool]
    ) -> str:
        """Wait until the pod may be bound; then look at its node again, without its own claim."""
        clock, uid = self._parts.clock, reserved.pod.uid
        ends: dict[str, float] = {}
        while True:
            permission = self._reserving.permission(reserved)
            self.waiting.wake(permission.wakes)
            if permission.refusal is not None:
                return permission.refusal.status.text
            if permission.allowed:
                return self._reserving.recheck(reserved) if ends else ""
            for _, wait in permission.waits:
                # The first time that was named counts: nobody waits longer by being asked again.
                ends.setdefault(wait.key, wait.until)
            until = min(ends[key] for key in permission.keys)
            # Woken or not, it is asked again: what it waits for may have changed without a bind.
            if not await self.waiting.wait(
                permission.keys, min(_BREATH, until - clock.now(), deadline - clock.monotonic())
            ):
                if clock.now() >= until:
                    return permission.expired().status.text
                if clock.monotonic() >= deadline or not connected():
                    return _LEFT
            if uid not in self._parts.books.assumptions:
                # The watch has shown the pod on a node, or gone.
                return self.outcomes.shown(uid, reserved.node)

    # -- write -----------------------------------------------------------------------------

    async def _write(self, bind: reserving.Reserved, window: _Window) -> str | pod_truth.Truth:
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
