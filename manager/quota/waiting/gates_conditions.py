"""Writes into the status of each waiting pod what it waits for and its place in line.

However many wait, the rate of writes is bounded, and gates that open count against it: while many
pods are let in, few of the others wait long. A condition is written again when its meaning has
changed, not its figures; places far back change in coarse steps; quotas take turns.

A pod that was let in and found no node withholds nothing, so that others may take what it would
have used. Then its condition says again that its quota has no room, though its gate stays open.
"""

import dataclasses
import itertools
import logging
import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from api import names
from api.wire import durations
from domain import fairness
from domain.quota.waiting import line
from kube.client import errors
from manager.quota import book, objects
from manager.reconcile import actions, apply
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

OPENED: Final = "GateOpened"
_EXACT: Final = 10
_FIGURES_END: Final = "exceedDimensions"
_PAUSE_SECONDS: Final = 5.0
_FEW: Final = 5
_REST_SECONDS: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often conditions are written."""

    per_second: float = 20.0
    burst: int = 100
    patience_seconds: float = 2.0
    """How long a pod waits until it gets a condition: most are let in before."""
    again_seconds: float = 10.0
    """How long a condition stands at least."""
    round_seconds: float = 1.0
    looked_at: int = 2000
    """Pods looked at in one round."""


class Write(NamedTuple):
    """A condition to write on a pod."""

    pod: objects.QuotaPod
    available: bool
    told: objects.Told


class Last(NamedTuple):
    """What was written on a pod last, and when."""

    told: objects.Told
    at: float = -math.inf


def wanted(hold: line.Hold) -> objects.Told:
    """Return the condition of a pod that is held."""
    note = f"{hold.note}; {place(hold.place)}" if hold.place else hold.note
    return objects.Told(hold.reason, note)


def place(number: int) -> str:
    """Return a place in line, the coarser the further back."""
    if number <= _EXACT:
        return f"place {number} in line"
    step = 10 ** (len(str(number - 1)) - 1)
    return f"about place {-(-number // step) * step} in line"


def meaning(told: objects.Told) -> tuple[str, str]:
    """Return what a condition says without its figures, which change all the time."""
    return told.reason, told.message[max(told.message.find(_FIGURES_END), 0) :]


def body(write: Write, now: float) -> dict[str, Any]:
    """Return the strategic merge patch of a condition."""
    condition = {
        "type": names.CONDITION_QUOTA,
        "status": "True" if write.available else "False",
        "reason": write.told.reason,
        "message": write.told.message,
    }
    if write.available or write.pod.told == objects.NOT_TOLD:
        condition["lastTransitionTime"] = durations.moment(now)
    return {"metadata": {"uid": write.pod.uid}, "status": {"conditions": [condition]}}


class Conditions:
    """Keeps the conditions of waiting pods up to date."""

    def __init__(
        self,
        seen: book.Book,
        pods: line.Line,
        live: switches.Switches,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = seen
        self._line = pods
        self._live = live
        self._pace = pace
        self._clock = clock
        self._bucket = token_bucket.YieldingBucket(clock, pace.per_second, pace.burst)
        self._told: dict[str, Last] = {}
        self._open: dict[str, None] = {}
        """Pods with an open gate whose condition still says that they wait."""
        self._at: tuple[str, int] = ("", 0)
        self._written = registry.counter(
            "koord_quota_conditions_total",
            "Conditions written on pods that wait for quota, by what became of the write.",
            ("result",),
        )

    def changed(self, uid: str, pod: objects.QuotaPod | None) -> None:
        """Take in what has become of a pod."""
        if pod is None:
            self._told.pop(uid, None)
            self._open.pop(uid, None)
        elif not pod.gated and self._last(pod).told != objects.NOT_TOLD:
            self._open[uid] = None
        elif pod.node and pod.told == objects.NOT_TOLD:
            self._told.pop(uid, None)

    def yields(self) -> None:
        """Count a gate that opens: the write that lets a pod in goes before those that report."""
        self._bucket.spend()

    async def run(self, writer: apply.Writer) -> None:
        """Tell pods until cancelled."""
        rested = 0.0
        while True:
            await self._clock.sleep(self._pace.round_seconds)
            rested += self._pace.round_seconds
            most = min(self._bucket.left(), self._pace.burst)
            if most < min(_FEW, self._pace.burst) and rested < _REST_SECONDS:
                continue  # To look at all lines for a few writes is not worth it.
            rested = 0.0
            for write in self.due(most):
                await self._bucket.wait()
                if not await self._write(writer, write):
                    await self._clock.sleep(_PAUSE_SECONDS)
                    break

    def due(self, most: int) -> list[Write]:
        """Return what to write in this round, `most` at once, quotas in turn."""
        holds = self._line.holds(self._book.forest, self._clock.now())
        short = self._short(holds)
        opened = itertools.islice(
            (uid for uid in self._open if uid not in short and uid in self._book.pods),
            (most + 1) // 2,
        )
        found = [Write(self._book.pods[uid], True, objects.Told(OPENED, "")) for uid in opened]
        waiting: dict[str, list[Write]] = {}
        for hold in itertools.chain(short.values(), self._looked_at(holds)):
            write = self._of(hold)
            if write is not None:
                waiting.setdefault(hold.quota, []).append(write)
        return [*found, *itertools.islice(fairness.in_turn(waiting), most - len(found))]

    def _short(self, holds: line.Holds) -> dict[str, line.Hold]:
        """Return what holds the pods with an open gate for which their quota has no room."""
        if not self._live.enforces:
            return {}
        names = sorted(self._line.unplaced())
        return {hold.uid: hold for name in names for hold in holds.unplaced(name)}

    def _looked_at(self, holds: line.Holds) -> Iterator[line.Hold]:
        """Yield what holds the pods that are looked at now; goes on where it ended last."""
        listed = sorted(self._line.waiting())
        name, offset = self._at
        left = self._pace.looked_at
        later = [one for one in listed if one >= name]
        for quota in (*later, *(one for one in listed if one < name)):
            skipped = offset if quota == name else 0
            number = 0
            for hold in itertools.islice(holds.of(quota), skipped, skipped + left):
                number += 1
                yield hold
            left -= number
            if left <= 0:
                self._at = (quota, skipped + number)
                return
        self._at = ("", 0)

    def _last(self, pod: objects.QuotaPod) -> Last:
        """Return what was written on a pod last; a watch may still show what stood there before."""
        return self._told.get(pod.uid) or Last(pod.told)

    def _of(self, hold: line.Hold) -> Write | None:
        pod = self._book.pods.get(hold.uid)
        if pod is None or self._clock.now() - pod.created_at < self._pace.patience_seconds:
            return None
        last, told = self._last(pod), wanted(hold)
        if self._clock.monotonic() < last.at + self._pace.again_seconds:
            return None
        return None if meaning(last.told) == meaning(told) else Write(pod, False, told)

    async def _write(self, writer: apply.Writer, write: Write) -> bool:
        """Write a condition; False while the API server is away."""
        pod = self._book.pods.get(write.pod.uid)
        if pod is None:
            return True
        if not write.available and (pod.node or pod.gated != write.pod.gated):
            return True  # It was let in, or bound, meanwhile.
        namespace, _, name = pod.key.partition("/")
        patch = actions.PatchPod(namespace, name, body(write, self._clock.now()), "status")
        try:
            await writer.carry_out(actions.Plan("tells a pod what it waits for", (patch,)))
        except errors.OUTAGE as error:
            self._written.labels("failed").inc()
            logger.info("conditions are not written now pod=%s error=%s", pod.key, error)
            return False
        except errors.KubeError as error:
            self._written.labels("failed").inc()
            logger.info("condition not written pod=%s error=%s", pod.key, error)
        else:
            self._written.labels("written").inc()
        self._settle(write)
        return True

    def _settle(self, write: Write) -> None:
        uid = write.pod.uid
        if write.available:
            self._open.pop(uid, None)
        if (pod := self._book.pods.get(uid)) is not None:
            told = objects.NOT_TOLD if write.available else write.told
            self._told[uid] = Last(told, self._clock.monotonic())
            self.changed(uid, pod)
