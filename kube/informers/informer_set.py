"""The named set of stores that one process needs, kept true under its supervisor."""

import random
from collections.abc import Iterable
from typing import Any, TypeVar

from kube.client import client as clients
from kube.informers import reflector as reflectors
from kube.informers import store as stores
from process.runtime import clock as clocks
from process.runtime import supervise

T = TypeVar("T")


class InformerSet:
    """Stores by projection; nothing decides before every store it reads has synced."""

    def __init__(
        self,
        client: clients.Client,
        clock: clocks.Clock,
        *,
        rng: random.Random | None = None,
        pace: reflectors.Pace | None = None,
        stale_seconds: float = 60.0,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng or random.Random()
        self._pace = pace
        self._stale_seconds = stale_seconds
        self._reflectors: list[reflectors.Reflector[Any]] = []
        self._are_current = False
        """Whether all were when that was asked last, and none has lost its watch since."""

    @property
    def members(self) -> tuple[reflectors.Reflector[Any], ...]:
        """What keeps the stores true, in the order they were added."""
        return tuple(self._reflectors)

    def add(
        self, projection: reflectors.Projection[T], into: stores.Store[T] | None = None
    ) -> stores.Store[T]:
        """Add a store before the start; listen to it before the start, too."""
        store: stores.Store[T] = stores.Store() if into is None else into
        added = reflectors.Reflector(
            self._client, projection, store, self._clock, rng=self._rng, pace=self._pace
        )
        added.contact.on_loss = self._lost
        self._reflectors.append(added)
        self._lost()
        return store

    def _lost(self) -> None:
        self._are_current = False

    def of(self, store: stores.Store[T]) -> reflectors.Reflector[T]:
        """Return what keeps a store true."""
        return next(one for one in self._reflectors if one.store is store)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        for number, reflector in enumerate(self._reflectors):
            supervisor.start(f"reflect-{number}-{reflector.name}", reflector.run)

    async def synced(self) -> None:
        """Wait until every store has seen a complete list."""
        for reflector in self._reflectors:
            await reflector.synced()

    def health(self) -> str | None:
        """Return which stores are not to be trusted now and why, None when all are true."""
        # Asked with every call: the usual answer comes without a look at each of them.
        self._are_current = self._are_current or all(map(_is_current, self._reflectors))
        if self._are_current:
            return None
        return _joined(
            self._unlisted(reflector) or self._silent(reflector) for reflector in self._reflectors
        )

    def unlisted(self) -> str | None:
        """Return which stores were never complete; for readers that decide as well on old news."""
        return _joined(map(self._unlisted, self._reflectors))

    def stale(self) -> str | None:
        """Return which complete stores have heard nothing for too long."""
        return _joined(map(self._silent, self._reflectors))

    def missing(self) -> str | None:
        """Return which resources the API server does not know; their stores are true, and empty."""
        return _joined(
            f"{reflector.name} is not installed" if reflector.contact.missing else None
            for reflector in self._reflectors
            if not reflector.projection.optional
        )

    @staticmethod
    def _unlisted(reflector: reflectors.Reflector[Any]) -> str | None:
        error = reflector.contact.error
        cause = f" ({error})" if error else ""
        return None if reflector.store.synced else f"{reflector.name} not listed yet{cause}"

    def _silent(self, reflector: reflectors.Reflector[Any]) -> str | None:
        contact = reflector.contact
        if contact.missing:
            # It is asked for again at longer and longer intervals; what the API server does serve
            # tells whether it answers.
            return None
        if reflector.projection.grants and reflector.store.synced:
            seconds = contact.unconfirmed
            if seconds > self._stale_seconds:
                return f"{reflector.name} not confirmed for {seconds:.0f} s"
        if not (reflector.store.synced and contact.error and contact.age > self._stale_seconds):
            return None
        return f"{reflector.name} not heard of for {contact.age:.0f} s ({contact.error})"


def _is_current(reflector: reflectors.Reflector[Any]) -> bool:
    """Tell whether a store is complete, and a watch keeps it so or its kind is not served."""
    return reflector.store.synced and (reflector.contact.is_well or reflector.contact.missing)


def _joined(reasons: Iterable[str | None]) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None
