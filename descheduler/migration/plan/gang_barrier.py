"""Pods that move together or not at all: none is evicted before all of them may be. Pure."""

from api import names
from api.koordinator import migration
from descheduler.migration.plan import conditions, facts, steps
from descheduler.model import budgets, objects
from domain import wording

_MOST = 10_000


def group(job: objects.Job) -> str:
    """Return the group in which a job moves, empty where it moves alone."""
    return job.annotations.get(names.ANNOTATION_MIGRATION_GROUP, "")


def size(job: objects.Job) -> int:
    """Return how many jobs its group has; at least this one."""
    written = job.annotations.get(names.ANNOTATION_MIGRATION_GROUP_SIZE, "")
    known = written.isascii() and written.isdigit() and len(written) <= len(str(_MOST))
    return max(int(written), 1) if known else 1


def broken(given: facts.Facts) -> steps.Failure | None:
    """Return why a group can not move as a whole any more; None: it may, or it is moving."""
    if not group(given.job) or moves(given):
        return None
    jobs = [member.job for member in given.group]
    over = next((one for one in jobs if not one.is_open or one.leaves_at >= 0), None)
    if over is None:
        return None
    why = f": {over.status.message}" if over.status.message else ""
    return steps.Failure(
        conditions.GROUP_FAILED,
        f"job {over.name} of pod {over.pod_key}, which moves along, is {over.phase}{why}",
    )


def held_up(given: facts.Facts, rules: facts.Rules) -> steps.Plan | None:
    """Return why a pod of a group is not evicted yet; None: it may be evicted."""
    if not group(given.job) or moves(given):
        return None
    ready, wanted = sum(_is_ready(one.job, rules) for one in given.group), size(given.job)
    if ready < wanted:
        have = wording.form(ready, "has", "have")
        message = f"{ready} of {wanted} pods that move together {have} a place"
        return steps.Plan(message, again_in=facts.LOOK_AGAIN_SECONDS)
    short = _short(given)
    return steps.Plan(short, again_in=facts.LOOK_AGAIN_SECONDS) if short else None


def moves(given: facts.Facts) -> bool:
    """Whether a group is on its way: where some have left, all have to follow.

    A job whose eviction was only refused moves nothing, whether it has ended or tries again.
    """
    return any(map(is_on_its_way, given.group))


def is_on_its_way(member: facts.Member) -> bool:
    """Whether a pod has begun to leave, or its eviction is being tried at this moment."""
    job = member.job
    told = conditions.state(job.status, conditions.EVICTION)
    is_tried = job.is_open and told is not None and told.reason != conditions.FAILED_EVICT
    return is_tried or facts.may_have_left(job, member.pod)


def _is_ready(job: objects.Job, rules: facts.Rules) -> bool:
    if job.spec.paused or job.phase != conditions.RUNNING:
        return False
    if facts.mode(job, rules) == migration.EVICT_DIRECTLY:
        return True
    return conditions.holds(job.status, conditions.RESERVATION_SCHEDULED)


def _short(given: facts.Facts) -> str:
    """Return which disruption budget does not allow to evict all of them now."""
    pods = [member.pod for member in given.group if member.pod is not None]
    for budget in given.budgets:
        moving = sum(budgets.covers(budget, pod) for pod in pods)
        if moving > budget.allowed:
            evictions = wording.count(budget.allowed, "eviction", "evictions")
            together = wording.count(moving, "pod moves", "pods move")
            return f"PodDisruptionBudget {budget.key} allows {evictions} now, {together} together"
    return ""
