"""Charges quotas with new pods by compare-and-swap, so that any number of replicas never overdraws.

What admission has let in stands in the annotation ``child-request`` of the quota. A pod is let in
after a write of that annotation has succeeded at the version that was judged. Pods that wait for
one quota are judged together and written once.
"""

import asyncio
import collections
import logging
import random
from collections.abc import Coroutine, Mapping
from typing import Any, Final, NamedTuple, Protocol

from api import names, resources
from api.wire import base, quantity
from kube.client import client, errors
from process.runtime import clock as clocks
from process.runtime import metrics
from webhook import review
from webhook.rules.quotas import quota_evaluation

logger = logging.getLogger(__name__)

_MOST_KNOWN: Final = 100
"""Quotas whose last written version is remembered."""
_MOST_AMOUNTS: Final = 512
"""Amounts of such a quota; its author bounds neither them nor what else the object holds."""
_LONGEST_PAUSE: Final = 0.02
LATE: Final = "elastic quota evaluation timed out; try again"

_RESOURCES: Final = {one.group: one for one in resources.QUOTA_RESOURCES}


class Spawn(Protocol):
    """Starts work in the background, as a supervisor does."""

    def __call__(self, name: str, work: Coroutine[Any, Any, None], /) -> asyncio.Task[None]:
        """Start it."""


class _Waiting:
    """One pod that waits for the word of its quota."""

    def __init__(self, charge: review.Charge, until: float) -> None:
        self.charge = charge
        self.until = until
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def tell(self, refusal: str) -> None:
        """Answer once; a second answer has no reader."""
        if not self.answer.done():
            self.answer.set_result(refusal)


Key = tuple[str, str, str]
"""Group, namespace and name."""


class _Seen(NamedTuple):
    """What a quota said last."""

    version: str
    balance: quota_evaluation.Balance

    @property
    def is_short(self) -> bool:
        """Whether it names no more than real quotas do."""
        counts = map(len, (self.balance.limit, self.balance.used, self.balance.counted))
        return sum(counts) <= _MOST_AMOUNTS


class Charges:
    """One line of waiting pods per quota, worked off one batch after the other."""

    def __init__(
        self,
        kube: client.Client,
        clock: clocks.Clock,
        spawn: Spawn,
        registry: metrics.Registry,
        *,
        seconds: float,
    ) -> None:
        """`seconds` is how long a pod waits for the word of its quota before it is refused."""
        self._kube, self._clock, self._spawn, self._seconds = kube, clock, spawn, seconds
        self._lines: dict[Key, list[_Waiting]] = {}
        self._busy: set[Key] = set()
        self._known: collections.OrderedDict[Key, _Seen] = collections.OrderedDict()
        self._rng = random.Random()
        self._charges = registry.counter(
            "koord_webhook_quota_charges_total",
            "New pods that their quota was asked for, by its word.",
            ("result",),
        )
        self._conflicts = registry.counter(
            "koord_webhook_quota_conflicts_total",
            "Writes of quotas that came too late and were judged again.",
        )

    async def charge(self, wanted: review.Charge) -> str:
        """Charge a quota with a pod; returns why it was not, an empty text if it was."""
        key = (wanted.quota.group, wanted.quota.namespace, wanted.quota.name)
        waiting = _Waiting(wanted, self._clock.monotonic() + self._seconds)
        self._lines.setdefault(key, []).append(waiting)
        if key not in self._busy:
            self._busy.add(key)
            self._spawn("quota-charge", self._work(key))
        late = self._spawn("quota-charge-late", self._clock.sleep(self._seconds))
        either: set[asyncio.Future[Any]] = {waiting.answer, late}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            late.cancel()
            waiting.tell(LATE)
        refusal = waiting.answer.result()
        self._charges.labels("refused" if refusal else "admitted").inc()
        return refusal

    async def _work(self, key: Key) -> None:
        batch: list[_Waiting] = []
        try:
            while batch := self._lines.pop(key, []):
                await self._settle(key, batch)
        finally:
            self._busy.discard(key)
            for waiting in (*batch, *self._lines.pop(key, ())):
                waiting.tell(LATE)

    async def _settle(self, key: Key, batch: list[_Waiting]) -> None:
        """Judge a batch until its write succeeds or no caller waits for it any more."""
        while waiting := self._in_time(batch):
            try:
                known = self._known.pop(key, None)
                seen = known or await self._read(key)
                told = await self._judged(key, seen, waiting, is_fresh=known is None)
            except errors.Conflict:
                self._conflicts.inc()
                await self._clock.sleep(self._rng.uniform(0.0, _LONGEST_PAUSE))
                continue
            except errors.NotFound:
                # Without their quota the pods belong to the default one, which has no limit.
                told = [""] * len(waiting)
            except (errors.KubeError, base.ReadError, quantity.QuantityError) as wrong:
                logger.warning("quota=%s/%s not charged reason=%s", key[1], key[2], wrong)
                told = [f"quota {key[1]}/{key[2]} cannot be charged: {wrong}"] * len(waiting)
            if told is not None:
                for one, refusal in zip(waiting, told, strict=True):
                    one.tell(refusal)
                return

    def _in_time(self, batch: list[_Waiting]) -> list[_Waiting]:
        now = self._clock.monotonic()
        return [one for one in batch if not one.answer.done() and now < one.until]

    async def _judged(
        self, key: Key, seen: _Seen, waiting: list[_Waiting], *, is_fresh: bool
    ) -> list[str] | None:
        """Charge all who fit, one after the other; None where the quota has to be read anew."""
        before = after = seen.balance
        told = []
        for one in waiting:
            charged, refusal = quota_evaluation.charged(after, one.charge.requests)
            after = charged if one.charge.writes else after
            told.append(refusal)
        if any(told) and not is_fresh:
            return None  # Something may have been released since.
        if after != before:
            seen = _Seen(await self._write(key, seen.version, after.text()), after)
        if seen.is_short:
            self._known[key] = seen
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return told

    async def _read(self, key: Key) -> _Seen:
        group, namespace, name = key
        raw = await self._kube.get(_RESOURCES[group], name, namespace)
        return _Seen(_version(raw), quota_evaluation.balance(raw))

    async def _write(self, key: Key, version: str, text: str) -> str:
        """Write what admission has let in, if nothing else has changed; returns the new version."""
        group, namespace, name = key
        notes = {names.ANNOTATION_QUOTA_CHILD_REQUEST: text}
        body = {"metadata": {"resourceVersion": version, "annotations": notes}}
        return _version(await self._kube.patch(_RESOURCES[group], name, body, namespace=namespace))


def _version(raw: Mapping[str, Any]) -> str:
    found = base.section(raw, "metadata").get("resourceVersion")
    return found if isinstance(found, str) else ""
