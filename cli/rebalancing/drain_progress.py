"""How far a drain is: which jobs are done, which one waits for what. Pure."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from api import names
from cli.rebalancing import drain_plan
from descheduler.migration.plan import conditions
from descheduler.model import objects, podinfo
from domain import wording

_WIDTH: Final = 24
_MOST: Final = 5
_NO_PODS: Final[Mapping[str, podinfo.Pod]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """The pods of one drain, by what has become of them."""

    moved: tuple[objects.Job, ...]
    open: tuple[objects.Job, ...]
    failed: tuple[objects.Job, ...]
    leaving: tuple[podinfo.Pod, ...] = ()
    """Pods that terminate without a job, and run still."""
    left: int = 0
    """How many of those have ended."""

    @property
    def jobs(self) -> int:
        """Return how many jobs there are."""
        return len(self.moved) + len(self.open) + len(self.failed)

    @property
    def departures(self) -> int:
        """Return how many pods leave, or have left, without a job."""
        return len(self.leaving) + self.left


def moving(plan: drain_plan.Plan, jobs: Mapping[str, objects.Job]) -> dict[str, objects.Job]:
    """Return the open jobs, by name, that already move pods of the node."""
    pods = [line.pod for line in plan.of(drain_plan.Fate.IS_MOVING)]
    uids, keys = {pod.uid for pod in pods}, {pod.key for pod in pods}
    return {
        name: job
        for name, job in jobs.items()
        if job.is_open and (job.spec.pod_ref.uid in uids or job.pod_key in keys)
    }


def followed(
    known: Mapping[str, objects.Job], jobs: Mapping[str, objects.Job], node: str
) -> dict[str, objects.Job]:
    """Return the jobs of a drain, by name, as they are now.

    An open job that has been deleted has failed: nothing moves its pod any more.
    """
    gone = {name: _deleted(job) for name, job in known.items() if name not in jobs}
    own = {
        name: job
        for name, job in jobs.items()
        if name in known or job.labels.get(names.LABEL_DRAIN) == node
    }
    return gone | own


def _deleted(job: objects.Job) -> objects.Job:
    if not job.is_open:
        return job
    end = {"phase": "Failed", "reason": "Deleted", "message": "its PodMigrationJob was deleted"}
    return msgspec.structs.replace(job, status=job.status.model_copy(update=end))


def progress(
    jobs: Mapping[str, objects.Job],
    departing: Collection[str] = (),
    there: Mapping[str, podinfo.Pod] = _NO_PODS,
) -> Progress:
    """Return how the pods of a drain are doing.

    `departing` are the uids of those that were leaving already, `there` all pods by uid. A job
    whose pod left before it was evicted has not failed: the pod is one more of those.
    """
    # Of several attempts at one pod the last one counts.
    last = {job.spec.pod_ref.uid or job.pod_key: job for job in sorted(jobs.values(), key=_age)}
    missed = {uid for uid, job in last.items() if _has_missed(job)}
    found = sorted(
        (job for uid, job in last.items() if uid not in missed), key=lambda job: job.pod_key
    )
    pods = {uid: there[uid] for uid in {*departing, *missed} if uid in there}
    leaving = sorted((pod for pod in pods.values() if not pod.has_ended), key=lambda pod: pod.key)
    return Progress(
        tuple(job for job in found if job.phase == conditions.SUCCEEDED),
        tuple(job for job in found if job.is_open),
        tuple(job for job in found if not job.is_open and job.phase != conditions.SUCCEEDED),
        tuple(leaving),
        len({*departing, *missed}) - len(leaving),
    )


def _has_missed(job: objects.Job) -> bool:
    """Whether a job has ended because its pod left by itself, whether a watch shows that or not."""
    return not job.is_open and job.status.reason == conditions.MISSING_POD


def terminating(found: Progress, there: Mapping[str, podinfo.Pod]) -> Sequence[podinfo.Pod]:
    """Return the pods that should have ended by now, those with a job that failed included."""
    evicted = (there.get(job.spec.pod_ref.uid) for job in found.failed)
    late = (pod for pod in evicted if pod is not None and pod.leaves_at >= 0 and not pod.has_ended)
    return [*found.leaving, *late]


def bar(found: Progress) -> str:
    """Return one line for people: a bar, counts, and what is waited for."""
    total = max(found.jobs + found.departures, 1)
    done = len(found.moved) + len(found.failed) + found.left
    full = _WIDTH * done // total
    parts = []
    if found.jobs:
        pods = wording.count(found.jobs, "pod", "pods")
        have = wording.form(len(found.moved), "has", "have")
        parts.append(f"{len(found.moved)} of {pods} {have} moved")
    if found.failed:
        parts.append(f"{wording.count(len(found.failed), 'has', 'have')} not")
    if found.departures:
        pods = wording.count(found.departures, "pod that was", "pods that were")
        have = wording.form(found.left, "has", "have")
        parts.append(f"{found.left} of {pods} leaving already {have} ended")
    waits = [_wait(job) for job in found.open if job.status.message or job.status.reason]
    waits += [f"{pod.key}: the pod is terminating" for pod in found.leaving]
    if waits:
        parts.append(waits[0])
    return f"[{'#' * full}{'-' * (_WIDTH - full)}] {'; '.join(parts)}"


def failures(found: Progress) -> Iterator[str]:
    """Yield why pods have not moved."""
    for job in found.failed[:_MOST]:
        why = job.status.message or job.status.reason or job.phase
        yield f"{job.pod_key} has not moved ({job.status.reason or job.phase}): {why}"
    if more := len(found.failed[_MOST:]):
        yield f"{wording.count(more, 'more has', 'more have')} not moved"


def lines(plan: drain_plan.Plan) -> Iterator[str]:
    """Yield the preview of a drain."""
    fates = drain_plan.Fate
    moves, rest = plan.of(fates.MOVES), (fates.IS_LEAVING, fates.NO_TARGET, fates.MUST_STAY)
    moving, belong = plan.of(fates.IS_MOVING), plan.of(fates.BELONGS)
    yield f"Node {plan.node}: {wording.count(len(moves), 'pod moves', 'pods move')}."
    for line in moves:
        together = f" with gang {line.group}" if line.group else ""
        yield f"  {line.pod.key} to {line.target}{together}"
    for fate in rest:
        for line in plan.of(fate):
            yield f"  {line.pod.key} {fate}: {line.reason}"
    if moving:
        yield f"{wording.count(len(moving), 'pod is', 'pods are')} being moved already."
    if belong:
        said = wording.count(
            len(belong),
            "pod of a DaemonSet or of the kubelet stays",
            "pods of DaemonSets or of the kubelet stay",
        )
        yield f"{said}, as on every node."
    if not plan.empties:
        yield "The node does not become empty."


def document(plan: drain_plan.Plan) -> dict[str, object]:
    """Return the preview as a document."""
    return {
        "node": plan.node,
        "empties": plan.empties,
        "pods": [
            {
                "pod": line.pod.key,
                "fate": line.fate.value,
                "target": line.target,
                "reason": line.reason,
                "group": line.group,
            }
            for line in plan.lines
        ],
    }


def _wait(job: objects.Job) -> str:
    return f"{job.pod_key}: {job.status.message or job.status.reason}"


def _age(job: objects.Job) -> tuple[float, str]:
    return job.created, job.name
