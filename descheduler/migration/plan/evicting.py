"""The eviction of a pod: announced, tried, refused, accepted, complete. Pure.

It is announced in the status before the pod is evicted. So a process that finds the pod gone knows
whether the job has done that, and one that finds it there evicts it: once more at worst, and never
another pod, since the uid is part of every eviction.
"""

from typing import Final

from api import names
from api.kubernetes import meta
from descheduler.migration.plan import conditions, facts, steps
from descheduler.model import objects, podinfo

DESCHEDULED: Final = "Descheduled"
"""Reason of the event on a pod that is evicted, and on its controller."""
_FIRST_PAUSE: Final = 3.0
_LONGEST_PAUSE: Final = 30.0
_SEEN_SECONDS: Final = 10.0
"""How long the watch may take to show that a pod is terminating."""


def planned(
    given: facts.Facts, rules: facts.Rules, now: float
) -> steps.Plan | steps.Failure | None:
    """Plan the eviction of the pod; None once it is gone."""
    job, pod = given.job, given.pod
    if conditions.holds(job.status, conditions.EVICTION):
        return None
    found = conditions.state(job.status, conditions.EVICTION)
    if pod is None or pod.leaves_at >= 0:
        return _leaving(given, found, now)
    if given.ahead and _is_closed(given):
        return steps.Plan(
            f"the pod of {given.ahead} leaves first", again_in=facts.LOOK_AGAIN_SECONDS
        )
    if found is None:
        begins = f'evicts Pod "{job.pod_key}" from node "{pod.node}"'
        change = conditions.Change(conditions.EVICTION, False, conditions.EVICTION_BEGUN, begins)
        return _write(given, change, now)
    return _staying(given, pod, found, facts.policy(job, pod, rules), now)


def _leaving(
    given: facts.Facts, found: meta.LooseCondition | None, now: float
) -> steps.Plan | steps.Failure:
    """Plan for a pod that terminates or is gone; whatever made it leave, its place is for it."""
    key, pod = given.job.pod_key, given.pod
    if found is not None and _is_closed(given):
        return opened(given, in_turn=False)
    if pod is not None:
        if found is None or found.reason != conditions.EVICTING:
            return _write(given, _accepted(given, pod), now)
        return steps.Plan("the pod is terminating", again_in=facts.LOOK_AGAIN_SECONDS)
    if found is None:
        return steps.Failure(conditions.MISSING_POD, f"pod {key} left before it was evicted")
    gone = conditions.Change(conditions.EVICTION, True, conditions.EVICT_COMPLETE)
    return _write(given, gone, now)


def _staying(
    given: facts.Facts,
    pod: podinfo.Pod,
    found: meta.LooseCondition,
    policy: str,
    now: float,
) -> steps.Plan:
    """Plan for a pod whose eviction was announced, and that is still there."""
    if policy == facts.SOFT and names.ANNOTATION_SOFT_EVICTION in pod.annotations:
        return steps.Plan("waits until the pod is deleted", again_in=facts.LOOK_AGAIN_SECONDS)
    rest = _rest(found.reason, found.last_probe_time, found.last_transition_time, now)
    if rest > 0:
        return steps.Plan("waits before the pod is evicted again", again_in=rest)
    is_closed = _is_closed(given)
    if is_closed and policy != facts.EVICTION:
        return opened(given)
    job = given.job
    evict = steps.Evict(policy, facts.reason(job), facts.trigger(job), is_trial=is_closed)
    return steps.Plan("evicts the pod", (evict,))


def opened(given: facts.Facts, *, in_turn: bool = True) -> steps.Plan:
    """Plan to let pods use the Reservation: the pod is about to leave, or does so already.

    It is evicted once the watch shows that, so that its successor finds the place open.
    """
    held = given.reservation
    assert held is not None
    patch = _patch(held, is_closed=False, in_turn=in_turn and not given.group)
    return steps.Plan(f"opens Reservation {held.name}", (patch,), facts.LOOK_AGAIN_SECONDS)


def accepted(given: facts.Facts, now: float) -> steps.Plan:
    """Plan what is said of a pod whose eviction was accepted."""
    assert given.pod is not None
    plan = _write(given, _accepted(given, given.pod), now)
    note = f'Pod evicted from node "{given.pod.node}" by the reason "{facts.reason(given.job)}"'
    told = (
        steps.Tell(DESCHEDULED, note, about=steps.About.POD),
        steps.Tell(DESCHEDULED, plan.message, about=steps.About.WORKLOAD),
    )
    return steps.Plan(plan.message, (*plan.steps, *told), facts.LOOK_AGAIN_SECONDS)


def refused(given: facts.Facts, why: str, now: float) -> steps.Plan:
    """Plan what is said of a pod whose eviction was refused for now.

    Its place is closed again, so that no other pod of the workload takes it meanwhile. Where other
    pods of its group leave, their successors use such places.
    """
    change = conditions.Change(conditions.EVICTION, False, conditions.FAILED_EVICT, why)
    plan = _write(given, change, now)
    told = steps.Tell(conditions.FAILED_EVICT, why, warning=True)
    places = () if given.group else closed(given)
    return steps.Plan(plan.message, (*places, *plan.steps, told), _FIRST_PAUSE)


def closed(given: facts.Facts) -> tuple[steps.PatchReservation, ...]:
    """Return what closes the Reservation that was opened for the pod."""
    held = given.reservation
    if held is None or _is_closed(given) or not facts.owns(given.job, held):
        return ()
    return (_patch(held, is_closed=True),)


def _patch(
    held: objects.Reservation, *, is_closed: bool, in_turn: bool = False
) -> steps.PatchReservation:
    body = {"spec": {"unschedulable": is_closed}}
    return steps.PatchReservation(held.name, held.uid, body, in_turn)


def _is_closed(given: facts.Facts) -> bool:
    """Whether the Reservation that was made for the job still keeps all pods away."""
    held = given.reservation
    return held is not None and facts.owns(given.job, held) and held.raw.spec.unschedulable


def _rest(reason: str, told_at: float | None, begun_at: float | None, now: float) -> float:
    """Return how long to wait before the pod is evicted again.

    After a refusal twice as long each time, which the two moments of the condition tell; after an
    acceptance until the watch must have shown the pod terminating.
    """
    told = now if told_at is None else told_at
    if reason == conditions.EVICTING:
        return told + _SEEN_SECONDS - now
    if reason != conditions.FAILED_EVICT:
        return 0.0
    lasted = told - (told if begun_at is None else begun_at)
    return told + min(max(_FIRST_PAUSE, lasted), _LONGEST_PAUSE) - now


def _accepted(given: facts.Facts, pod: podinfo.Pod) -> conditions.Change:
    message = (
        f'Pod "{given.job.pod_key}" evicted from node "{pod.node}" by the reason '
        f'"{facts.reason(given.job)}"'
    )
    return conditions.Change(conditions.EVICTION, False, conditions.EVICTING, message)


def _write(given: facts.Facts, change: conditions.Change, now: float) -> steps.Plan:
    fields = conditions.changed(given.job.status, (change,), now)
    message = change.message or f'Pod "{given.job.pod_key}" is gone'
    return steps.Plan(message, (steps.PatchStatus(fields),))
