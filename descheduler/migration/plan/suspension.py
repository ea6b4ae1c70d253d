"""Open jobs while the live switch lets no pod move: they stand still, and go on afterwards. Pure.

The job itself says so, in a condition like that of a suspended batch Job: from the moment at which
it is resumed it has its whole ttl again, whichever process leads then.
"""

from typing import Final

from api.koordinator import scheduling
from api.wire import durations
from descheduler.migration.plan import conditions, evicting, facts, reservation_template, steps

_LOOK_AGAIN_SECONDS: Final = 30.0
_ENDED: Final = (scheduling.SUCCEEDED, scheduling.FAILED)


def planned(given: facts.Facts, now: float) -> steps.Plan | None:
    """Plan for a job that stands still, or that has to be resumed first; None: it goes on."""
    is_told = conditions.holds(given.job.status, conditions.SUSPENDED)
    if not given.is_switched_off or _is_on_its_way(given):
        if not is_told:
            return None
        resumed = conditions.Change(conditions.SUSPENDED, False, conditions.RESUMED)
        return steps.Plan("is resumed", (_told(given, resumed, now),))
    kept, message = _kept(given), "migration is switched off"
    if is_told:
        return steps.Plan(message, kept, _LOOK_AGAIN_SECONDS)
    suspended = conditions.Change(conditions.SUSPENDED, True, conditions.SWITCHED_OFF)
    return steps.Plan(message, (_told(given, suspended, now), *kept), _LOOK_AGAIN_SECONDS)


def _is_on_its_way(given: facts.Facts) -> bool:
    """Whether a pod of a job or its group is leaving or has left: that is brought to its end.

    An eviction that was refused, or announced and without effect so far, does not count.
    """
    members = ((one.job, one.pod) for one in given.group)
    return any(facts.may_have_left(*one) for one in ((given.job, given.pod), *members))


def _kept(given: facts.Facts) -> tuple[steps.PatchReservation, ...]:
    """Return what keeps the place of a job for as long as it stands still.

    Its Reservation would expire by the ttl of the job otherwise. It still goes with the job. One
    that was opened because the pod was about to leave is closed until the eviction is tried again,
    or another pod of the workload would take it meanwhile. For a pending pod it stays open.
    """
    held = given.reservation
    if held is None or not facts.owns(given.job, held):
        return ()
    spec, status = held.raw.spec, held.raw.status
    is_over = status.phase in _ENDED or held.raw.metadata.deletion_timestamp is not None
    if is_over:
        return ()
    closed = evicting.closed(given) if facts.has_begun(given.job) else ()
    if not spec.ttl or not reservation_template.follows_ttl(given.job):
        return closed
    lasts = {"spec": {"ttl": durations.text(0)}}
    return (*closed, steps.PatchReservation(held.name, held.uid, lasts))


def _told(given: facts.Facts, change: conditions.Change, now: float) -> steps.PatchStatus:
    """Return a write of the condition alone: what else the status says stays as it is."""
    fields = conditions.changed(given.job.status, (change,), now)
    return steps.PatchStatus({"conditions": fields["conditions"]})
