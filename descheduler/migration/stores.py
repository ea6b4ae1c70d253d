"""What the migration of pods watches, with the indexes by which a change finds its jobs."""

from collections.abc import Iterable, Iterator

from api import resources
from descheduler.migration.plan import facts, gang_barrier, reserving
from descheduler.model import objects, podinfo
from kube.informers import store


class Stores:
    """Jobs, their pods and Reservations, and the disruption budgets of groups."""

    def __init__(
        self,
        jobs: store.Store[objects.Job],
        pods: store.Store[podinfo.Pod],
        reservations: store.Store[objects.Reservation],
        budgets: store.Store[objects.Budget],
    ) -> None:
        self.jobs = jobs
        self.pods = pods
        self.reservations = reservations
        self.budgets = budgets
        self._jobs = store.Index(jobs, _words)
        self._made = store.Index(reservations, _makers)

    def reservation(self, job: objects.Job) -> objects.Reservation | None:
        """Return the Reservation that a job names, else the one that was made for it."""
        named = reserving.reference(job)
        if named is not None:
            return self.reservations.get(named.name)
        found = map(self.reservations.get, sorted(self._made.keys(job.name)))
        return next((one for one in found if one is not None and facts.owns(job, one)), None)

    def group(self, job: objects.Job) -> list[objects.Job]:
        """Return the jobs that move together with this one, itself included."""
        name = gang_barrier.group(job)
        keys = sorted(self._jobs.keys(f"group/{name}")) if name else ()
        return [one for one in map(self.jobs.get, keys) if one is not None]

    def of_workload(self, uid: str) -> Iterator[objects.Job]:
        """Yield the jobs that move pods of one controller, in order."""
        found = map(self.jobs.get, sorted(self._jobs.keys(f"workload/{uid}")))
        return (one for one in found if one is not None)

    def budgets_of(self, namespace: str) -> list[objects.Budget]:
        """Return the disruption budgets of a namespace."""
        return [one for one in self.budgets if one.key.partition("/")[0] == namespace]

    # -- which jobs a change concerns ------------------------------------------------------

    def of_job(self, change: store.Change[objects.Job]) -> Iterable[str]:
        """Return the job that changed, and those that move together with it."""
        groups = {gang_barrier.group(one) for one in (change.old, change.new) if one is not None}
        found = {change.key}
        for name in groups - {""}:
            found |= self._jobs.keys(f"group/{name}")
        return sorted(found)

    def of_pod(self, change: store.Change[podinfo.Pod]) -> Iterable[str]:
        """Return the jobs that move a pod, or whose Reservation it uses."""
        return sorted(self._jobs.keys(f"pod/{change.key}"))

    def of_reservation(self, change: store.Change[objects.Reservation]) -> Iterable[str]:
        """Return the jobs that a Reservation was made for, and those that name it.

        The other jobs of their workloads may wait for it to be used.
        """
        found = set(self._jobs.keys(f"reservation/{change.key}"))
        for one in (change.old, change.new):
            found |= set(_makers(one)) if one is not None else set()
        jobs = [job for name in found if (job := self.jobs.get(name)) is not None]
        for workload in {facts.workload(job) for job in jobs} - {""}:
            found |= self._jobs.keys(f"workload/{workload}")
        return sorted(found)


def _words(job: objects.Job) -> Iterator[str]:
    yield f"pod/{job.pod_key}"
    new = job.status.pod_ref
    if new is not None:
        yield f"pod/{new.namespace}/{new.name}"
    named = reserving.reference(job)
    if named is not None:
        yield f"reservation/{named.name}"
    if workload := facts.workload(job):
        yield f"workload/{workload}"
    group = gang_barrier.group(job)
    if group:
        yield f"group/{group}"


def _makers(reservation: objects.Reservation) -> Iterator[str]:
    """Yield the names of the jobs that a Reservation was made for."""
    kind = resources.POD_MIGRATION_JOBS
    for one in reservation.raw.metadata.owner_references:
        if one.kind == kind.kind and one.api_version == kind.api_version:
            yield one.name
