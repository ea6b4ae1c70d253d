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

import msgspec
import orjson

from api import names, resources
from api.kubernetes import core
from api.kubernetes import extender as wire
from api.wire import durations
from extender.framework import nominations, pipeline, verdicts, views
from extender.settings import BindSettings
from extender.state import allocations, ledger, records
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import supervise

logger = logging.getLogger(__name__)

PAYLOAD_VERSION = 1
_SWEEP_SECONDS = 1.0
_GONE = "pod is gone or was replaced by another of the same name"
_LATE = "too much time passed between the check and the write"
_CHANGED = "pod changed while it was being bound; nothing was written"


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """Where the API server says a pod is; no pod: it is gone or another one took its name."""

    pod: records.PodRecord | None
    version: str = ""
    """Its resource version; empty if that is not known."""

    def bound_to(self, node: str) -> bool:
        """Whether the pod is on this node."""
        return self.pod is not None and self.pod.node == node


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
        self._running: dict[str, tuple[str, asyncio.Future[str]]] = {}

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
            truth = await self._find(asked)
        except errors.KubeError as error:
            return f"pod could not be read: {error}"
        window = _Window(
            self._parts.clock, self._parts.clock.monotonic() + self._settings.start_seconds
        )
        while True:
            answer = self._known(truth, asked.node)
            if answer is not None:
                return answer
            prepared = self._reserve(truth, asked.node)
            if isinstance(prepared, str):
                return prepared
            if self._parts.clock.monotonic() >= deadline or not connected():
                self._parts.books.forget(asked.pod_uid)
                return "the caller has stopped waiting; nothing was bound"
            outcome = await self._write(prepared, window)
            if isinstance(outcome, str):
                return outcome
            if not window.is_open():
                return _CHANGED
            truth = outcome

    # -- what is true ----------------------------------------------------------------------

    async def _find(self, asked: wire.BindingArgs) -> Truth:
        """Return the pod: from the watch, or from the API server where the watch cannot know."""
        key = f"{asked.pod_namespace}/{asked.pod_name}"
        promise = self._parts.books.assumptions.get(asked.pod_uid)
        if promise is None:
            known = self._parts.pods.get(key)
            if known is not None and known.uid == asked.pod_uid:
                version = self._parts.pods.version_of(key)
                return Truth(known, str(version) if version else "")
            return await self._read(key, asked.pod_uid)
        # An earlier attempt ended without the watch having shown its result.
        truth = await self._read(key, asked.pod_uid)
        self._conclude(promise, truth, certain=True)
        return truth

    @staticmethod
    def _known(truth: Truth, node: str) -> str | None:
        """Return the answer for a pod that need not or cannot be bound, else None."""
        if truth.pod is None:
            return _GONE
        if not truth.pod.node:
            return None
        return "" if truth.pod.node == node else f"pod is already bound to {truth.pod.node}"

    async def _read(self, key: str, uid: str) -> Truth:
        """Ask the API server; that is tried several times, but the caller does not wait for all."""
        namespace, _, name = key.partition("/")
        try:
            async with supervise.deadline(self._parts.clock, self._settings.read_seconds):
                raw = await self._parts.client.get(resources.PODS, name, namespace)
        except errors.NotFound:
            return Truth(None)
        except TimeoutError as error:
            raise errors.Unreachable(f"pod {key}: no answer in time") from error
        try:
            pod = msgspec.convert(raw, core.Pod)
            record = self._parts.projector.pod(pod)
        except store.UNREADABLE as error:
            raise errors.Malformed(f"pod {key}: {error}") from error
        if pod.metadata.uid != uid:
            return Truth(None)
        return Truth(record, pod.metadata.resource_version)

    def _conclude(self, promise: ledger.Assumption, truth: Truth, *, certain: bool) -> None:
        """Act on what was read back: keep what is kept, release the rest unless in doubt."""
        placed, books = promise.placed, self._parts.books
        if truth.bound_to(placed.node):
            books.renew(placed.uid, self._parts.clock.monotonic())
        elif certain or truth.pod is None or truth.pod.node:
            books.forget(placed.uid)

    # -- reserve ---------------------------------------------------------------------------

    def _reserve(self, truth: Truth, node: str) -> _Bind | str:
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

    async def _write(self, bind: _Bind, window: _Window) -> str | Truth:
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
            return await self._settle(bind, error, certain=False)
        except (errors.Conflict, errors.AlreadyExists) as error:
            return await self._settle(bind, error, certain=True)
        except errors.NotFound:
            books.forget(pod.uid)
            return _GONE
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

    async def _settle(self, bind: _Bind, error: errors.KubeError, *, certain: bool) -> str | Truth:
        """Read the pod back after a write of unknown or conflicting outcome."""
        pod, promise = bind.pod, self._parts.books.assumptions.get(bind.pod.uid)
        try:
            truth = await self._read(pod.key, pod.uid)
        except errors.KubeError as unreadable:
            if promise is not None:
                self._parts.books.mark_uncertain(pod.uid)
            return f"binding has no known outcome ({error}); reading it back failed: {unreadable}"
        if promise is not None:
            self._conclude(promise, truth, certain=certain)
        if truth.bound_to(bind.node):
            return ""
        if truth.pod is None:
            return _GONE
        if truth.pod.node:
            return f"pod is already bound to {truth.pod.node}"
        if certain and bind.version and truth.version != bind.version:
            return truth
        return f"binding failed: {error}"

    # -- promises that the watch has not confirmed -------------------------------------------

    async def sweep(self) -> None:
        """Read back what has waited too long for its echo, for ever."""
        while True:
            await self._parts.clock.sleep(_SWEEP_SECONDS)
            await self.sweep_once()

    async def sweep_once(self) -> None:
        """Read back every promise that expired and keep or release it."""
        parts = self._parts
        before = parts.clock.monotonic() - self._settings.promise_seconds
        for promise in parts.books.expired(before):
            placed = promise.placed
            if placed.uid in self._running:
                continue
            try:
                truth = await self._read(placed.key, placed.uid)
            except errors.KubeError as error:
                logger.warning("promise could not be checked pod=%s error=%s", placed.key, error)
                return
            present = parts.books.assumptions.get(placed.uid)
            if present == promise and placed.uid not in self._running:
                self._conclude(promise, truth, certain=True)


def _ids() -> Callable[[], str]:
    """Return a maker of names that no two placements share; asking the system each time is slow."""
    rng = random.Random()
    return lambda: f"{rng.getrandbits(128):032x}"
