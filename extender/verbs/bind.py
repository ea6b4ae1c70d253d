"""Bind is the transaction: check again, reserve, write, confirm or undo.

Nothing that an earlier call found is trusted. What is reserved is counted before the write and
stays counted until the watch shows it, the write is refused, or the pod was read back.
"""

import asyncio
import dataclasses
import logging
import math
import random
from collections.abc import Callable

import orjson

from api import names
from api.kubernetes import extender as wire
from api.wire import durations
from extender.framework import nominations, pipeline, verdicts, views
from extender.settings import BindSettings
from extender.state import allocations, ledger, records
from extender.verbs import outcomes, pod_truth
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

PAYLOAD_VERSION = 1
_LATE = "too much time passed between the check and the write"
_FENCED = "a later attempt to bind the pod has begun; nothing was written"
_CHANGED = "pod changed while it was being bound; nothing was written"


@dataclasses.dataclass(frozen=True, slots=True)
class _Bind:
    pod: records.PodRecord
    version: str
    node: str
    annotations: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Window:
    """How long what was checked may still be written.

    Whoever stood still for longer may have been replaced, and others have decided meanwhile.
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
        window = _Window(
            self._parts.clock, self._parts.clock.monotonic() + self._settings.start_seconds
        )
        fence = truth.fence
        while True:
            answer = outcomes.known(truth, asked.node)
            if answer is not None:
                return answer
            if truth.fence != fence:
                return _FENCED
            if not window.is_open():
                return _CHANGED
            prepared = self._reserve(truth, asked.node)
            if isinstance(prepared, str):
                return prepared
            if self._parts.clock.monotonic() >= deadline or not connected():
                self._parts.books.forget(asked.pod_uid)
                return "the caller has stopped waiting; nothing was bound"
            outcome = await self._write(prepared, window)
            if isinstance(outcome, str):
                return outcome
            truth = outcome

    # -- reserve ---------------------------------------------------------------------------

    def _reserve(self, truth: pod_truth.Truth, node: str) -> _Bind | str:
        """Ask every plug-in again and count the pod on the node; runs without interruption."""
        parts, pod = self._parts, truth.pod
        assert pod is not None
        now = parts.clock.now()
        view = parts.books.cluster.view(node)
        row = view.rows.get(node)
        if row is None:
            return f"node {node} is not known"
        request = views.PodInfo(pod.key, pod.uid, pod.requirements)
        granted: dict[str, verdicts.Grant] = {}
        grounds: list[str] = []
        if parts.switches.asks:
            # This node alone: what the others are like no longer matters.
            one = nominations.seen_by(request, view, row)
            asked = parts.plugins.cycle(request, one)
            refusal = self._refusal(asked, one, now)
            if isinstance(refusal, str):
                return refusal
            granted = refusal
            grounds = parts.plugins.grounds(asked, one, 0, now)
        allocated = {name: grant.allocation for name, grant in granted.items() if grant.allocation}
        parts.books.assume(pod, node, now, parts.clock.monotonic(), allocated or allocations.NONE)
        payload = {
            "v": PAYLOAD_VERSION,
            "id": self._new_id(),
            "node": node,
            "at": durations.precise_moment(now),
            "reasons": grounds,
        }
        payload["granted"] = {name: grant.told() for name, grant in granted.items()}
        notes = {names.PLACEMENT: orjson.dumps(payload).decode()}
        notes |= allocations.written(parts.plugins.codecs, allocated)
        return _Bind(pod, truth.version, node, notes)

    def _refusal(
        self, asked: pipeline.Cycle, one: views.View, now: float
    ) -> dict[str, verdicts.Grant] | str:
        plugins = self._parts.plugins
        refusal = plugins.filter(asked, one, pipeline.ROW, now).refusal(0)
        if refusal is None:
            granted = plugins.reserve(asked, one, 0)
            if not isinstance(granted, pipeline.Refusal):
                return granted
            refusal = granted
        sentence = plugins.sentence(asked, one, 0, refusal, now)
        if self._parts.switches.enforces:
            return sentence
        logger.info("would not bind pod=%s reason=%s", asked.pod.key, sentence)
        return {}

    # -- write -----------------------------------------------------------------------------

    async def _write(self, bind: _Bind, window: _Window) -> str | pod_truth.Truth:
        """Write; a pod that still waits but is not what was checked comes back as it is now."""
        books, pod = self._parts.books, bind.pod
        try:
            await self._parts.client.bind(
                pod.namespace,
                pod.name,
                uid=pod.uid,
                node=bind.node,
                annotations=bind.annotations,
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

    async def _settle(self, bind: _Bind, error: errors.KubeError) -> str:
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

    async def _contested(self, bind: _Bind, error: errors.KubeError) -> str | pod_truth.Truth:
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
