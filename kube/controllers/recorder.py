"""Events for people: repeated ones counted, floods cut, the caller never waits."""

import collections
import dataclasses
import datetime
import logging
import random
from typing import Any, Final, Literal, NamedTuple, Protocol

from api import resources
from api.koordinator import event_reasons
from kube.client import client as clients
from kube.client import errors
from kube.controllers import workqueue
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

logger = logging.getLogger(__name__)

_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_LONGEST_NOTE: Final = 1024
_LONGEST_REASON: Final = 128
_LONGEST_STEM: Final = 200
_MOST_TRIES: Final = 6

Kind = Literal["Normal", "Warning"]


class Regarding(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def reference(self) -> dict[str, str]:
        """Return the reference as events carry it."""
        words = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
        }
        return {word: value for word, value in words.items() if value}


@dataclasses.dataclass(frozen=True, slots=True)
class Rates:
    """How much is written at most."""

    series_seconds: float = 360.0
    """An event that repeats within this time is counted in the event that is there."""
    rewrite_seconds: float = 30.0
    """How often at most the count of a series is written."""
    burst: int = 25
    """How many different events one object may have at once ..."""
    refill_seconds: float = 300.0
    """... and after how long it may have one more."""
    most_series: int = 1024
    """How many series are remembered; beyond that, namespaces share them evenly and the latest
    events of those with more are dropped."""


class _Content(NamedTuple):
    regarding: Regarding
    kind: Kind
    reason: str
    note: str
    action: str


@dataclasses.dataclass(slots=True)
class _Series:
    content: _Content
    first: float
    last: float
    touched: float
    count: int = 1
    written: int = 0
    name: str = ""
    tries: int = 0

    @property
    def namespace(self) -> str:
        # Events about cluster-wide objects live in the default namespace.
        return self.content.regarding.namespace or "default"


@dataclasses.dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class EventRecorder(Protocol):
    """Where events go: what decides that one is due does not post it."""

    def event(
        self,
        regarding: Regarding,
        kind: Kind,
        reason: event_reasons.Reason,
        note: str,
        action: str = "",
    ) -> bool:
        """Note that something happened; return whether it will be posted. Never waits."""


class Recorder:
    """Posts events of one component about any objects."""

    def __init__(
        self,
        client: clients.Client,
        component: str,
        clock: clocks.Clock,
        *,
        instance: str,
        rng: random.Random | None = None,
        rates: Rates | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._clock = clock
        self._rng = rng or random.Random()
        self._rates = rates or Rates()
        self._queue = workqueue.Queue(clock, rng=self._rng, first_pause_seconds=1.0)
        self._series: dict[str, _Series] = {}
        self._keys: dict[_Content, str] = {}
        self._buckets: dict[Regarding, _Bucket] = {}
        self._counted = (client.registry or metrics.Registry()).counter(
            "koord_kube_events_total", "Events by what became of them.", ("component", "result")
        )

    def event(
        self,
        regarding: Regarding,
        kind: Kind,
        reason: event_reasons.Reason,
        note: str,
        action: str = "",
    ) -> bool:
        """Note that something happened; return whether it will be told. Never waits."""
        content = _Content(regarding, kind, reason[:_LONGEST_REASON], _clip(note), action or reason)
        now = self._clock.monotonic()
        key = self._keys.get(content)
        if key is not None and now - self._series[key].touched < self._rates.series_seconds:
            series = self._series[key]
            series.count += 1
            series.last, series.touched = self._clock.now(), now
            self._queue.add_after(key, self._rates.rewrite_seconds)
            return True
        if key is not None:
            self._drop(key)
        if not self._has_room(regarding.namespace, now) or not self._take(regarding, now):
            self._count("dropped")
            return False
        wall = self._clock.now()
        key = f"{int(wall * 1e9):x}.{self._rng.getrandbits(32):08x}"
        self._series[key] = _Series(content, wall, wall, now)
        self._keys[content] = key
        self._queue.add(key)
        return True

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to post."""
        supervisor.start(f"events-timer-{self._component}", self._queue.run)
        supervisor.start(f"events-{self._component}", self._post)

    async def _post(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                series = self._series.get(key)
                if series is not None and series.written < series.count:
                    await self._tell(key, series)
            finally:
                self._queue.done(key)

    async def _tell(self, key: str, series: _Series) -> None:
        count = series.count
        try:
            if series.name:
                await self._repeat(series, count)
            else:
                await self._create(key, series)
        except errors.NotFound:
            # The event has expired meanwhile, or its namespace is going away.
            series.name = ""
            self._retry(key, series)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest) as error:
            logger.warning("event is refused component=%s error=%s", self._component, error)
            self._count("refused")
            self._drop(key)
        except errors.KubeError as error:
            logger.info("event was not posted component=%s error=%s", self._component, error)
            self._retry(key, series)
        else:
            series.written, series.tries = count, 0
            self._queue.forget(key)
            self._count("posted")

    async def _create(self, key: str, series: _Series) -> None:
        content = series.content
        name = f"{content.regarding.name[:_LONGEST_STEM]}.{key}"
        body: dict[str, Any] = {
            "apiVersion": resources.EVENTS.api_version,
            "kind": resources.EVENTS.kind,
            "metadata": {"name": name, "namespace": series.namespace},
            "eventTime": _stamp(series.first),
            "reportingController": self._component,
            "reportingInstance": self._instance[:_LONGEST_REASON],
            "action": content.action[:_LONGEST_REASON],
            "reason": content.reason,
            "regarding": content.regarding.reference(),
            "note": content.note,
            "type": content.kind,
        }
        if series.count > 1:
            body["series"] = _counted(series, series.count)
        try:
            await self._client.create(resources.EVENTS, body, series.namespace)
        except errors.AlreadyExists:
            # An earlier try arrived although its answer did not.
            logger.debug("event is there already name=%s", name)
        series.name = name

    async def _repeat(self, series: _Series, count: int) -> None:
        await self._client.patch(
            resources.EVENTS,
            series.name,
            {"series": _counted(series, count)},
            namespace=series.namespace,
        )

    def _retry(self, key: str, series: _Series) -> None:
        if key not in self._series:
            # It gave way to another one meanwhile.
            return
        series.tries += 1
        if series.tries >= _MOST_TRIES:
            self._count("lost")
            self._drop(key)
        else:
            self._queue.retry(key)

    def _drop(self, key: str) -> None:
        series = self._series.pop(key, None)
        if series is not None:
            self._keys.pop(series.content, None)
        self._queue.forget(key)

    def _has_room(self, namespace: str, now: float) -> bool:
        if len(self._series) >= self._rates.most_series:
            over = [
                key
                for key, series in self._series.items()
                if series.written == series.count
                and now - series.touched >= self._rates.series_seconds
            ]
            for key in over:
                self._drop(key)
        if len(self._buckets) >= self._rates.most_series:
            self._buckets = {
                regarding: bucket
                for regarding, bucket in self._buckets.items()
                if self._tokens(bucket, now) < self._rates.burst
            }
        return len(self._series) < self._rates.most_series or self._is_given_way(namespace)

    def _is_given_way(self, namespace: str) -> bool:
        """Drop the latest series of the namespace with the most for one that has fewer."""
        held = collections.Counter(s.content.regarding.namespace for s in self._series.values())
        largest = max(held, key=held.__getitem__, default="")
        if held[largest] <= held[namespace] + 1:
            return False
        last = next(
            key
            for key, series in reversed(self._series.items())
            if series.content.regarding.namespace == largest
        )
        self._drop(last)
        self._count("dropped")
        return True

    def _take(self, regarding: Regarding, now: float) -> bool:
        bucket = self._buckets.setdefault(regarding, _Bucket(self._rates.burst, now))
        bucket.tokens, bucket.at = self._tokens(bucket, now), now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _tokens(self, bucket: _Bucket, now: float) -> float:
        return min(
            self._rates.burst, bucket.tokens + (now - bucket.at) / self._rates.refill_seconds
        )

    def _count(self, result: str) -> None:
        self._counted.labels(self._component, result).inc()


def _counted(series: _Series, count: int) -> dict[str, Any]:
    return {"count": count, "lastObservedTime": _stamp(series.last)}


def _clip(note: str) -> str:
    """Cut a note at the API's limit, which counts bytes."""
    data = note.encode()
    return (
        note
        if len(data) <= _LONGEST_NOTE
        else data[: _LONGEST_NOTE - 3].decode(errors="ignore") + "..."
    )


def _stamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime(_TIME)
