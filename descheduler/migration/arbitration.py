"""Lets waiting jobs begin, every half second, as far as limits allow."""

import logging
from collections.abc import Callable
from typing import Final

from api import names, resources
from descheduler.migration import stores
from descheduler.migration.plan import arbitrator, conditions
from descheduler.model import objects, picture, podinfo
from kube.client import client as clients
from kube.client import errors
from kube.controllers import recorder
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_KIND: Final = resources.POD_MIGRATION_JOBS
_ECHO_SECONDS: Final = 10.0
Pictures = Callable[[float], picture.Picture]
ChecksOf = Callable[[picture.Picture], arbitrator.Checks]


class Arbitration:
    """Decides about new jobs during one term of leadership."""

    def __init__(
        self,
        seen: stores.Stores,
        pictures: Pictures,
        checks: ChecksOf,
        api: clients.Client,
        events: recorder.EventRecorder,
        clock: clocks.Clock,
    ) -> None:
        self._seen = seen
        self._pictures = pictures
        self._checks = checks
        self._api = api
        self._events = events
        self._clock = clock
        self._written: dict[str, float] = {}
        """Until when a job is left alone that was written and that the watch does not show yet."""
        self.waiting: dict[str, str] = {}
        """Why jobs do not begin yet, by name."""

    async def run(self, interval: float, enforces: Callable[[], bool]) -> None:
        """Decide about waiting jobs, for ever."""
        while True:
            await self._clock.sleep(interval)
            if enforces():
                await self.once()

    async def once(self) -> None:
        """Decide about all waiting jobs once."""
        now = self._clock.monotonic()
        self._written = {k: until for k, until in self._written.items() if until > now}
        waiting = [job for job in self._seen.jobs if arbitrator.is_waiting(job)]
        if not any(job.uid not in self._written for job in waiting):
            self.waiting = {}
            return
        seen = self._pictures(self._clock.now())
        decided = arbitrator.arbitrated(seen, self._pods(seen), self._checks(seen))
        self.waiting = dict(decided.waiting)
        verdicts = {**dict.fromkeys(decided.passed, ""), **decided.failed}
        for name, why in verdicts.items():
            job = seen.jobs[name]
            if job.uid not in self._written:
                await self._write(job, why)

    def _pods(self, seen: picture.Picture) -> dict[str, podinfo.Pod]:
        """Return the pods of jobs, by job; a successor of the same name is no such pod."""
        found = {}
        for job in seen.jobs.values():
            pod = self._seen.pods.get(job.pod_key)
            if pod is not None and job.spec.pod_ref.uid in ("", pod.uid):
                found[job.name] = pod
        return found

    async def _write(self, job: objects.Job, why: str) -> None:
        """Let a job begin, or write why it never can."""
        try:
            await (self._refuse(job, why) if why else self._let_begin(job))
        except (errors.Conflict, errors.NotFound):
            return  # It is decided about anew, as it is now.
        except errors.Deposed:
            raise
        except errors.KubeError as error:
            logger.warning("arbitration was not written job=%s error=%s", job.name, error)
            return
        self._written[job.uid] = self._clock.monotonic() + _ECHO_SECONDS

    async def _let_begin(self, job: objects.Job) -> None:
        notes = {names.ANNOTATION_PASSED_ARBITRATION: "true"}
        guard = {"uid": job.uid, "resourceVersion": job.version}
        await self._api.patch(_KIND, job.name, {"metadata": {**guard, "annotations": notes}})

    async def _refuse(self, job: objects.Job, why: str) -> None:
        fields = conditions.failed(job.status, conditions.FORBIDDEN, why)
        guard = {"uid": job.uid, "resourceVersion": job.version}
        body = {"metadata": guard, "status": fields}
        await self._api.patch(_KIND, job.name, body, subresource="status")
        regarding = recorder.Regarding(_KIND.api_version, _KIND.kind, job.name, "", job.uid)
        self._events.event(regarding, "Warning", conditions.FORBIDDEN, why, "Migrating")
