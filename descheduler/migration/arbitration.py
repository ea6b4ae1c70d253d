"""Lets waiting jobs begin, every half second, as far as limits allow."""

import logging
from collections.abc import Callable
from typing import Any, Final

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
_IDLE_SECONDS: Final = 3.0
_PATIENCE_SECONDS: Final = 5.0
"""How long a job waits before its status says why."""
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
        self._idle = (-1, 0.0)
        """Version of the jobs at the last look, and until when only a change repeats it."""
        self._said: dict[str, str] = {}
        """What was written last about why a job waits, by uid."""
        self.waiting: dict[str, str] = {}
        """Why jobs do not begin yet, by name."""

    async def run(self, interval: float, enforces: Callable[[], bool]) -> None:
        """Decide about waiting jobs, for ever."""
        while True:
            await self._clock.sleep(interval)
            if not enforces():
                continue
            try:
                await self.once()
            except errors.Deposed as error:
                logger.info("arbitration ends with its term error=%s", error)

    async def once(self) -> None:
        """Decide about all waiting jobs once."""
        now = self._clock.monotonic()
        self._written = {k: until for k, until in self._written.items() if until > now}
        waiting = [job for job in self._seen.jobs if arbitrator.is_waiting(job)]
        here = {job.uid for job in waiting}
        self._said = {uid: why for uid, why in self._said.items() if uid in here}
        if not any(uid not in self._written for uid in here):
            self.waiting = {}
            return
        if self._is_idle(now):
            return
        seen = self._pictures(self._clock.now())
        decided = arbitrator.arbitrated(seen, self._pods(seen), self._checks(seen))
        self.waiting = dict(decided.waiting)
        for name, why in decided.waiting.items():
            await self._say(seen.jobs[name], why)
        self._idle = (self._seen.jobs.version, now + _IDLE_SECONDS)
        verdicts = {**dict.fromkeys(decided.passed, ""), **decided.failed}
        for name, why in verdicts.items():
            job = seen.jobs[name]
            if job.uid not in self._written:
                await self._write(job, why)

    def _is_idle(self, now: float) -> bool:
        """Whether no job has changed since the last look, which was a moment ago.

        A picture of a large cluster costs milliseconds, and most limits end with a job.
        """
        version, until = self._idle
        return version == self._seen.jobs.version and now < until

    def _pods(self, seen: picture.Picture) -> dict[str, podinfo.Pod]:
        """Return the pods of jobs, by job; a successor of the same name is no such pod."""
        found = {}
        for job in seen.jobs.values():
            pod = self._seen.pods.get(job.pod_key)
            if pod is not None and job.spec.pod_ref.uid in ("", pod.uid):
                found[job.name] = pod
        return found

    async def _say(self, job: objects.Job, why: str) -> None:
        """Write why a job waits, unless it says so already or has only just begun to wait."""
        is_new = self._clock.now() - job.created < _PATIENCE_SECONDS
        if is_new or job.status.message == why or self._said.get(job.uid) == why:
            return
        self._said[job.uid] = why
        fields = {"reason": conditions.WAIT_FOR_ARBITRATION, "message": why}
        try:
            await self._patch(job, {"status": fields}, "status")
        except errors.Deposed:
            raise
        except errors.KubeError as error:
            logger.info("reason of waiting was not written job=%s error=%s", job.name, error)

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
        await self._patch(job, {"metadata": {"annotations": notes}})

    async def _refuse(self, job: objects.Job, why: str) -> None:
        fields = conditions.failed(job.status, conditions.FORBIDDEN, why, self._clock.now())
        await self._patch(job, {"status": fields}, "status")
        regarding = recorder.Regarding(_KIND.api_version, _KIND.kind, job.name, "", job.uid)
        self._events.event(regarding, "Warning", conditions.FORBIDDEN, why, "Migrating")

    async def _patch(self, job: objects.Job, body: dict[str, Any], subresource: str = "") -> None:
        """Patch a job as it was decided about."""
        guard = {"uid": job.uid, "resourceVersion": job.version}
        patch = {**body, "metadata": {**body.get("metadata", {}), **guard}}
        await self._api.patch(_KIND, job.name, patch, subresource=subresource)
