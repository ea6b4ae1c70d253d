"""How far a drain is: which jobs are done, which one waits for what. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api import names
from cli.rebalancing import drain_plan
from descheduler.model import objects

_WIDTH: Final = 24
_SUCCEEDED: Final = "Succeeded"
_MOST: Final = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """The jobs of one drain, by what has become of them."""

    moved: tuple[objects.Job, ...]
    open: tuple[objects.Job, ...]
    failed: tuple[objects.Job, ...]

    @property
    def total(self) -> int:
        """Return how many jobs there are."""
        return len(self.moved) + len(self.open) + len(self.failed)


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


def progress(jobs: Mapping[str, objects.Job]) -> Progress:
    """Return how the jobs of a drain are doing."""
    # Of several attempts at one pod the last one counts.
    last = {job.spec.pod_ref.uid or job.pod_key: job for job in sorted(jobs.values(), key=_age)}
    found = sorted(last.values(), key=lambda job: job.pod_key)
    return Progress(
        tuple(job for job in found if job.phase == _SUCCEEDED),
        tuple(job for job in found if job.is_open),
        tuple(job for job in found if not job.is_open and job.phase != _SUCCEEDED),
    )


def bar(found: Progress) -> str:
    """Return one line for people: a bar, counts, and what the jobs wait for."""
    total = max(found.total, 1)
    done = len(found.moved) + len(found.failed)
    full = _WIDTH * done // total
    parts = [f"{len(found.moved)} of {found.total} pods have moved"]
    if found.failed:
        parts.append(f"{len(found.failed)} have not")
    waits = [_wait(job) for job in found.open if job.status.message or job.status.reason]
    if waits:
        parts.append(waits[0])
    return f"[{'#' * full}{'-' * (_WIDTH - full)}] {'; '.join(parts)}"


def failures(found: Progress) -> Iterator[str]:
    """Yield why pods have not moved."""
    for job in found.failed[:_MOST]:
        why = job.status.message or job.status.reason or job.phase
        yield f"{job.pod_key} has not moved ({job.status.reason or job.phase}): {why}"
    if len(found.failed) > _MOST:
        yield f"{len(found.failed) - _MOST} more have not moved"


def lines(plan: drain_plan.Plan) -> Iterator[str]:
    """Yield the preview of a drain."""
    fates = drain_plan.Fate
    moves, rest = plan.of(fates.MOVES), (fates.NO_TARGET, fates.MUST_STAY)
    moving, belong = plan.of(fates.IS_MOVING), plan.of(fates.BELONGS)
    yield f"Node {plan.node}: {_count(len(moves), 'pod moves', 'pods move')}."
    for line in moves:
        together = f" with gang {line.group}" if line.group else ""
        yield f"  {line.pod.key} to {line.target}{together}"
    for fate in rest:
        for line in plan.of(fate):
            yield f"  {line.pod.key} {fate}: {line.reason}"
    if moving:
        yield f"{_count(len(moving), 'pod is', 'pods are')} being moved already."
    if belong:
        said = _count(len(belong), "pod of a DaemonSet or of the kubelet stays",
                      "pods of DaemonSets or of the kubelet stay")  # fmt: skip
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


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _wait(job: objects.Job) -> str:
    return f"{job.pod_key}: {job.status.message or job.status.reason}"


def _age(job: objects.Job) -> tuple[float, str]:
    return job.created, job.name
