"""Has Reservations placed through stand-ins, keeps their status, and ends them."""

import dataclasses
from collections.abc import Callable
from typing import Final

from api import resources
from api.koordinator import scheduling
from kube.client import errors
from kube.controllers import controller
from kube.informers import store
from manager.model import projections
from manager.reconcile import actions, apply
from manager.reservations import (
    objects,
    placement_plan,
    priorities,
    running_pods,
    stand_in,
    status_plan,
)
from process.runtime import clock as clocks
from process.runtime import token_bucket

NAME: Final = "reservation"
_SETTLE_SECONDS: Final = 5.0
_GATHER_SECONDS: Final = 2.0
"""How long changes of the owners of one Reservation are gathered at least."""
_REST_SECONDS: Final = 1.0
"""Pause between two writes about one Reservation that the scheduler finds no node for."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How often the status is written, of all Reservations together."""

    stand_ins_per_second: float = 10.0
    stand_ins_burst: int = 40
    status_per_second: float = 20.0
    status_burst: int = 50
    uses_per_second: float = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Plans:
    """What plans go by, as it is configured now."""

    rules: Callable[[], placement_plan.Rules]
    collection: Callable[[], status_plan.Collection]


class Stores:
    """What is watched, with the indexes that a reconcile needs."""

    def __init__(
        self,
        reservations: store.Store[objects.ReservationObject],
        stand_ins: store.Store[objects.StandIn],
        classes: store.Store[priorities.Class],
        users: store.Store[objects.User],
        nodes: store.Store[projections.Node],
        leaving: store.Store[objects.Leaving],
    ) -> None:
        self.reservations = reservations
        self.stand_ins = stand_ins
        self.classes = classes
        self.users = users
        self.nodes = nodes
        self.leaving = leaving
        self._by_name = store.Index(stand_ins, lambda one: (key_of(one),))
        self._users = store.Index(users, lambda one: (one.reservation,))
        self._names = store.Index(
            reservations,
            lambda one: (
                one.uid,
                f"node/{one.node}",
                *(f"pod/{owner.uid}" for owner in one.owners if one.phase == scheduling.WAITING),
            ),
        )

    def standing_in(self, name: str) -> list[objects.StandIn]:
        """Return the stand-ins of a Reservation, the first name first."""
        found = (self.stand_ins.get(key) for key in sorted(self._by_name.keys(name)))
        return [one for one in found if one is not None]

    def users_of(self, found: objects.ReservationObject) -> list[objects.User]:
        """Return the pods on the node of a Reservation that use it."""
        users = (self.users.get(key) for key in self._users.keys(found.uid))
        return [one for one in users if one is not None and one.node == found.node]

    def named(self, uid: str) -> frozenset[str]:
        """Return the name of the Reservation with this uid, if it is there."""
        return self._names.keys(uid)

    def waiting_for(self, uid: str) -> frozenset[str]:
        """Return the names of the Reservations that wait until a pod has ended."""
        return self._names.keys(f"pod/{uid}")

    def on_node(self, node: str) -> frozenset[str]:
        """Return the names of the Reservations on a node."""
        return self._names.keys(f"node/{node}")


def key_of(one: objects.StandIn) -> str:
    """Return the key under which a stand-in is reconciled: the name of its Reservation."""
    return one.reservation or f"/{one.namespace}/{one.name}"


class Reservations:
    """All Reservations during one term of leadership."""

    def __init__(
        self,
        stores: Stores,
        writer: apply.Writer,
        running: running_pods.RunningPods,
        plans: Plans,
        pace: Pace,
        clock: clocks.Clock,
    ) -> None:
        self._stores = stores
        self._writer = writer
        self._running = running
        self._plans = plans
        self._clock = clock
        self._creates = token_bucket.ClockedBucket(
            clock, pace.stand_ins_per_second, pace.stand_ins_burst
        )
        self._status = token_bucket.ClockedBucket(clock, pace.status_per_second, pace.status_burst)
        self._apart = 1 / pace.uses_per_second
        self._last_due = clock.monotonic()
        self._attempts: dict[str, placement_plan.Attempts] = {}
        self._missing: dict[str, float] = {}
        """Since when the node of a Reservation is not seen."""
        self._due: dict[str, float] = {}
        """When the status of a Reservation is written that does not name its owners."""

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring one Reservation, and the stand-ins that name it, in order."""
        stores, writer = self._stores, self._writer
        found, stand_ins = stores.reservations.get(name), stores.standing_in(name)
        if found is None:
            self._attempts.pop(name, None)
            self._missing.pop(name, None)
            self._due.pop(name, None)
            gone = placement_plan.removal(stand_ins, "the Reservation is gone")
            return await writer.carry_out(gone)
        unseen = writer.unseen(resources.RESERVATIONS, name, stores.reservations)
        if unseen is not None:
            return unseen
        strangers = [one for one in stand_ins if one.reservation_uid != found.uid]
        if strangers:
            await writer.carry_out(
                placement_plan.removal(strangers, "it stood in for an earlier Reservation")
            )
        mine = [one for one in stand_ins if one.reservation_uid == found.uid]
        if found.node or found.ended or found.deleting:
            self._attempts.pop(name, None)
            if mine:
                await writer.carry_out(
                    placement_plan.removal(mine, "the Reservation needs none any more")
                )
            return await self._keep(found)
        over = status_plan.expired(found, self._clock.now())
        if over is not None:
            self._attempts.pop(name, None)
            # Its stand-ins go once its status says that it has ended.
            await self._status.wait()
            return await self._writer.carry_out(over)
        outcome = await self._place(found, mine)
        return _until(outcome, found.expires_at, self._clock.now())

    async def _keep(self, found: objects.ReservationObject) -> controller.Outcome:
        if found.fault or not (found.node or found.ended):
            return controller.Outcome(found.fault or "ends without a node", changed=False)
        left = self._settling(found)
        if left > 0:
            return controller.Outcome(f"node {found.node} is not seen", left, changed=False)
        planned = await self._planned(found)
        gathers = self._gathering(found, planned)
        if gathers > 0:
            return controller.Outcome("gathers changes of its owners", gathers, changed=False)
        if planned.steps and found.name not in self._due:
            await self._status.wait()
            # Others may have come while it waited.
            planned = await self._planned(found)
        self._due.pop(found.name, None)
        return await self._writer.carry_out(planned)

    async def _planned(self, found: objects.ReservationObject) -> actions.Plan:
        stores = self._stores
        has_node = found.node in stores.nodes
        waiting = found.phase == scheduling.WAITING and has_node
        users = await self._running.still(found) if waiting else stores.users_of(found)
        return status_plan.planned(
            found,
            users,
            has_node=has_node,
            collection=self._plans.collection(),
            now=self._clock.now(),
        )

    def _gathering(self, found: objects.ReservationObject, planned: actions.Plan) -> float:
        """Return for how long more changes of owners are waited for.

        Every write goes to all watches, and nothing is decided by what owners use: while pods are
        bound in quick succession, a few of these writes take turns.
        """
        if not status_plan.tells_use_alone(planned):
            self._due.pop(found.name, None)
            return 0.0
        now = self._clock.monotonic()
        if found.name not in self._due:
            self._last_due = max(self._last_due + self._apart, now + _GATHER_SECONDS)
            self._due[found.name] = self._last_due
        return self._due[found.name] - now

    def _settling(self, found: objects.ReservationObject) -> float:
        """Return for how long a node that is not seen may still be a new one.

        Several watches tell of node and Reservation, in any order.
        """
        if not found.node or found.node in self._stores.nodes:
            self._missing.pop(found.name, None)
            return 0.0
        now = self._clock.monotonic()
        return self._missing.setdefault(found.name, now) + _SETTLE_SECONDS - now

    async def _place(
        self, found: objects.ReservationObject, mine: list[objects.StandIn]
    ) -> controller.Outcome:
        rules, now = self._plans.rules(), self._clock.monotonic()
        classes = {key: one.value for key, one in self._stores.classes.items()}
        attempts = await self._looked(found, mine, now)
        step = placement_plan.planned(found, mine, attempts, rules, classes, now)
        if step.place is not None:
            return await self._create(found, attempts, step.plan, step.place)
        self._attempts[found.name] = attempts
        outcome = await self._writer.carry_out(step.plan)
        why = placement_plan.why_not(found, mine, attempts, rules, classes)
        writes = placement_plan.told(found, why, self._clock.now())
        if attempts.looks_at > now:
            outcome = _within(outcome, attempts.looks_at - now)
        if not writes:
            return outcome
        await self._status.wait()
        message = f"{step.plan.message}; its status says why"
        return await self._writer.carry_out(
            actions.Plan(message, writes, step.plan.again_in or _REST_SECONDS)
        )

    async def _looked(
        self, found: objects.ReservationObject, mine: list[objects.StandIn], now: float
    ) -> placement_plan.Attempts:
        """Return what was tried, after looking for running pods where that is to be done now."""
        attempts = placement_plan.attempts_of(found, self._attempts.get(found.name))
        again = placement_plan.looks(found, mine, attempts, now)
        if again is None:
            return attempts
        choice = await self._running.choose(found, again.tried)
        attempts = placement_plan.looked(again, choice, now, alive=bool(mine))
        self._attempts[found.name] = attempts
        return attempts

    async def _create(
        self,
        found: objects.ReservationObject,
        attempts: placement_plan.Attempts,
        plan: actions.Plan,
        place: stand_in.Place,
    ) -> controller.Outcome:
        await self._creates.wait()
        if place.priority.name not in self._stores.classes:
            return await self._create_class(place.priority)
        now = self._clock.monotonic()
        attempts = self._attempts[found.name] = placement_plan.created(attempts, now)
        try:
            outcome = await self._writer.carry_out(plan)
        except (errors.Forbidden, errors.NotFound, errors.Invalid, errors.BadRequest) as error:
            attempts = placement_plan.refused(found, attempts, place, str(error), now)
            self._attempts[found.name] = attempts
            # Looked at again at once: to try another namespace, or to tell why there is none.
            return controller.Outcome(f"no stand-in in {place.namespace}: {error}", 0.0)
        return dataclasses.replace(outcome, requeue_after=attempts.next_at - now)

    async def _create_class(self, priority: priorities.Priority) -> controller.Outcome:
        """Create the PriorityClass of a stand-in; when the watch shows it, the pod follows.

        Before, admission would not know it either, and refuse the pod.
        """
        step = actions.Create(resources.PRIORITY_CLASSES, priority.name, priority.body())
        message = f"waits for PriorityClass {priority.name}"
        return await self._writer.carry_out(actions.Plan(message, (step,), _SETTLE_SECONDS))


def _until(outcome: controller.Outcome, expires_at: float | None, now: float) -> controller.Outcome:
    """Look again when a Reservation expires, if not before."""
    if expires_at is None:
        return outcome
    return _within(outcome, min(max(0.0, expires_at - now), status_plan.LONGEST_REST))


def _within(outcome: controller.Outcome, seconds: float) -> controller.Outcome:
    again = outcome.requeue_after
    return dataclasses.replace(
        outcome, requeue_after=seconds if again is None else min(seconds, again)
    )
