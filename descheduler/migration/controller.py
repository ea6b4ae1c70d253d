"""Carries PodMigrationJobs out, one at a time each, and forgets those that ended long ago."""

import dataclasses
import logging
from collections.abc import Callable
from typing import Final

from api import resources
from descheduler.migration import job_facts, job_metrics, job_writer, stores
from descheduler.migration.plan import facts, gang_barrier, job_plan, retention
from descheduler.model import objects
from kube.client import client as clients
from kube.client import errors
from kube.controllers import controller, workqueue
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

NAME: Final = "migration"
SCAVENGE_SECONDS: Final = 60.0
_COUNT_SECONDS: Final = 15.0
_SWITCH_SECONDS: Final = 1.0


class Jobs:
    """Reconciles jobs during one term of leadership."""

    def __init__(
        self,
        seen: stores.Stores,
        gather: job_facts.JobFacts,
        writer: job_writer.JobWriter,
        rules: facts.Rules,
        clock: clocks.Clock,
        enforces: Callable[[], bool],
    ) -> None:
        """`enforces`: whether pods may be moved at this moment."""
        self._seen = seen
        self._gather = gather
        self._writer = writer
        self._rules = rules
        self._clock = clock
        self._enforces = enforces

    async def reconcile(self, name: str) -> controller.Outcome:
        """Do the next step of one job."""
        job = self._seen.jobs.get(name)
        if job is None:
            self._writer.forget(name)
            return controller.Outcome("is gone", changed=False)
        unseen = self._writer.unseen(name, self._seen.jobs)
        if unseen is not None:
            return unseen
        given = await self._facts(job)
        plan = job_plan.planned(given, self._rules, self._clock.now())
        if gang_barrier.group(job) and job_writer.is_beginning(plan):
            given = await self._gather.confirmed(given)
            plan = job_plan.planned(given, self._rules, self._clock.now())
        return await self._writer.carry_out(plan, given)

    async def _facts(self, job: objects.Job) -> facts.Facts:
        given = await self._gather.of(job)
        # Asked last: gathering may have read from the API server.
        return dataclasses.replace(given, is_switched_off=not self._enforces())


class Scavenger:
    """Deletes jobs that nobody needs any more; what was reserved for them goes with them."""

    def __init__(
        self,
        seen: stores.Stores,
        api: clients.Client,
        rules: facts.Rules,
        clock: clocks.Clock,
        enforces: Callable[[], bool],
        counted_seconds: float,
    ) -> None:
        """`enforces`: whether pods may be moved at this moment; open jobs stay while not.

        `counted_seconds`: how long limits count an eviction.
        """
        self._seen = seen
        self._api = api
        self._rules = rules
        self._clock = clock
        self._enforces = enforces
        self._counted_seconds = counted_seconds

    async def run(self) -> None:
        """Look once a minute, for ever."""
        while True:
            await self._clock.sleep(SCAVENGE_SECONDS)
            await self.once()

    async def once(self) -> None:
        """Delete what is old enough."""
        now = self._clock.now()
        counted = retention.counted(self._seen.jobs, self._counted_seconds, now)
        for job in list(self._seen.jobs):
            if job.leaves_at >= 0 or now < retention.deleted_at(job, self._rules):
                continue
            if job.uid in counted or (job.is_open and not self._enforces()):
                continue
            try:
                await self._api.delete(resources.POD_MIGRATION_JOBS, job.name, uid=job.uid)
            except (errors.NotFound, errors.Conflict):
                continue
            except errors.KubeError as error:
                logger.warning("old job is left for now job=%s error=%s", job.name, error)


async def follow_switch(
    seen: stores.Stores, queue: workqueue.Queue, clock: clocks.Clock, enforces: Callable[[], bool]
) -> None:
    """Have all open jobs looked at once the switch has changed, for ever."""
    before = enforces()
    while True:
        await clock.sleep(_SWITCH_SECONDS)
        now = enforces()
        if now is before:
            continue
        before = now
        for job in seen.jobs:
            if job.is_open:
                queue.add(job.name)


async def count(seen: stores.Stores, figures: job_metrics.JobMetrics, clock: clocks.Clock) -> None:
    """Export how many jobs there are, on every replica, for ever."""
    while True:
        figures.count(seen.jobs)
        await clock.sleep(_COUNT_SECONDS)
