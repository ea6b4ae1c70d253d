"""The one place where the plan of a job becomes writes."""

import dataclasses
from typing import Any, Final, assert_never

from api import resources
from descheduler.migration import eviction_history, evictors, job_metrics, reads, turns
from descheduler.migration.plan import (
    conditions,
    evicting,
    facts,
    reservation_template,
    reserving,
    steps,
)
from descheduler.model import objects
from kube.client import client as clients
from kube.client import errors, wire
from kube.controllers import controller, recorder
from kube.informers import store
from process.runtime import clock as clocks

_KIND: Final = resources.POD_MIGRATION_JOBS
_MANAGER: Final = "koord-descheduler"
_ACTION: Final = "Migrating"
_ECHO_SECONDS: Final = 10.0
_SOON: Final = 0.5
_REFUSALS: Final = (
    errors.TooManyRequests,
    errors.ServerFailure,
    errors.Forbidden,
    errors.Invalid,
    errors.BadRequest,
)
"""Answers that refuse an eviction for now; the watch tells if the pod leaves all the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What writing needs."""

    api: clients.Client
    """Stops writing with the leadership."""
    read: reads.Reads
    evictors: evictors.Evictors
    events: recorder.EventRecorder
    rules: facts.Rules
    clock: clocks.Clock
    figures: job_metrics.JobMetrics
    turns: turns.Turns
    history: eviction_history.EvictionHistory


class JobWriter:
    """Carries out the plans of jobs."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._written: dict[str, tuple[int, float]] = {}
        """Version and moment of the last write of each job."""

    def unseen(self, name: str, seen: store.Store[Any]) -> controller.Outcome | None:
        """Return what to answer while the watch has not shown yet what was written last."""
        version, until = self._written.get(name, (0, 0.0))
        if seen.known_to(name) >= version or self._parts.clock.monotonic() >= until:
            self._written.pop(name, None)
            return None
        return controller.Outcome("waits to see its own write", _SOON, changed=False)

    def forget(self, name: str) -> None:
        """Forget a job that is gone."""
        self._written.pop(name, None)

    async def carry_out(self, plan: steps.Plan, given: facts.Facts) -> controller.Outcome:
        """Do what a plan says, in order, and return its sentence."""
        needs_turn = any(
            isinstance(one, steps.PatchReservation) and one.in_turn for one in plan.steps
        )
        if needs_turn and not self._parts.turns.take(given.job):
            return controller.Outcome("another pod leaves first", _SOON, changed=False)
        if is_beginning(plan):
            # Before another job is looked at, whose limits this eviction counts in.
            self._parts.history.begins(given.job)
        return await self._do(plan, given)

    async def _do(self, plan: steps.Plan, given: facts.Facts) -> controller.Outcome:
        version = given.job.version
        for step in plan.steps:
            match step:
                case steps.PatchJob(body):
                    version = await self._patch(given.job, version, body)
                case steps.PatchStatus(fields):
                    version = await self._patch(given.job, version, {"status": fields}, "status")
                    self._parts.figures.progressed(given.job, fields)
                case steps.CreateReservation():
                    return await self._create(given)
                case steps.PatchReservation(name, uid, body, _):
                    await self._patch_reservation(name, uid, body)
                case steps.DeleteReservation(name, uid):
                    await self._delete_reservation(name, uid)
                case steps.Evict():
                    return await self._evict(given, step)
                case steps.Tell():
                    self._tell(given, step)
                case _:
                    assert_never(step)
        return controller.Outcome(plan.message, plan.again_in, changed=bool(plan.steps))

    # -- jobs ------------------------------------------------------------------------------

    async def _patch(self, job: objects.Job, version: str, body: Any, subresource: str = "") -> str:
        """Patch a job as it was at this version; return the new one."""
        guard = {"uid": job.uid, "resourceVersion": version}
        patch = {**body, "metadata": {**body.get("metadata", {}), **guard}}
        answer = await self._parts.api.patch(
            _KIND, job.name, patch, subresource=subresource, field_manager=_MANAGER
        )
        written = str((answer.get("metadata") or {}).get("resourceVersion", ""))
        self._written[job.name] = (
            wire.number(written),
            self._parts.clock.monotonic() + _ECHO_SECONDS,
        )
        return written

    def _tell(self, given: facts.Facts, step: steps.Tell) -> None:
        regarding = _regarding(given, step.about)
        if regarding is not None:
            kind: recorder.Kind = "Warning" if step.warning else "Normal"
            self._parts.events.event(regarding, kind, step.reason, step.message, _ACTION)

    # -- Reservations ----------------------------------------------------------------------

    async def _create(self, given: facts.Facts) -> controller.Outcome:
        """Create the Reservation, or take the one that an earlier attempt has created."""
        parts, job = self._parts, given.job
        ref = job.spec.pod_ref
        raw = await parts.read.raw_pod(ref.namespace, ref.name)
        if raw is None or (raw.get("metadata") or {}).get("uid") != ref.uid:
            return controller.Outcome("its pod is gone", _SOON, changed=False)
        terms = reservation_template.Terms(
            facts.ttl(job, parts.rules), parts.rules.drops_claims, parts.clock.now()
        )
        body = reservation_template.body(job, raw, terms)
        try:
            made = await parts.api.create(resources.RESERVATIONS, body, field_manager=_MANAGER)
            found: objects.Reservation | None = reads.reservation(made)
        except errors.AlreadyExists:
            found = await parts.read.reservation(reserving.expected_name(job))
        except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
            plan = reserving.not_created(given, str(error), parts.clock.now())
            return await self.carry_out(plan, given)
        if found is None:
            return controller.Outcome("its Reservation is gone again", _SOON, changed=False)
        named = reserving.referenced(job, found)
        if isinstance(named, steps.Failure):
            named = reserving.not_created(given, named.message, parts.clock.now())
        return await self.carry_out(named, given)

    async def _patch_reservation(self, name: str, uid: str, body: Any) -> None:
        patch = {**body, "metadata": {**body.get("metadata", {}), "uid": uid}}
        await self._parts.api.patch(resources.RESERVATIONS, name, patch, field_manager=_MANAGER)

    async def _delete_reservation(self, name: str, uid: str) -> None:
        try:
            await self._parts.api.delete(resources.RESERVATIONS, name, uid=uid)
        except (errors.NotFound, errors.Conflict):
            return  # It is gone, or another one has its name.

    # -- evictions -------------------------------------------------------------------------

    async def _evict(self, given: facts.Facts, how: steps.Evict) -> controller.Outcome:
        """Evict the pod, if job and Reservation are still what the plan was made for."""
        parts, job, pod = self._parts, given.job, given.pod
        assert pod is not None
        pause = 0.0 if how.is_trial else parts.evictors.pause()
        if pause:
            return controller.Outcome("waits for its turn to evict", pause, changed=False)
        why = await self._changed(given)
        if why:
            return controller.Outcome(why, _SOON, changed=False)
        try:
            await parts.evictors.evict(job, pod, how)
        except (errors.NotFound, errors.Conflict):
            return controller.Outcome("its pod is gone", _SOON, changed=False)
        except _REFUSALS as error:
            parts.figures.evicted("error", how.trigger, pod)
            plan = evicting.refused(given, str(error), parts.clock.now())
            return await self.carry_out(plan, given)
        if how.is_trial:
            return await self.carry_out(evicting.opened(given), given)
        parts.figures.evicted("success", how.trigger, pod)
        return await self.carry_out(evicting.accepted(given, parts.clock.now()), given)

    async def _changed(self, given: facts.Facts) -> str:
        """Return what has changed since the plan was made, empty where the pod may be evicted."""
        job = await self._parts.read.job(given.job.name)
        if job is None or job.version != given.job.version:
            return "the job was changed meanwhile"
        named = reserving.reference(job)
        if given.reservation is None or named is None:
            return ""
        held = await self._parts.read.reservation(named.name)
        if held is None or not reserving.is_kept(given, held):
            return f"Reservation {named.name} is no longer there for the pod"
        if given.pod is not None and held.raw.status.node_name == given.pod.node:
            return f"Reservation {named.name} is on the node of the pod"
        return ""


def _regarding(given: facts.Facts, about: steps.About) -> recorder.Regarding | None:
    """Return the object that an event is about; None where it is not known."""
    job, pod = given.job, given.pod
    if about is steps.About.JOB:
        return recorder.Regarding(_KIND.api_version, _KIND.kind, job.name, "", job.uid)
    if pod is None:
        return None
    if about is steps.About.POD:
        return recorder.Regarding("v1", "Pod", pod.name, pod.namespace, pod.uid)
    owner = pod.controller
    if owner is None:
        return None
    return recorder.Regarding(owner.api_version, owner.kind, owner.name, pod.namespace, owner.uid)


def is_beginning(plan: steps.Plan) -> bool:
    """Whether a plan announces the eviction of a pod."""
    return any(
        isinstance(step, steps.PatchStatus)
        and step.fields.get("reason") == conditions.EVICTION_BEGUN
        for step in plan.steps
    )
