"""Changes to keys, keys to reconcile: one object at a time, failures slower and slower."""

import dataclasses
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from kube.client import errors
from kube.controllers import workqueue
from kube.informers import store as stores
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

logger = logging.getLogger(__name__)

T = TypeVar("T")

_OUTAGE_PAUSE_SECONDS: Final = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What one cycle did, in a sentence; whether it wrote anything; when to look again."""

    message: str
    requeue_after: float | None = None
    changed: bool = True


Reconcile = Callable[[str], Awaitable[Outcome]]


class _Figures:
    def __init__(self, registry: metrics.Registry, name: str) -> None:
        self._name = name
        self._results = registry.counter(
            "koord_controller_reconciles_total",
            "Reconciled keys by result.",
            ("controller", "result"),
        )
        self.seconds = registry.histogram(
            "koord_controller_reconcile_seconds", "Time of one reconcile.", ("controller",)
        ).labels(name)
        self.depth = registry.gauge(
            "koord_controller_queue_keys", "Keys that wait for a worker.", ("controller",)
        ).labels(name)

    def count(self, result: str) -> None:
        self._results.labels(self._name, result).inc()


class Controller:
    """Works on the keys of a queue with one reconcile function."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        queue: workqueue.Queue,
        clock: clocks.Clock,
        *,
        workers: int = 1,
        registry: metrics.Registry | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._workers = workers
        self._figures = _Figures(registry or metrics.Registry(), name)

    def watch(
        self,
        store: stores.Store[T],
        keys: Callable[[stores.Change[T]], Iterable[str]] | None = None,
    ) -> Callable[[], None]:
        """Queue keys on every change of a store, by default the changed one; return how to stop."""

        def follow(change: stores.Change[T]) -> None:
            for key in keys(change) if keys is not None else (change.key,):
                self.queue.add(key)
            self._figures.depth.set(len(self.queue))

        return store.listen(follow)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start the timer of the queue and the workers; the caches must have synced."""
        supervisor.start(f"{self.name}-timer", self.queue.run)
        for number in range(self._workers):
            supervisor.start(f"{self.name}-{number}", self._work)

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            self._figures.depth.set(len(self.queue))
            try:
                await self.once(key)
            finally:
                self.queue.done(key)

    async def once(self, key: str) -> None:
        """Reconcile one key and settle when it is looked at again."""
        started = self._clock.monotonic()
        try:
            outcome = await self._reconcile(key)
        except errors.KubeError as error:
            self._fail(key, error, None)
        except Exception as error:  # noqa: BLE001 - the root of an eternal task: log and back off
            self._fail(key, error, error)
        else:
            self._settle(key, outcome)
        finally:
            self._figures.seconds.observe(self._clock.monotonic() - started)

    def _settle(self, key: str, outcome: Outcome) -> None:
        self.queue.forget(key)
        self._figures.count("changed" if outcome.changed else "unchanged")
        if outcome.requeue_after is not None:
            self.queue.add_after(key, outcome.requeue_after)
        logger.log(
            logging.INFO if outcome.changed else logging.DEBUG,
            "reconciled controller=%s key=%s outcome=%s",
            self.name,
            key,
            outcome.message,
        )

    def _fail(self, key: str, error: Exception, unexpected: Any) -> None:
        asked = error.retry_after if isinstance(error, errors.ApiError) else None
        # What failed because the server was away is done soon after it is back.
        longest = _OUTAGE_PAUSE_SECONDS if isinstance(error, errors.OUTAGE) else math.inf
        pause = self.queue.retry(key, at_least=asked or 0.0, at_most=longest)
        self._figures.count("conflict" if isinstance(error, errors.Conflict) else "failed")
        logger.log(
            logging.ERROR if unexpected else logging.WARNING,
            "reconcile failed controller=%s key=%s retry_in=%.1f error=%s",
            self.name,
            key,
            pause,
            error,
            exc_info=unexpected,
        )
