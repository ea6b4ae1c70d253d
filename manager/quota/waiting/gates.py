"""Opens the gates of pods that wait for quota, the moment there is room for them.

Events only say that something may have changed; within 50 ms everybody's turn is computed anew from
the forest. Decisions are made one after the other and each counts at once, so that any number of
writes under way never lets in more than fits. A write holds only for the pod as it was seen.
"""

import asyncio
import dataclasses
import logging
import math
from typing import Any, Final

from domain.quota.waiting import line, turns
from kube.client import errors
from manager.quota import book, objects
from manager.quota.waiting import backlog, gates_conditions, gates_pods
from manager.reconcile import actions, apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise, token_bucket

logger = logging.getLogger(__name__)

NAME: Final = "quotagates"
SWITCH: Final = "quota-gates"
"""Its key among the live switches."""

COALESCE_SECONDS: Final = 0.05
_SLICE: Final = 2000
_UNCERTAIN: Final = (errors.Unreachable, errors.Malformed, errors.ServerFailure)
"""The write may have been carried out: until the watch has had time to show it, it counts."""
_SECONDS_AFTER: Final[tuple[tuple[Any, float], ...]] = (
    (errors.NotSent, 2.0),
    (errors.Conflict, 0.2),
    (errors.NotFound, 1.0),
    (errors.TooManyRequests, 2.0),
    (_UNCERTAIN, 10.0),
)
"""How long a pod is left alone after a write that failed."""
_REFUSED_SECONDS: Final = 30.0
_FORGOTTEN_SECONDS: Final = 300.0
"""After how long a pod that no scheduler has tried withholds no quota any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How fast gates open, and on which terms."""

    rules: line.LineRules = dataclasses.field(default_factory=line.LineRules)
    per_second: float = 200.0
    burst: int = 400
    at_once: int = 32
    """Writes under way."""
    conditions: gates_conditions.Pace = dataclasses.field(default_factory=gates_conditions.Pace)
    settle_seconds: float = 0.0
    """How long a new leader watches before it opens the first gate."""
    own_namespace: str = ""
    untried: int = 100
    """Pods that are let in before the scheduler has bound or refused some of them."""
    untried_seconds: float = 5.0
    """How long a pod counts among those."""


class _Figures:
    def __init__(self, registry: metrics.Registry) -> None:
        self.opened = registry.counter(
            "koord_quota_gates_total",
            "Scheduling gates of pods that waited for quota, by what became of the write.",
            ("result",),
        )
        self.waiting = registry.gauge(
            "koord_quota_gated_pods", "Pods that wait behind the quota gate."
        )
        self.seconds = registry.histogram(
            "koord_quota_gate_seconds",
            "Time from the change that made room, as the watch showed it, to the open gate.",
        )
        self.held = registry.gauge(
            "koord_quota_would_wait_pods",
            "Pods that would wait for quota if gates were enforced.",
        )


class Gates:
    """The lines of all quotas during one term of leadership."""

    def __init__(
        self,
        seen: book.Book,
        live: switches.Switches,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = seen
        self._live = live
        self._pace = pace
        self._clock = clock
        self._figures = _Figures(registry)
        self._nap = clocks.Nap(clock)
        self._bucket = token_bucket.ClockedBucket(clock, pace.per_second, pace.burst)
        self._line = line.Line(pace.rules)
        self._opened: set[str] = set()
        self._left_alone: dict[str, float] = {}
        self._backlog = backlog.Backlog(pace.untried, pace.untried_seconds)
        self._writing: set[str] = set()
        self._open_since: dict[str, float] = {}
        self._changed_at: float | None = None
        self._looked_at = -math.inf
        self._stale = True
        self._conditions = gates_conditions.Conditions(
            seen, self._line, live, pace.conditions, clock, registry
        )

    async def run(self, writer: apply.Writer) -> None:
        """Open gates until cancelled."""
        await self._clock.sleep(self._pace.settle_seconds)
        stop = self._book.listen(self._changed)
        try:
            async with supervise.Supervisor("quota-gates") as tasks:
                tasks.start("open", lambda: self._work(writer, tasks))
                tasks.start("conditions", lambda: self._conditions.run(writer))
                await tasks.stopped()
        finally:
            stop()

    def look(self) -> None:
        """Look again soon, as after a switch has changed."""
        self._nap.wake()

    # --- What happens ---------------------------------------------------------------------------

    def _changed(self, changed: book.Changed) -> None:
        match changed.kind:
            case book.POD:
                self._take(changed.key)
            case book.NODE if changed.before is None or changed.after is None:
                for pod in self._book.on_node(changed.key):
                    self._take(pod.uid)
            case book.QUOTA if not gates_pods.is_rewritten(changed.before, changed.after):
                # Status is written often, and all pods would be looked at.
                return
            case book.QUOTA | book.RULES:
                self._stale = True
        if self._changed_at is None:
            self._changed_at = self._clock.monotonic()
        self._nap.wake()

    def _take(self, uid: str) -> None:
        """Tell the line what a pod is now."""
        pod = self._book.pods.get(uid)
        self._conditions.changed(uid, pod)
        if pod is None or not pod.gated:
            self._opened.discard(uid)
            self._left_alone.pop(uid, None)
        if pod is None or pod.node or pod.gates or pod.terminating:
            self._open_since.pop(uid, None)
        else:
            self._open_since.setdefault(uid, self._clock.now())
        if pod is None or pod.node or pod.unschedulable_since:
            self._backlog.tried(uid)
        seen = None if pod is None else self._seen(pod)
        if seen is None:
            self._line.drop(uid)
        else:
            self._line.put(seen)

    def _seen(self, pod: objects.QuotaPod) -> line.LinePod | None:
        if pod.node and not self._matters(pod):
            return None
        return gates_pods.line_pod(
            pod,
            opened=pod.uid in self._opened,
            held=pod.uid in self._left_alone,
            exempt=gates_pods.is_exempt(pod, self._pace.own_namespace),
            forgotten_since=self._forgotten_since(pod.uid),
        )

    def _forgotten_since(self, uid: str) -> float:
        """Return since when a pod could have been scheduled and was not, 0 for a short time."""
        since = self._open_since.get(uid, math.inf)
        return since if self._clock.now() >= since + _FORGOTTEN_SECONDS else 0.0

    def _forget(self, wall: float) -> float:
        """Charge pods no longer that no scheduler has tried for long; return when to look again."""
        for uid, since in self._open_since.items():
            if wall < since + _FORGOTTEN_SECONDS:
                return since + _FORGOTTEN_SECONDS
            known = self._line.get(uid)
            if known is not None and known.charged:
                pod = self._book.pods[uid]
                if (seen := self._seen(pod)) is not None:
                    self._line.put(seen)
        return math.inf

    def _matters(self, pod: objects.QuotaPod) -> bool:
        """Whether a pod with a node could make room for others of its quota."""
        return self._book.counts(pod) and self._book.name_of(pod) not in turns.OUTSIDE

    async def _take_all(self) -> None:
        """Tell the line of every pod, in slices that leave the loop to others."""
        self._stale = False
        for number, uid in enumerate(tuple(self._book.pods), 1):
            self._take(uid)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    # --- What is done ---------------------------------------------------------------------------

    async def _work(self, writer: apply.Writer, tasks: supervise.Supervisor) -> None:
        while True:
            if self._stale:
                await self._take_all()
            again_at = self._look(writer, tasks)
            now = self._clock.monotonic()
            await self._nap.rest(None if again_at == math.inf else max(0.0, again_at - now))
            # What comes within a moment is decided on together.
            wait = self._looked_at + COALESCE_SECONDS - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)

    def _look(self, writer: apply.Writer, tasks: supervise.Supervisor) -> float:
        """Let in the pods that may go now; return when to look again even if nothing happens."""
        now = self._clock.monotonic()
        self._looked_at = now
        for uid in [uid for uid, until in self._left_alone.items() if until <= now]:
            del self._left_alone[uid]
            self._opened.discard(uid)
            self._take(uid)
        wall, forest = self._clock.now(), self._book.forest
        forget_at = self._forget(wall)
        most = max(0, min(self._pace.at_once - len(self._writing), self._backlog.room(now)))
        if self._live.enforces:
            opening = self._line.opening(forest, wall, most)
        else:
            self._observe(wall)
            opening = self._line.drain(forest, wall, most)
        since, self._changed_at = self._changed_at, None
        for admission in opening.open:
            pod = self._book.pods[admission.uid]
            self._opened.add(pod.uid)
            self._writing.add(pod.uid)
            self._backlog.add(pod.uid, now)
            self._conditions.yields()
            tasks.spawn(f"open-{pod.uid}", self._open(writer, pod, admission, since))
        if opening.more:
            self._changed_at = since
        self._figures.waiting.set(len(self._line))
        left_alone = min(self._left_alone.values(), default=math.inf)
        untried = self._backlog.again_at if len(self._line) else math.inf
        return min(left_alone, untried, now + min(opening.again_at, forget_at) - wall)

    def _observe(self, wall: float) -> None:
        """Count who would wait, where gates are opened whatever there is room for."""
        counted = 0
        if self._live.asks:
            holds = self._line.holds(self._book.forest, wall)
            for name in self._line.waiting():
                counted += sum(hold.shortage is not None for hold in holds.of(name))
        self._figures.held.set(counted)

    async def _open(
        self,
        writer: apply.Writer,
        pod: objects.QuotaPod,
        admission: line.Admission,
        since: float | None,
    ) -> None:
        try:
            await self._bucket.wait()
            await writer.carry_out(_plan(pod))
        except errors.KubeError as error:
            self._failed(pod, error)
        else:
            self._figures.opened.labels("preempts" if admission.preempts else "opened").inc()
            if since is not None:
                self._figures.seconds.observe(self._clock.monotonic() - since)
            logger.info(
                "gate opened pod=%s quota=%s preempts=%s",
                pod.key, admission.quota, admission.preempts,
            )  # fmt: skip
        finally:
            self._writing.discard(pod.uid)
            self._nap.wake()

    def _failed(self, pod: objects.QuotaPod, error: errors.KubeError) -> None:
        """Leave a pod alone for a while whose gate could not be opened."""
        changed = isinstance(error, errors.Conflict | errors.NotFound)
        level = logging.INFO if changed else logging.WARNING
        logger.log(level, "gate not opened pod=%s error=%s", pod.key, error)
        self._figures.opened.labels("changed" if changed else "failed").inc()
        self._backlog.tried(pod.uid)
        seconds = next((s for kinds, s in _SECONDS_AFTER if isinstance(error, kinds)), None)
        asked = error.retry_after if isinstance(error, errors.ApiError) else None
        pause = max(_REFUSED_SECONDS if seconds is None else seconds, asked or 0.0)
        self._left_alone[pod.uid] = self._clock.monotonic() + pause
        if isinstance(error, errors.NotSent) or not isinstance(error, _UNCERTAIN):
            self._opened.discard(pod.uid)
        self._take(pod.uid)


def _plan(pod: objects.QuotaPod) -> actions.Plan:
    namespace, _, name = pod.key.partition("/")
    step = actions.PatchPod(namespace, name, gates_pods.opening(pod))
    return actions.Plan("opens the quota gate", (step,))
