"""Writes receipts on jobs, tells of them, and remembers what must outlive the process."""

import collections
import dataclasses
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Final

from api import names, resources
from api.koordinator import event_reasons
from api.wire import untrusted
from descheduler.model import picture
from descheduler.receipts import ledger, memory, receipt
from kube.client import client as clients
from kube.client import errors
from kube.controllers import recorder
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 15.0
"""How often it is looked whether a move has settled."""
_RETRY_SECONDS: Final = 2.0
PAID: Final = "MovePaid"
NOT_PAID: Final = "MoveDidNotPay"
UNKNOWN: Final = "MoveOutcomeUnknown"
HALTED: Final = "ProfileHalted"
_REASONS: Final[Mapping[receipt.Verdict, event_reasons.Reason]] = {
    receipt.Verdict.PAID: PAID,
    receipt.Verdict.NOT_PAID: NOT_PAID,
    receipt.Verdict.UNKNOWN: UNKNOWN,
}
MOST_SERIES: Final = 128
"""Pairs of a profile and a plug-in that are counted one by one; receipts name what they like."""
_KINDS: Final = ("expected", "gained", "lost")
_MANAGER: Final = "koord-descheduler"


class ReceiptMetrics:
    """What moves have brought, by profile."""

    def __init__(self, registry: metrics.Registry, halted: Callable[[], dict[str, float]]) -> None:
        self._settled = registry.counter(
            "koord_descheduler_moves_settled_total",
            "Moves whose outcome is known: Paid, NotPaid, Unknown or NotMoved.",
            ("profile", "plugin", "verdict"),
        )
        self._points = registry.counter(
            "koord_descheduler_gain_points_total",
            "Points that moves were expected to gain, and that they have gained; of moves whose "
            "gain was measured. What is lost is not subtracted but counted as lost.",
            ("profile", "kind"),
        )
        self._halts = registry.counter(
            "koord_descheduler_profile_halts_total",
            "How often a profile was halted because its moves did not pay.",
            ("profile",),
        )
        self._halted = registry.table(
            "koord_descheduler_profile_halted",
            "1 while a profile is halted because its moves do not pay.",
            ("profile",),
        )
        self._names = metrics.LabelValues(MOST_SERIES)
        self._ask = halted

    def settled(self, one: ledger.Settled) -> None:
        """Count a move whose outcome has become known."""
        told, found = one.receipt, one.receipt.outcome
        assert found is not None
        profile, plugin = self._names.of(told.profile, told.plugin)
        self._settled.labels(profile, plugin, found.verdict.value).inc()
        if found.gain is not None:
            self._points.labels(profile, "expected").inc(max(told.gain, 0.0))
            kind = "gained" if found.gain >= 0 else "lost"
            self._points.labels(profile, kind).inc(abs(found.gain))
        if one.halted:
            self._halts.labels(profile).inc()

    def show(self) -> None:
        """Export which profiles are halted."""
        found = self._ask()
        self._halted.replace({(name,): value for name, value in found.items()})
        for name, kind in itertools.product(found, _KINDS):
            # Before the first settlement, or a rate would leave that one out.
            self._points.labels(name, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What the controller works with during one term."""

    api: clients.Client
    """Writes nothing once the term is over."""
    events: recorder.EventRecorder
    clock: clocks.Clock
    pictures: Callable[[float], picture.Picture]
    namespace: str
    """Of the ConfigMap."""


class ReceiptController:
    """Looks at moves that have ended, again and again."""

    def __init__(self, parts: Parts, books: ledger.Ledger, figures: ReceiptMetrics) -> None:
        self._parts, self._books, self._figures = parts, books, figures
        self._unwritten: collections.deque[ledger.Settled] = collections.deque()

    async def restore(self) -> None:
        """Read what an earlier leader has remembered; without it memory begins anew."""
        while not await self._restored():
            await self._parts.clock.sleep(_RETRY_SECONDS)

    async def _restored(self) -> bool:
        """Whether there is an answer to whether anything is remembered."""
        name, kept = names.CONFIG_MAP_DESCHEDULER_MEMORY, memory.NOTHING
        try:
            raw = await self._parts.api.get(resources.CONFIG_MAPS, name, self._parts.namespace)
            kept = memory.read(raw.get("data"))
        except (errors.AccessError, errors.Malformed, *errors.OUTAGE) as error:
            logger.warning("memory waits for the API server error=%s", error)
            return False
        except errors.NotFound:
            logger.info("nothing is remembered of earlier moves name=%s", name)
        except (errors.ApiError, untrusted.ReadError) as error:
            logger.warning("memory cannot be read and begins anew name=%s error=%s", name, error)
        self._books.restore(kept)
        return True

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await self.once()
            await self._parts.clock.sleep(LOOK_SECONDS)

    async def once(self) -> None:
        """Look once; what cannot be written is tried again, the API server willing."""
        try:
            for one in list(self._books.look(self._parts.pictures(self._parts.clock.now()))):
                self._tell(one)
                self._unwritten.append(one)
            while self._unwritten:
                await self._write(self._unwritten[0])
                self._unwritten.popleft()
            await self._remember()
        except (errors.Deposed, *errors.OUTAGE) as error:
            logger.warning("receipts wait for the API server error=%s", error)
        self._figures.show()

    def _tell(self, one: ledger.Settled) -> None:
        told, found = one.receipt, one.receipt.outcome
        assert found is not None
        self._figures.settled(one)
        logger.info(
            "move settled job=%s pod=%s verdict=%s receipt=%s",
            *(one.job.name, told.pod, found.verdict.value, told.sentence),
        )
        reason = _REASONS.get(found.verdict)
        if reason is not None:
            kind: recorder.Kind = "Warning" if reason == NOT_PAID else "Normal"
            event = self._parts.events.event
            event(_of_job(one), kind, reason, told.sentence, "Migrating")
            if found.pod:
                event(_of_pod(one, found.pod), kind, reason, told.sentence, "Migrating")
        if one.halted:
            logger.warning("profile is halted reason=%s", one.halted)
            self._parts.events.event(
                _of_memory(self._parts.namespace), "Warning", HALTED, one.halted, "Halt"
            )

    async def _write(self, one: ledger.Settled) -> None:
        notes = {names.ANNOTATION_MIGRATION_RECEIPT: receipt.text(one.receipt)}
        body = {"metadata": {"uid": one.job.uid, "annotations": notes}}
        try:
            await self._parts.api.patch(resources.POD_MIGRATION_JOBS, one.job.name, body)
        except (errors.Deposed, *errors.OUTAGE):
            raise
        except errors.KubeError as error:
            # Mostly it was deleted meanwhile; the event and the metrics have told.
            logger.info("receipt is not written job=%s error=%s", one.job.name, error)

    async def _remember(self) -> None:
        changed = self._books.changes()
        if changed is None:
            return
        name, namespace = names.CONFIG_MAP_DESCHEDULER_MEMORY, self._parts.namespace
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": dict(names.INSTALLED)},
            "data": {memory.KEY: memory.text(changed)},
        }
        try:
            await self._parts.api.patch(
                resources.CONFIG_MAPS,
                name,
                body,
                namespace=namespace,
                kind=clients.Patch.APPLY,
                field_manager=_MANAGER,
                force=True,
            )
        except (errors.Deposed, *errors.OUTAGE):
            self._books.keep_changed()
            raise
        except errors.KubeError as error:
            # Tried again with the next change.
            logger.warning("memory cannot be written name=%s error=%s", name, error)


def _of_job(one: ledger.Settled) -> recorder.Regarding:
    kind = resources.POD_MIGRATION_JOBS
    return recorder.Regarding(kind.api_version, kind.kind, one.job.name, uid=one.job.uid)


def _of_pod(one: ledger.Settled, pod: str) -> recorder.Regarding:
    namespace, _, name = pod.partition("/")
    new = one.job.status.pod_ref
    return recorder.Regarding("v1", "Pod", name, namespace, new.uid if new is not None else "")


def _of_memory(namespace: str) -> recorder.Regarding:
    name = names.CONFIG_MAP_DESCHEDULER_MEMORY
    return recorder.Regarding("v1", "ConfigMap", name, namespace)
