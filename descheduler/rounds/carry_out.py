"""What a round has decided, carried out: cordons, notes on pods, PodMigrationJobs, evictions."""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any

from api import names, resources
from api.wire import base
from descheduler.configuration import by_profile
from descheduler.framework import protocols
from descheduler.framework.planning import round_plan
from descheduler.migration.plan import facts, jobs
from descheduler.model import object_projection, picture, podinfo
from descheduler.receipts import receipt
from descheduler.rounds import awaited, round_metrics
from kube.client import client as clients
from kube.client import errors
from kube.controllers import recorder
from process.runtime import clock as clocks
from process.runtime import token_bucket

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What moves are carried out with."""

    api: clients.Client
    """Writes nothing once the term is over."""
    events: recorder.EventRecorder
    clock: clocks.Clock
    pace: token_bucket.ClockedBucket
    """Requests per second, of clientConnection."""
    defaults: by_profile.ByProfile[facts.Defaults]
    """Of the jobs of each profile."""
    waits: awaited.Awaited
    figures: round_metrics.RoundMetrics
    enforces: Callable[[], bool]
    """Whether pods may be moved at this moment."""
    created_by: str = ""
    """Names this process on the jobs that it creates."""


class _SwitchedOff(Exception):  # noqa: N818 - no error: what is left of the round is not tried
    """The live switch lets no pod move any more."""


class CarryOut:
    """Turns the plan of a round into objects; what fails is counted, logged and left alone."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def apply(
        self,
        plan: round_plan.RoundPlan,
        seen: picture.Picture,
        receipts: Mapping[str, receipt.Receipt],
    ) -> int:
        """Carry a plan out; return how many pods will move. Receipts are by uid of the pod.

        Once the API server is away, the term has ended or the live switch is thrown, nothing more
        is tried: the next round decides anew.
        """
        moved = 0
        try:
            for cordon in plan.cordons:
                await self._cordon(cordon, seen)
            await self._write_notes(plan.annotations, seen)
            bodies = {
                one.pod.uid: self._body(one, receipts.get(one.pod.uid), seen.now)
                for one in jobs.of_moves(plan.moves, seen.now)
            }
            for move in plan.moves:
                moved += await self._move(move, bodies.get(move.suggestion.pod.uid))
        except (errors.Deposed, *errors.OUTAGE) as error:
            logger.warning("round is cut short moved=%d error=%s", moved, error)
        except _SwitchedOff:
            logger.warning("round is cut short moved=%d reason=switched off", moved)
        return moved

    async def _turn(self) -> None:
        """Wait for the turn of a write: a long round lasts minutes, and may be switched off."""
        await self._parts.pace.wait()
        if not self._parts.enforces():
            raise _SwitchedOff

    def _body(
        self, wanted: jobs.Wanted, told: receipt.Receipt | None, round_started: float
    ) -> dict[str, Any]:
        """Return the job of a move, with what the move is expected to bring."""
        name = jobs.name(wanted.pod, round_started)
        defaults = self._parts.defaults.of(wanted.profile)
        body = jobs.body(name, wanted, defaults, self._parts.created_by)
        if told is not None:
            body["metadata"]["annotations"][names.ANNOTATION_MIGRATION_RECEIPT] = receipt.text(told)
        return body

    async def _move(self, move: round_plan.Move, job: dict[str, Any] | None) -> bool:
        figures = self._parts.figures
        if move.dry_run:
            figures.moved(move, round_metrics.DRY_RUN)
            return False
        await self._turn()
        pod = move.suggestion.pod
        try:
            if job is not None:
                await self._create(job)
            else:
                await self._evict(move)
        except (errors.TooManyRequests, errors.NotFound, errors.Conflict) as error:
            # A disruption budget forbids it, or the pod has gone.
            logger.info("pod stays pod=%s reason=%s", pod.key, error)
        except (errors.Deposed, *errors.OUTAGE):
            figures.moved(move, round_metrics.FAILED)
            raise
        except errors.KubeError as error:
            logger.warning("pod could not be moved pod=%s error=%s", pod.key, error)
        else:
            figures.moved(move, round_metrics.MOVED)
            return True
        figures.moved(move, round_metrics.FAILED)
        return False

    async def _create(self, body: dict[str, Any]) -> None:
        parts = self._parts
        try:
            raw = await parts.api.create(resources.POD_MIGRATION_JOBS, body)
        except errors.AlreadyExists:
            return
        try:
            parts.waits.add(object_projection.job(raw), parts.clock.monotonic())
        except base.ReadError as error:
            name = body["metadata"]["name"]
            logger.warning("created job cannot be read job=%s error=%s", name, error)

    async def _evict(self, move: round_plan.Move) -> None:
        """Evict a pod without a job, as DefaultEvictor does."""
        pod, reason = move.suggestion.pod, move.suggestion.reason
        try:
            await self._parts.api.evict(pod.namespace, pod.name, uid=pod.uid)
        except errors.KubeError:
            self._parts.figures.evicted(move, is_accepted=False)
            raise
        self._parts.figures.evicted(move, is_accepted=True)
        note = f'Pod evicted from node "{pod.node}" by the reason "{reason}"'
        self._parts.events.event(_regarding(pod), "Normal", "Descheduled", note, "Migrating")

    async def _cordon(self, cordon: protocols.Cordon, seen: picture.Picture) -> None:
        node = seen.nodes.get(cordon.node)
        if node is None or not node.is_schedulable:
            return
        await self._turn()
        body = {"metadata": {"uid": node.uid}, "spec": {"unschedulable": True}}
        await self._patch(resources.NODES, cordon.node, body)
        logger.info("node cordoned node=%s reason=%s", cordon.node, cordon.reason)

    async def _write_notes(
        self, annotations: Mapping[str, Mapping[str, str]], seen: picture.Picture
    ) -> None:
        left = protocols.MOST_ANNOTATED
        for uid, notes in annotations.items():
            pod = seen.pods.get(uid)
            if pod is None or all(pod.annotations.get(k) == v for k, v in notes.items()):
                continue
            if not left:
                return
            left -= 1
            await self._turn()
            body = {"metadata": {"uid": uid, "annotations": dict(notes)}}
            await self._patch(resources.PODS, pod.name, body, pod.namespace)

    async def _patch(
        self, resource: resources.Resource, name: str, body: dict[str, Any], namespace: str = ""
    ) -> None:
        try:
            await self._parts.api.patch(resource, name, body, namespace=namespace)
        except (errors.Deposed, *errors.OUTAGE):
            raise
        except errors.KubeError as error:
            logger.warning(
                "object could not be changed resource=%s name=%s error=%s",
                *(resource.review_name(), name, error),
            )


def _regarding(pod: podinfo.Pod) -> recorder.Regarding:
    return recorder.Regarding("v1", "Pod", pod.name, pod.namespace, pod.uid)
