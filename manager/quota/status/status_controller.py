"""Keeps the status of every ElasticQuota equal to the figures of the forest.

Once a second, at most, it compares what objects say with one forest and queues those that differ.
A change of one pod moves the figures of many quotas, so the comparison of all of them rests longer
the longer it takes; quotas of pods that changed are looked at each time. While gates open, status
is written less often: letting pods in comes first, and nothing that is enforced reads the status.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Final

import msgspec

from api import names, resources
from domain.quota import model
from domain.quota.shares import decay
from domain.quota.tree.forest import Forest
from kube.client import errors
from kube.controllers import controller, workqueue
from manager.quota import book, objects
from manager.quota.status import borrowing, status_plan
from manager.reconcile import actions, apply
from process.runtime import clock as clocks
from process.runtime import metrics, supervise, token_bucket

NAME: Final = "quotastatus"
_SLICE: Final = 64
"""Objects that are compared before others may run."""
_REST: Final = 10.0
"""How many times as long as it took a comparison of all quotas rests, at least."""
_SHARE: Final = 0.2
"""The part of the rate of writes that is left to status while gates open faster than that."""
_DIGEST_SECONDS: Final = 10.0
"""How long a figure that admission has raised stands before it is corrected downwards: by then
informers know of the pod that it was raised for, or there is none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often the status of quotas is written."""

    per_second: float = 20.0
    """Writes per second after the first burst, of all quotas together."""
    burst: int = 200
    workers: int = 4
    """Writes that are on their way at the same time."""
    tick_seconds: float = 1.0
    """Pause between two comparisons, and between two writes of one quota."""
    resync_seconds: float = 60.0
    """After which all are compared even if nothing seems to have happened."""


class _Accounts:
    """What objects say that admission has let in: which texts are ours, which it has raised."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self.written: dict[str, str] = {}
        self._raised: dict[str, tuple[str, float]] = {}

    def forget(self, identity: str) -> None:
        """Forget a quota."""
        self.written.pop(identity, None)
        self._raised.pop(identity, None)

    def rest(self, identity: str, found: objects.QuotaObject, status: status_plan.Status) -> float:
        """Return how long a figure that admission has raised is still left as it is."""
        key = names.ANNOTATION_QUOTA_CHILD_REQUEST
        present, text = found.annotations.get(key, ""), status.annotations.get(key, "")
        ours = self.written.get(identity) == present
        if ours or not status_plan.exceeds(present, text):
            self._raised.pop(identity, None)
            return 0.0
        seen, since = self._raised.get(identity, ("", 0.0))
        if seen != present:
            since = self._clock.monotonic()
            self._raised[identity] = (present, since)
        return since + _DIGEST_SECONDS - self._clock.monotonic()


class Statuses:
    """The status of all quotas during one term of leadership."""

    def __init__(
        self,
        seen: book.Book,
        writer: apply.Writer,
        pace: Pace,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._book = seen
        self._writer = writer
        self._pace = pace
        self._clock = clock
        self._bucket = token_bucket.YieldingBucket(clock, pace.per_second, pace.burst, _SHARE)
        self._controller = controller.Controller(
            NAME,
            self.reconcile,
            workqueue.Queue(clock),
            clock,
            workers=pace.workers,
            registry=registry,
        )
        self._forest: Forest = seen.forest
        self._touched: set[tuple[str, str]] = set()
        self._is_stale = True
        self._compared: dict[str, tuple[objects.QuotaObject, model.Figures | None]] = {}
        self._next_at: dict[str, float] = {}
        self._unkept: dict[str, tuple[str, status_plan.Status]] = {}
        """What was written last of a quota, and its uid, until the watch has shown it."""
        self._fresh: set[str] = set()
        self._borrowing = borrowing.Borrowing()
        self._next_count = 0.0
        self._accounts = _Accounts(clock)
        self._subresource: dict[resources.Resource, bool] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        stop = self._book.listen(self._changed)
        try:
            async with supervise.Supervisor(NAME) as supervisor:
                self._controller.start(supervisor)
                supervisor.start("quotastatus-compare", self._compare)
                await supervisor.stopped()
        finally:
            stop()

    def _changed(self, change: book.Changed) -> None:
        match change.kind:
            case book.POD:
                for pod in (change.before, change.after):
                    if pod is not None:
                        self._touched.add(pod.origin)
                if _is_let_in(change.before, change.after):
                    self._bucket.spend()
            case book.QUOTA:
                self._quota_changed(change)
            case _:
                self._is_stale = True

    def _quota_changed(self, change: book.Changed) -> None:
        before, after = change.before, change.after
        if after is None:
            self._forget(change.key)
        if before is None or after is None or not _alike(before, after):
            # Others are bound to it, compete with it or stand below it.
            self._compared.clear()
            self._is_stale = True
            self._fresh.add(change.key)
            return
        self._is_stale |= before.quota != after.quota
        last = self._compared.get(change.key)
        if last is not None:
            self._compared[change.key] = (after, last[1])
        self._controller.queue.add(change.key)

    # --- Comparing ------------------------------------------------------------------------------

    async def _compare(self) -> None:
        """Queue what differs, again and again."""
        next_full = next_resync = self._clock.monotonic()
        while True:
            self._forest = self._book.forest
            touched, self._touched = self._touched, set()
            fresh, self._fresh = self._fresh, set()
            now = self._clock.monotonic()
            if now >= next_resync:
                next_resync = now + self._pace.resync_seconds
                self._compared.clear()
                self._is_stale = True
            if (self._is_stale or touched) and now >= next_full:
                self._is_stale = False
                await self._compare_all()
                next_full = now + _REST * (self._clock.monotonic() - now)
            else:
                self._is_stale |= bool(touched)
                self._queue(iter({*fresh, *self._identities(touched)}))
            self._count()
            await self._clock.sleep(self._pace.tick_seconds)

    def _count(self) -> None:
        """Queue all quotas that are followed when their counters of loans are due."""
        half_life, now = self._forest.rules.half_life, self._clock.monotonic()
        if half_life > 0 and now >= self._next_count:
            self._next_count = now + decay.period(half_life)
            for identity in self._borrowing.known:
                self._controller.queue.add(identity)

    async def _compare_all(self) -> None:
        found = list(self._book.quotas)
        for start in range(0, len(found), _SLICE):
            self._queue(iter(found[start : start + _SLICE]))
            await asyncio.sleep(0)

    def _identities(self, touched: set[tuple[str, str]]) -> Iterator[str]:
        """Return the objects of the quotas of these pods, and of all above them."""
        forest = self._forest
        above = {each for origin in touched for each in self._path(forest.name_of(*origin))}
        for name in above:
            found = forest.quota(name)
            if found is not None:
                yield found.identity

    def _path(self, name: str) -> tuple[str, ...]:
        return (name, *self._forest.path(name))

    def _queue(self, identities: Iterator[str]) -> None:
        """Queue the objects whose figures are others than when they were queued last."""
        for identity in identities:
            found = self._book.quotas.get(identity)
            if found is None:
                continue
            figures = self._forest.figures(found.quota.name)
            same = self._compared.get(identity) == (found, figures)
            if same and found.quota.name != names.ROOT_QUOTA:
                continue
            self._compared[identity] = (found, figures)
            self._follow(identity, found, figures)
            self._controller.queue.add(identity)

    def _follow(
        self, identity: str, found: objects.QuotaObject, figures: model.Figures | None
    ) -> None:
        half_life, now = self._forest.rules.half_life, self._clock.now()
        counted = self._forest.quota(found.quota.name)
        if half_life > 0 and counted is not None and counted.identity == identity:
            self._borrowing.resume(found.quota, figures, now, half_life)
            self._borrowing.follow(identity, figures, now, half_life)
        else:
            self._borrowing.forget(identity)

    # --- Writing --------------------------------------------------------------------------------

    async def reconcile(self, identity: str) -> controller.Outcome:
        """Write what the status of one quota is to say, where it does not say it."""
        found = self._book.quotas.get(identity)
        if found is None:
            self._forget(identity)
            return controller.Outcome("the quota is gone", changed=False)
        waits = self._waits(identity, found)
        if waits is not None:
            return waits
        status = status_plan.wanted(found, self._forest)
        rest = self._accounts.rest(identity, found, status)
        if rest <= 0:
            return await self._write(identity, found, status)
        # Everything else is written meanwhile.
        status = status_plan.charged_as_is(found, status)
        outcome = await self._write(identity, found, status, is_ours=False)
        return dataclasses.replace(outcome, requeue_after=rest)

    async def _write(
        self,
        identity: str,
        found: objects.QuotaObject,
        status: status_plan.Status,
        *,
        is_ours: bool = True,
    ) -> controller.Outcome:
        """Write a status; `is_ours` tells whether its account of admission is what we count."""
        now, half_life = self._clock.now(), self._forest.rules.half_life
        counter = self._borrowing.due(found.quota, now, half_life) if half_life > 0 else None
        plan = status_plan.planned(found, status, now)
        differs = any(isinstance(step, actions.Merge) for step in plan.steps)
        if not differs:
            self._unkept.pop(identity, None)
        if not differs and counter is None:
            return await self._writer.carry_out(plan)
        if differs and not self._is_kept(identity, found, status):
            note = "the API server does not keep all of the status; its CRD lacks fields"
            return controller.Outcome(note, changed=False)
        via = status_plan.planned(found, status, now, counter)
        if self._subresource.get(found.quota.resource, False):
            via = status_plan.by_subresource(via)
        await self._bucket.wait()
        text = status.annotations.get(names.ANNOTATION_QUOTA_CHILD_REQUEST)
        if text is not None and is_ours:
            self._accounts.written[identity] = text
        # What could not be written has not been dropped by a CRD, and is tried again with back-off.
        self._unkept.pop(identity, None)
        with self._noting(found.quota.resource):
            outcome = await self._writer.carry_out(via)
        self._next_at[identity] = self._clock.monotonic() + self._pace.tick_seconds
        if differs:
            self._unkept[identity] = found.quota.uid, status
        return outcome

    def _forget(self, identity: str) -> None:
        for kept in (self._compared, self._next_at, self._unkept):
            kept.pop(identity, None)
        self._accounts.forget(identity)
        self._borrowing.forget(identity)

    def _waits(self, identity: str, found: objects.QuotaObject) -> controller.Outcome | None:
        quota = found.quota
        unseen = self._writer.unseen(
            quota.resource, quota.name, self._book.stores.quotas[quota.resource], quota.namespace
        )
        if unseen is not None:
            return unseen
        rest = self._next_at.get(identity, 0.0) - self._clock.monotonic()
        if rest > 0:
            return controller.Outcome("written just now", requeue_after=rest, changed=False)
        return None

    def _is_kept(
        self, identity: str, found: objects.QuotaObject, status: status_plan.Status
    ) -> bool:
        """Whether a write may help: not where the same was written before and did not stay."""
        resource = found.quota.resource
        if self._unkept.get(identity) == (found.quota.uid, status):
            if resource in self._subresource:
                return False
            # A CRD of another installation may have the status as a subresource.
            self._subresource[resource] = True
        return True

    @contextlib.contextmanager
    def _noting(self, resource: resources.Resource) -> Iterator[None]:
        """Remember that a resource has no subresource for its status."""
        try:
            yield
        except errors.NotFound:
            if self._subresource.get(resource):
                self._subresource[resource] = False
            raise


def _is_let_in(before: objects.QuotaPod | None, after: objects.QuotaPod | None) -> bool:
    """Whether the gate of a pod was opened: a write that goes before those that report."""
    return before is not None and after is not None and before.gated and not after.gated


def _alike(before: objects.QuotaObject, after: objects.QuotaObject) -> bool:
    """Whether two states of a quota differ in nothing but what it has borrowed."""
    one, other = (
        msgspec.structs.replace(found.quota, borrowed={}, borrowed_at=0.0)
        for found in (before, after)
    )
    return one == other
