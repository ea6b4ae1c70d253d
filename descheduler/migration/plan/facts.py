"""What a PodMigrationJob is decided on: the API objects that concern it, and the rules. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator import migration
from descheduler.configuration import by_profile
from descheduler.migration.plan import conditions
from descheduler.model import objects, podinfo

SETTLING_SECONDS: Final = 120.0
"""How long a job still waits for the new pod once the old one was evicted, even after its ttl."""
LOOK_AGAIN_SECONDS: Final = 3.0
_LONGEST_NAME: Final = 128
_LONGEST_REASON: Final = 512
"""Characters that are repeated in messages, events and metrics."""
EVICTION: Final = "Eviction"
DELETE: Final = "Delete"
SOFT: Final = "SoftEviction"
POLICIES: Final = (EVICTION, DELETE, SOFT)


@dataclasses.dataclass(frozen=True, slots=True)
class Defaults:
    """What the arguments of MigrationController say about jobs that do not say it themselves."""

    mode: str = migration.RESERVATION_FIRST
    ttl: float = 300.0
    """Seconds; 0: a job without a ttl of its own never times out."""
    eviction_policy: str = EVICTION
    """Empty for a new job: it names none, and that of its profile holds."""
    delete_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """In the form of the API."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """How jobs are carried out."""

    defaults: by_profile.ByProfile[Defaults] = dataclasses.field(
        default_factory=lambda: by_profile.ByProfile(Defaults())
    )
    drops_claims: bool = False
    """Whether Reservations leave out volumes (feature gate DisablePVCReservation)."""
    patience_seconds: float = 60.0
    """How long a Reservation may be unschedulable on the one node that the round has chosen."""

    def of(self, job: objects.Job) -> Defaults:
        """Return what holds for a job."""
        return self.defaults.of(profile(job))


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One job of a group of pods that move together or not at all."""

    job: objects.Job
    pod: podinfo.Pod | None


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """A job with everything that its next step depends on."""

    job: objects.Job
    pod: podinfo.Pod | None = None
    """The pod that is to move; None where it is gone, or another one has its name."""
    reservation: objects.Reservation | None = None
    """The Reservation that the job names, else the one that was made for it."""
    owner: podinfo.Pod | None = None
    """The pod that uses the Reservation; None where it is gone, or there is none yet."""
    group: Sequence[Member] = ()
    """The jobs of its group, this one included; empty where it moves alone."""
    budgets: Sequence[objects.Budget] = ()
    """PodDisruptionBudgets of the namespaces of its group."""
    ahead: str = ""
    """The job of the same workload whose Reservation is open: its pod leaves first."""
    held_back_seconds: float = 0.0
    """How long the limits of its workload or namespace still forbid an eviction."""
    is_switched_off: bool = False
    """Whether the live switch lets no pod move at this moment."""


def mode(job: objects.Job, rules: Rules) -> str:
    """Return ReservationFirst or EvictDirectly."""
    return job.spec.mode or rules.of(job).mode


def ttl(job: objects.Job, rules: Rules) -> float | None:
    """Return after how many seconds a job times out; None: never."""
    written = job.spec.ttl
    return (rules.of(job).ttl if written is None else written) or None


def counts_from(job: objects.Job) -> float:
    """Return from when the ttl of a job counts: its creation, or when it was resumed last."""
    told = conditions.state(job.status, conditions.SUSPENDED)
    resumed = told.last_transition_time if told is not None else None
    return job.created if resumed is None else max(job.created, resumed)


def policy(job: objects.Job, pod: podinfo.Pod | None, rules: Rules) -> str:
    """Return how the pod is evicted: its label decides, then that of the job."""
    labels = (pod.labels if pod is not None else {}, job.labels)
    for found in (one.get(names.LABEL_EVICT_POLICY) for one in labels):
        if found is not None:
            return found if found in POLICIES else rules.of(job).eviction_policy
    return rules.of(job).eviction_policy


def profile(job: objects.Job) -> str:
    """Return the profile whose pod a job moves, empty where it names none."""
    return job.annotations.get(names.ANNOTATION_MIGRATION_PROFILE, "")


def trigger(job: objects.Job) -> str:
    """Return the plug-in that wanted the pod to leave."""
    return job.annotations.get(names.ANNOTATION_EVICT_TRIGGER, "")[:_LONGEST_NAME]


def reason(job: objects.Job) -> str:
    """Return why the pod leaves, for people."""
    written = job.annotations.get(names.ANNOTATION_EVICT_REASON, "")[:_LONGEST_REASON]
    return written or trigger(job) or "NotSet"


def workload(job: objects.Job) -> str:
    """Return the uid of the controller of the pod of a job, empty while that is not known."""
    return job.annotations.get(names.ANNOTATION_MIGRATION_WORKLOAD, "")


def has_begun(job: objects.Job) -> bool:
    """Whether the pod of a job was evicted, or may have been."""
    return conditions.state(job.status, conditions.EVICTION) is not None


def was_accepted(job: objects.Job) -> bool:
    """Whether the eviction of the pod of a job was accepted, as far as its status tells."""
    told = conditions.state(job.status, conditions.EVICTION)
    return told is not None and told.reason in (conditions.EVICTING, conditions.EVICT_COMPLETE)


def may_have_left(job: objects.Job, pod: podinfo.Pod | None) -> bool:
    """Whether the pod of a job has begun to leave, or is gone, since its eviction was announced.

    A pod of the same name that is another one is its successor.
    """
    if not has_begun(job):
        return False
    is_gone = pod is None or job.spec.pod_ref.uid not in ("", pod.uid) or pod.leaves_at >= 0
    return is_gone or was_accepted(job)


def owns(job: objects.Job, reservation: objects.Reservation) -> bool:
    """Whether a Reservation was made for this job; others are used and never deleted."""
    return any(one.uid == job.uid for one in reservation.raw.metadata.owner_references)


def deadline(given: Facts, rules: Rules) -> float | None:
    """Return when a job times out, in seconds since the epoch; None: never.

    A job whose pod was evicted waits until the pod has ended and some time for the new one: to give
    the reserved place away in between would gain nothing.
    """
    seconds = ttl(given.job, rules)
    if seconds is None:
        return None
    ends = counts_from(given.job) + seconds
    for member in given.group:
        ends = max(ends, _settled(member.job, member.pod, seconds))
    return max(ends, _settled(given.job, given.pod, SETTLING_SECONDS))


def _settled(job: objects.Job, pod: podinfo.Pod | None, seconds: float) -> float:
    """Return until when the eviction of a pod is waited for; 0 where none was accepted."""
    found = conditions.state(job.status, conditions.EVICTION)
    if found is None or found.reason == conditions.FAILED_EVICT:
        return 0.0
    leaves_at = pod.leaves_at if pod is not None else -1.0
    return max(leaves_at, found.last_probe_time or 0.0) + seconds
