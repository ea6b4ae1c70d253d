"""The eviction of a pod: announced, tried, refused, accepted, complete. Pure.

It is announced in the status before the pod is evicted. So a process that finds the pod gone knows
whether the job has done that, and one that finds it there evicts it: once more at worst, and never
another pod, since the uid is part of every eviction.
"""

from typing import Final

from api import names
from descheduler.migration.plan import conditions, facts, steps
from descheduler.model import podinfo

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
    if pod is None:
        if found is None:
            return steps.Failure(
                conditions.MISSING_POD, f"pod {job.pod_key} left before it was evicted"
            )
        return _write(
            given, conditions.Change(conditions.EVICTION, True, conditions.EVICT_COMPLETE), now
        )
    if pod.leaves_at >= 0:
        if found is None or found.reason != conditions.EVICTING:
            return _write(given, _accepted(given, pod), now)
        return steps.Plan("the pod is terminating", again_in=facts.LOOK_AGAIN_SECONDS)
    if found is None:
        begins = f'evicts Pod "{job.pod_key}" from node "{pod.node}"'
        change = conditions.Change(conditions.EVICTION, False, conditions.EVICTION_BEGUN, begins)
        return _write(given, change, now)
    policy = facts.policy(job, pod, rules)
    rest = _rest(found.reason, found.last_probe_time, found.last_transition_time, now)
    if policy == facts.SOFT and names.ANNOTATION_SOFT_EVICTION in pod.annotations:
        return steps.Plan("waits until the pod is deleted", again_in=facts.LOOK_AGAIN_SECONDS)
    if rest > 0:
        return steps.Plan("waits before the pod is evicted again", again_in=rest)
    return steps.Plan(
        "evicts the pod", (steps.Evict(policy, facts.reason(job), facts.trigger(job)),)
    )


def accepted(given: facts.Facts, now: float) -> steps.Plan:
    """Plan what is said of a pod whose eviction was accepted."""
    assert given.pod is not None
    plan = _write(given, _accepted(given, given.pod), now)
    note = f'Pod evicted from node "{given.pod.node}" by the reason "{facts.reason(given.job)}"'
    told = steps.Tell("Descheduled", note, on_pod=True)
    return steps.Plan(plan.message, (*plan.steps, told), facts.LOOK_AGAIN_SECONDS)


def refused(given: facts.Facts, why: str, now: float) -> steps.Plan:
    """Plan what is said of a pod whose eviction was refused for now."""
    change = conditions.Change(conditions.EVICTION, False, conditions.FAILED_EVICT, why)
    plan = _write(given, change, now)
    told = steps.Tell(conditions.FAILED_EVICT, why, warning=True)
    return steps.Plan(plan.message, (*plan.steps, told), _FIRST_PAUSE)


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
