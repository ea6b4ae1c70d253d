"""What became of Bindings that the watch has not shown: looked up, fenced, kept or released."""

import dataclasses
import logging
from collections.abc import Callable, Container

from api.kubernetes import extender as wire
from extender.state import ledger, records
from extender.verbs import pod_truth
from kube.client import errors
from kube.informers import store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

GONE = "pod is gone or was replaced by another of the same name"
SWEEP_SECONDS = 1.0
_MOST_FENCES = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What outcomes are found out with."""

    ledger: ledger.Ledger
    pods: store.Store[records.PodRecord]
    access: pod_truth.PodAccess
    clock: clocks.Clock
    new_id: Callable[[], str]


class Outcomes:
    """Finds out where pods are, and makes sure that nothing more comes before it releases them."""

    def __init__(self, parts: Parts, running: Container[str], assumption_seconds: float) -> None:
        self._parts = parts
        self._running = running
        self._seconds = assumption_seconds
        self._fences: dict[str, str] = {}
        """By pod uid: the last fence, which the watch may not have shown yet."""

    async def find(self, asked: wire.BindingArgs) -> pod_truth.Truth:
        """Return the pod: from the watch, or from the API server where the watch cannot know."""
        parts, key = self._parts, f"{asked.pod_namespace}/{asked.pod_name}"
        assumed = parts.ledger.assumptions.get(asked.pod_uid)
        if assumed is not None:
            # An earlier attempt ended without the watch having shown its result.
            return await self.settle(assumed)
        known, version = parts.pods.get(key), parts.pods.version_of(key)
        if known is None or known.uid != asked.pod_uid or not version:
            return await parts.access.read(key, asked.pod_uid)
        if self._fences.get(known.uid, known.fence) != known.fence:
            # The watch is behind our own fence, so the version it knows would conflict.
            return await parts.access.read(key, asked.pod_uid)
        return pod_truth.Truth(known, str(version))

    async def settle(self, assumed: ledger.Assumption) -> pod_truth.Truth:
        """Resolve an uncertain write: keep what was written, or release its place."""
        truth = await self._outcome(assumed)
        self._conclude(assumed, truth)
        return truth

    async def _outcome(self, assumed: ledger.Assumption) -> pod_truth.Truth:
        """Find out what became of a write; where it may still come, make sure that it fails."""
        placed, parts = assumed.placed, self._parts
        if not assumed.uncertain:
            truth = await parts.access.read(placed.key, placed.uid)
            if truth.pod is None or truth.pod.node:
                return truth
        attempt = parts.new_id()
        truth = await parts.access.fence(placed.key, placed.uid, attempt)
        if len(self._fences) >= _MOST_FENCES:
            self._fences.clear()
        self._fences[placed.uid] = attempt
        return truth

    def _conclude(self, assumed: ledger.Assumption, truth: pod_truth.Truth) -> None:
        placed, books = assumed.placed, self._parts.ledger
        if truth.bound_to(placed.node):
            books.renew(placed.uid, self._parts.clock.monotonic())
        else:
            books.forget(placed.uid)

    def shown(self, uid: str, node: str) -> str:
        """Return the answer for a pod whose assumption the watch has ended."""
        placed = self._parts.ledger.cluster.placed(uid)
        if placed is None:
            return GONE
        return "" if placed.node == node else f"pod is already bound to {placed.node}"

    # -- assumptions that the watch has not confirmed ----------------------------------------

    async def sweep(self) -> None:
        """Resolve assumptions that have waited too long for their echo; runs forever."""
        while True:
            await self._parts.clock.sleep(SWEEP_SECONDS)
            await self.sweep_once()

    async def sweep_once(self) -> None:
        """Keep or release every assumption that expired or is uncertain."""
        parts = self._parts
        before = parts.clock.monotonic() - self._seconds
        parts.ledger.expire(parts.clock.now())
        for assumed in parts.ledger.expired(before):
            placed = assumed.placed
            if placed.uid in self._running:
                continue
            try:
                truth = await self._outcome(assumed)
            except errors.KubeError as error:
                logger.warning("assumption cannot be checked pod=%s error=%s", placed.key, error)
                if isinstance(error, errors.Unreachable):
                    # Either nothing is answered now, or what admits this pod is late: then the
                    # next pass begins with the others. A refusal concerns this pod alone.
                    parts.ledger.defer(placed.uid)
                    return
                continue
            present = parts.ledger.assumptions.get(placed.uid)
            if present == assumed and placed.uid not in self._running:
                self._conclude(assumed, truth)


def known(truth: pod_truth.Truth, node: str) -> str | None:
    """Return the answer for a pod that need not or cannot be bound, else None."""
    if truth.pod is None:
        return GONE
    if not truth.pod.node:
        return None
    return "" if truth.pod.node == node else f"pod is already bound to {truth.pod.node}"
