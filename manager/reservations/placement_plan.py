"""The stand-ins of a Reservation: which are created and removed, and what is reported. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from api import resources
from domain import wording
from domain.reservations import conditions
from manager.reconcile import actions
from manager.reservations import objects, pre_allocation, priorities, stand_in

FIRST_BACKOFF: Final = 5.0
"""Seconds between the first stand-in of a Reservation and the second; doubled each time."""
LONGEST_BACKOFF: Final = 300.0
_LONGEST_LOOK: Final = 60.0
"""Seconds between two looks for running pods over which a Reservation could be placed."""


class Rules(NamedTuple):
    """How stand-ins are made."""

    schedulers: tuple[str, ...]
    """Schedulers that call the extender, the first one for templates that name none."""
    namespace: str
    """Where stand-ins are created that the namespace of their template does not admit."""
    tries: int = 12
    """Stand-ins of one Reservation that end without a node, until it is changed."""
    preempts: bool = False
    """Whether Reservations may preempt pods."""


class Attempts(NamedTuple):
    """What was tried for one Reservation; moments are on the monotonic clock."""

    uid: str = ""
    generation: int = 0
    made: int = 0
    """Stand-ins."""
    next_at: float = 0.0
    refused: str = ""
    """Why the namespace of the template did not admit the stand-in."""
    last: str = ""
    """Why the last stand-in was not placed, where that is not for want of a node."""
    over: pre_allocation.Choice | None = None
    """Running pods over which the Reservation is to be placed."""
    tried: frozenset[str] = frozenset()
    """Nodes on which it could not be placed over running pods."""
    looks: int = 0
    """How often running pods were looked for."""
    looks_at: float = 0.0
    replaced: int = 0
    """Stand-ins that gave way to another attempt, which are no failures."""
    lacks: str = ""
    """Why there are no running pods over which to place it."""


class Step(NamedTuple):
    """What to do: carry out a plan; where a place is given, it creates a stand-in there."""

    plan: actions.Plan
    place: stand_in.Place | None = None


def attempts_of(found: objects.ReservationObject, before: Attempts | None) -> Attempts:
    """Return the attempts that count: a Reservation whose spec has changed starts over."""
    if before is not None and before[:2] == (found.uid, found.generation):
        return before
    return Attempts(found.uid, found.generation)


def created(before: Attempts, now: float) -> Attempts:
    """Note that a stand-in is being created."""
    pause = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(before.made, 16))
    return before._replace(made=before.made + 1, next_at=now + pause)


def looks(
    found: objects.ReservationObject,
    stand_ins: Sequence[objects.StandIn],
    before: Attempts,
    now: float,
) -> Attempts | None:
    """Return with which attempts to look for running pods to place it over; None: not now.

    Capacity that is free comes first, unless the Reservation may be placed over running pods only.
    """
    wanted = found.pre_allocation
    alive = [one for one in stand_ins if not one.deleting]
    if wanted is None or before.looks_at > now:
        return None
    if alive and not alive[0].unschedulable:
        return None
    if not alive and (before.over is not None or not wanted.required or stand_ins):
        return None
    if before.over is not None and alive and alive[0].over != before.over.uids:
        return None
    failed = before.over
    tried = before.tried | {failed.node} if failed is not None else before.tried
    return before._replace(over=None, tried=tried)


def looked(
    before: Attempts, choice: pre_allocation.Choice | str, now: float, *, alive: bool
) -> Attempts:
    """Note what was found; where nothing was, all nodes are looked at again after a pause."""
    made = before._replace(looks=before.looks + 1, replaced=before.replaced + alive)
    pause = min(_LONGEST_LOOK, FIRST_BACKOFF * 2.0 ** min(before.looks, 16))
    if isinstance(choice, pre_allocation.Choice):
        # The first one is tried at once; what kube-scheduler refuses is not tried in a row.
        next_at = now + (pause if before.tried else 0.0)
        return made._replace(over=choice, next_at=next_at, lacks="")
    return made._replace(tried=frozenset(), looks_at=now + pause, lacks=choice)


def refused(
    found: objects.ReservationObject, before: Attempts, place: stand_in.Place, text: str, now: float
) -> Attempts:
    """Note that a namespace did not admit a stand-in; another one is tried at once."""
    if place.namespace != found.home:
        return before._replace(last=text)
    moves = not before.refused and not stand_in.refusal_abroad(found)
    if moves:
        return before._replace(refused=text, next_at=now)
    return before._replace(refused=text, last=text)


def removal(stand_ins: Sequence[objects.StandIn], why: str) -> actions.Plan:
    """Plan the end of stand-ins that are not needed; whatever carries their label is one."""
    steps = tuple(
        actions.Delete(resources.PODS, one.name, one.uid, one.namespace)
        for one in stand_ins
        if not one.deleting
    )
    return actions.Plan(f"stand-in removed: {why}" if steps else why, steps)


def planned(
    found: objects.ReservationObject,
    stand_ins: Sequence[objects.StandIn],
    attempts: Attempts,
    rules: Rules,
    classes: Mapping[str, int],
    now: float,
) -> Step:
    """Plan for a Reservation without a node; `now` is on the monotonic clock.

    `stand_ins` are its own, the oldest name first.
    """
    useless = [one for one in stand_ins if one.node or one.finished]
    if useless:
        return Step(removal(useless, _useless(useless[0])))
    outdated = [one for one in stand_ins if one.generation != str(found.generation)]
    if outdated and not all(one.deleting for one in outdated):
        return Step(removal(outdated, "the Reservation was changed"))
    alive = [one for one in stand_ins if not one.deleting]
    if alive:
        return Step(_kept(alive, attempts))
    if stand_ins:
        return Step(actions.Plan("waits until the last stand-in is gone"))
    priority = priorities.of(found, classes, preempts=rules.preempts)
    refusal = stand_in.refusal(found, rules.schedulers)
    if refusal or isinstance(priority, str):
        return Step(actions.Plan(refusal or str(priority)))
    pause = _pause(found, attempts, rules, now)
    if pause is not None:
        return Step(pause)
    return Step(*_creation(found, attempts, rules, priority))


def _kept(alive: Sequence[objects.StandIn], attempts: Attempts) -> actions.Plan:
    """Plan for stand-ins that kube-scheduler may still place."""
    over = attempts.over.uids if attempts.over is not None else ()
    if alive[0].unschedulable and alive[0].over != over:
        return removal(alive, "another place is tried")
    if len(alive) > 1:
        return removal(alive[1:], "one stand-in is enough")
    return _waiting(alive[0])


def _pause(
    found: objects.ReservationObject, attempts: Attempts, rules: Rules, now: float
) -> actions.Plan | None:
    """Return why no stand-in is created now, None where one is."""
    wanted = found.pre_allocation
    if wanted is not None and wanted.required and attempts.over is None:
        return actions.Plan("waits for running pods over which it can be placed")
    if attempts.made - attempts.replaced >= rules.tries:
        ended = wording.count(attempts.made, "stand-in", "stand-ins")
        return actions.Plan(f"{ended} ended without a node")
    if attempts.next_at > now:
        return actions.Plan("waits before the next stand-in", again_in=attempts.next_at - now)
    return None


def _creation(
    found: objects.ReservationObject,
    attempts: Attempts,
    rules: Rules,
    priority: priorities.Priority,
) -> tuple[actions.Plan, stand_in.Place]:
    namespace = found.home
    # What cannot be tried elsewhere is tried at home again: quotas change.
    if attempts.refused and not stand_in.refusal_abroad(found):
        namespace = rules.namespace
    place = stand_in.Place(
        namespace,
        stand_in.scheduler(found, rules.schedulers),
        priority,
        attempts.made,
        attempts.over,
    )
    pod = stand_in.body(found, place)
    step = actions.Create(resources.PODS, stand_in.pod_name(found, place.number), pod, namespace)
    return actions.Plan(f"stand-in created in {namespace}", (step,)), place


def _useless(one: objects.StandIn) -> str:
    if one.node:
        return f"a scheduler that does not call the extender bound it to {one.node}"
    return "it has ended"


def _waiting(alive: objects.StandIn) -> actions.Plan:
    if not alive.unschedulable:
        return actions.Plan("its stand-in waits for a node")
    return actions.Plan(f"unschedulable: {alive.unschedulable}")


def why_not(
    found: objects.ReservationObject,
    stand_ins: Sequence[objects.StandIn],
    attempts: Attempts,
    rules: Rules,
    classes: Mapping[str, int],
) -> str:
    """Return why a Reservation has no node, empty while there is nothing to tell."""
    refusal = stand_in.refusal(found, rules.schedulers)
    if refusal:
        return refusal
    priority = priorities.of(found, classes, preempts=rules.preempts)
    if isinstance(priority, str):
        return priority
    told = next((one.unschedulable for one in stand_ins if one.unschedulable), "")
    if told or attempts.lacks:
        return "; ".join(filter(None, (told, attempts.lacks)))
    bound = next((one for one in stand_ins if one.node), None)
    if bound is not None:
        return _useless(bound)
    if attempts.refused:
        abroad = stand_in.refusal_abroad(found)
        if abroad:
            return (
                f"{abroad}, and namespace {found.home} admits no stand-in pod: {attempts.refused}"
            )
    if attempts.made - attempts.replaced >= rules.tries:
        return (
            f"{wording.count(attempts.made, 'stand-in pod', 'stand-in pods')} ended without a node"
            f"{f', the last one: {attempts.last}' if attempts.last else ''}; change the "
            "Reservation to have it tried again"
        )
    return attempts.last


def told(found: objects.ReservationObject, why: str, now: float) -> tuple[actions.Step, ...]:
    """Return the writes that say why a Reservation has no node, none where that is said already.

    `now` is in seconds since the epoch.
    """
    present = found.condition(conditions.SCHEDULED)
    if not why or (present is not None and present.status == "True"):
        return ()
    if present is not None and (present.reason, present.message) == (conditions.UNSCHEDULABLE, why):
        return ()
    since = None if present is None or present.status != "False" else present.last_transition_time
    changed = conditions.condition(
        conditions.SCHEDULED,
        "False",
        conditions.UNSCHEDULABLE,
        why,
        probed_at=now,
        since=now if since is None else since,
    )
    kind = resources.RESERVATIONS
    body: dict[str, Any] = {
        "metadata": {"uid": found.uid, "resourceVersion": found.version},
        "status": {"conditions": conditions.replaced(found.conditions, changed)},
    }
    return (
        actions.PatchStatus(kind, found.name, body),
        actions.Tell(kind, found.name, found.uid, "FailedScheduling", why, warning=True),
    )
