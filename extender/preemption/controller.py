"""Preempts for pods that only plug-ins refuse: plan, claim, note, evict, wait, requeue.

One preemptor is in one worker at a time, so its evictions are serial. What is decided is counted in
the ledger before anything is written, noted on the pod before any eviction, and read back
from there after a restart. An eviction leaves only while the scheduler asks this extender
about the pod, its view is proven current, and the plan is seconds old.
"""

import dataclasses
from typing import Final

import msgspec

from extender.preemption import claiming, execution, in_flight, in_tree, planner, preview
from extender.requeue import unschedulable_pods
from extender.settings import PreemptionSettings
from extender.state import records
from kube.controllers import controller, workqueue
from kube.informers import store
from process.configuration import switches
from process.runtime import metrics, supervise, token_bucket

_WORKERS: Final = 4
_NUDGE_SECONDS: Final = 2.5
"""After how long a pod that was not tried is nudged again: after the longest back-off."""
_BUDGET_SECONDS: Final = 1.0
"""How often is looked whether a pod may leave by now that its budget has spared."""
_CROWDED_SECONDS: Final = 30.0
_UNSEEN_SECONDS: Final = 0.2
"""How often is looked for a pod that the scheduler has heard of before us."""
_ORPHAN_SECONDS: Final = 5.0
"""After how long a preemption of another process counts as left behind."""

Outcome = claiming.Outcome
NOTHING: Final = Outcome("nothing is to be done", changed=False)


class PreemptionController:
    """Reconciles pods that every node refuses."""

    def __init__(
        self, parts: claiming.Parts, settings: PreemptionSettings, registry: metrics.Registry
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._queue = workqueue.Queue(parts.clock, first_pause_seconds=0.2)
        self._worker = controller.Controller(
            "preemption", self.reconcile, self._queue, parts.clock,
            workers=_WORKERS, registry=registry,
        )  # fmt: skip
        self._bucket = token_bucket.Bucket(
            settings.per_second, settings.burst, parts.clock.monotonic()
        )
        self._claims = claims = claiming.Claims(parts, settings)
        self._execution = execution.Execution(parts, claims, settings)
        self._in_tree = in_tree.InTree()
        self._nudges: dict[str, str] = {}
        parts.preemptions.refused = self._look
        parts.preemptions.requeue = self._requeue
        registry.gauge(
            "koord_extender_preemptors", "Pods for which others are leaving now."
        ).set_function(lambda: len(parts.preemptions))

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to work."""
        self._worker.start(supervisor)

    # -- what happens --------------------------------------------------------------------------

    def _look(self, key: str) -> None:
        """Look at a pod that every node refused."""
        self._queue.add(key)

    def _requeue(self, key: str) -> None:
        pod = self._parts.pods.get(key)
        if pod is not None:
            self._nudges[key] = pod.uid
            self._queue.add(key)

    def follow(self, change: store.Change[records.PodRecord]) -> None:
        """Take in what the watch says of a pod; the ledger has to know it by then."""
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._gone(old)
        if new is None:
            return
        if new.node:
            self._bound(new)
            if new.leaves_at >= 0:
                self._queue_waiting_for(new.uid)
            return
        noted = old.preemption if old is not None else ""
        if new.preemption != noted and self._claims.noted(new):
            self._queue.add_after(new.key, _ORPHAN_SECONDS)

    def _gone(self, pod: records.PodRecord) -> None:
        self._claims.cool.forget(pod.uid)
        self._in_tree.forget(pod.uid)
        self._queue_waiting_for(pod.uid)
        if self._parts.preemptions.drop(pod.uid) is not None:
            self._parts.notices.count("deleted")

    def _bound(self, pod: records.PodRecord) -> None:
        self._in_tree.forget(pod.uid)
        found = self._parts.preemptions.drop(pod.uid)
        if found is not None:
            self._claims.cool.forget(pod.uid)
            if found.own:
                self._parts.notices.placed(self._parts.clock.now() - found.since)

    def _queue_waiting_for(self, uid: str) -> None:
        for waiting in self._parts.preemptions.of_victim(uid):
            self._queue.add(waiting.key)

    # -- reconcile -----------------------------------------------------------------------------

    async def reconcile(self, key: str) -> Outcome:
        """Do the next thing for one pod."""
        parts = self._parts
        pod = parts.pods.get(key)
        if self._is_yet_to_come(key, pod):
            return Outcome("the watch has yet to show the pod", _UNSEEN_SECONDS, changed=False)
        wanted = self._nudges.pop(key, "")
        if pod is None or pod.node:
            return NOTHING
        if wanted == pod.uid:
            await parts.writes.nudge(pod)
        one = parts.preemptions.get(pod.uid)
        return await self._begin(pod) if one is None else await self._go_on(pod, one)

    def _is_yet_to_come(self, key: str, pod: records.PodRecord | None) -> bool:
        """Whether the scheduler has asked lately about a pod of this name that we do not know."""
        waiter = self._parts.waiting.get(key)
        if waiter is None or (pod is not None and pod.uid == waiter.request.uid):
            return False
        return waiter.tried_at > self._parts.clock.now() - self._settings.candidate_seconds

    async def _go_on(self, pod: records.PodRecord, one: in_flight.Preemption) -> Outcome:
        parts, now = self._parts, self._parts.clock.now()
        if self._claims.mode() is not switches.Mode.ENFORCE:
            return await self._claims.give_up(pod, one, "preemption was switched off")
        if in_flight.is_over(one.record.until, one.since, now):
            return await self._claims.give_up(pod, one, "it was not placed in time")
        there = in_flight.present(one.record.victims, parts.books.cluster)
        if not there:
            return await self._freed(pod, one)
        if any(not leaves and uid not in one.evicted for uid, leaves in there.items()):
            lately = now - self._settings.candidate_seconds
            if self._tried_since(pod, lately if one.own else max(lately, one.since)):
                # What was begun is planned anew: pods that are leaving count as gone.
                return await self._begin(pod, one)
            if now - one.since >= _ORPHAN_SECONDS:
                await parts.writes.nudge(pod)
        return Outcome("victims are leaving", min(one.record.until - now, _ORPHAN_SECONDS), False)

    async def _freed(self, pod: records.PodRecord, one: in_flight.Preemption) -> Outcome:
        """Let the pod be tried; what was freed is kept for it meanwhile."""
        parts, now = self._parts, self._parts.clock.now()
        if not one.freed_at:
            until = now + self._settings.hold_seconds
            record = msgspec.structs.replace(one.record, until=until)
            one = dataclasses.replace(one, freed_at=now, record=record)
            self._claims.claim(pod, one)
        elif one.spared and self._tried_since(pod, one.freed_at):
            # What has left is not enough, and a budget has spared another one: it may allow it now.
            return await self._begin(pod, one)
        elif self._tried_since(pod, one.freed_at) and self._was_asked(pod, one.record.node):
            return await self._claims.give_up(
                pod, one, "it is refused although its victims have left"
            )
        if one.own or now - one.freed_at >= _NUDGE_SECONDS:
            await parts.writes.nudge(pod)
        return Outcome("victims have left", _NUDGE_SECONDS)

    def _tried_since(self, pod: records.PodRecord, moment: float) -> bool:
        waiter = self._parts.waiting.get(pod.key)
        return waiter is not None and waiter.request.uid == pod.uid and waiter.tried_at > moment

    def _was_asked(self, pod: records.PodRecord, node: str) -> bool:
        """Whether the last attempt asked about a node, or there is none of that name any more.

        kube-scheduler may see later than this process that the victims have left. Until then it
        counts the node as full, and asks about others alone.
        """
        waiter = self._parts.waiting.get(pod.key)
        row = self._parts.books.cluster.view().rows.get(node)
        return waiter is None or row is None or waiter.asks(row)

    # -- begin ---------------------------------------------------------------------------------

    async def _begin(
        self, pod: records.PodRecord, one: in_flight.Preemption | None = None
    ) -> Outcome:
        """Plan for a pod that the scheduler has just asked about, and do it."""
        parts, settings = self._parts, self._settings
        mode = self._claims.mode()
        left = self._claims.cool.left(pod.uid, parts.clock.monotonic())
        if mode is switches.Mode.OFF or (left and one is None):
            return Outcome("nothing is preempted now", left or None, changed=False)
        if not self._tried_since(pod, parts.clock.now() - settings.candidate_seconds):
            return await self._asks_again(pod)
        doubt = await parts.doubt()
        if doubt:
            return Outcome(f"the view is not current: {doubt}", 1.0, changed=False)
        if not self._bucket.take(parts.clock.monotonic()):
            return Outcome("too many pods preempt at once", _NUDGE_SECONDS, changed=False)
        # From here to the claim nothing is awaited: the plan is made on what it then changes.
        waiter, now = parts.waiting.get(pod.key), parts.clock.now()
        if waiter is None or waiter.request.uid != pod.uid:
            return NOTHING
        confirmed, view = parts.waiting.preemptor(pod.key), parts.books.cluster.view()
        if one is None and self._in_tree.evicts(pod, waiter, confirmed, view, now):
            return Outcome("kube-scheduler preempts for it", _NUDGE_SECONDS, changed=False)
        found = self.plan(waiter, now)
        if isinstance(found, planner.NoPlan):
            return await self._no_plan(pod, one, found)
        if mode is switches.Mode.OBSERVE:
            parts.notices.planned(found, enforced=False)
            parts.notices.count("observed")
            return Outcome(
                f"would preempt: {found.sentence()}",
                self._claims.cool.failed(pod.uid, parts.clock.monotonic()),
            )
        return await self._execution.carry_out(pod, self._claimed(pod, found, now), found, one)

    def _claimed(
        self, pod: records.PodRecord, found: planner.Plan, now: float
    ) -> in_flight.Preemption:
        """Keep the place of a plan for its pod; lesser preemptors lose what is kept for them."""
        record = self._claims.record(found, now)
        mine = in_flight.Preemption(pod.key, pod.uid, record, now, own=True)
        self._claims.claim(pod, mine)
        for claim in found.found.released:
            if other := self._claims.take_over(claim):
                self._queue.add(other)
        return mine

    async def _asks_again(self, pod: records.PodRecord) -> Outcome:
        """Have the scheduler try a pod again for which others could leave by now."""
        parts, now = self._parts, self._parts.clock.now()
        waiter = parts.waiting.get(pod.key)
        if waiter is None or waiter.request.uid != pod.uid:
            return NOTHING
        if not self._bucket.take(parts.clock.monotonic()):
            return Outcome("too many pods preempt at once", _CROWDED_SECONDS, changed=False)
        pause = self._claims.cool.failed(pod.uid, parts.clock.monotonic())
        found = self.plan(waiter, now)
        if isinstance(found, planner.NoPlan):
            return Outcome(f"no pod is preempted: {found.reason}", pause, changed=False)
        self._claims.cool.forget(pod.uid)
        await parts.writes.nudge(pod)
        return Outcome("the scheduler is to ask about it again", pause)

    def plan(
        self, waiter: unschedulable_pods.UnschedulablePod, now: float
    ) -> planner.Plan | planner.NoPlan:
        """Say who would have to leave for a pod, without any effect."""
        parts, until = self._parts, now + self._settings.longest_seconds
        terms = parts.preemptions.terms(parts.books.cluster, until=until)
        terms = dataclasses.replace(terms, refused=self._execution.refused())
        return preview.plan(
            parts.plugins, parts.books.cluster, parts.preemptions, waiter, (terms, now)
        )

    async def _no_plan(
        self, pod: records.PodRecord, one: in_flight.Preemption | None, found: planner.NoPlan
    ) -> Outcome:
        if found.passes:
            await self._parts.writes.nudge(pod)
            return Outcome("a node takes it by now", _NUDGE_SECONDS if one else None)
        if one is not None and one.spared:
            return Outcome(f"waits for a disruption budget: {found.reason}", _BUDGET_SECONDS, False)
        if one is not None:
            return await self._claims.give_up(pod, one, found.reason)
        self._parts.notices.count("no_victims")
        pause = self._claims.cool.failed(pod.uid, self._parts.clock.monotonic())
        return Outcome(f"no pod is preempted: {found.reason}", pause, changed=False)
