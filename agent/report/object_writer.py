"""Keeps one object about this node as it should be, and writes it only when it differs."""

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from api import resources
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
REREAD_SECONDS: Final = 300.0
"""How long a change that another client makes to the object may stay unseen."""
LONGEST_PAUSE: Final = 60.0
Object = Mapping[str, Any]
Wanted = Callable[[Object | None], Object | None]
"""From the object as it stands, None where there is none, to the object as it should be.

Pure. Returns None while nothing is known yet. What it returns keeps what others wrote.
"""


class Place(msgspec.Struct, frozen=True):
    """Which object it is."""

    resource: resources.Resource
    name: str
    """The node's name."""
    seconds: float = 10.0
    """Time between two comparisons."""


class Own:
    """One object that carries this node's name.

    Neither listed nor watched: it is read at the start, after a conflict and every few minutes, and
    in between compared with what was last seen, so that a node whose figures stand still says
    nothing at all.
    """

    def __init__(
        self,
        kube: clients.Client,
        clock: clocks.Clock,
        place: Place,
        wanted: Wanted,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.problem: str | None = None
        """Why the object does not say it, None when it does or nothing is known yet."""
        self._kube = kube
        self._clock = clock
        self._resource = place.resource
        self._name = place.name
        self._wanted = wanted
        self._seconds = place.seconds
        self._chance = chance
        self._seen: Object | None = None
        self._read_at: float | None = None
        self._failures = 0

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return self._resource.kind

    def told(self) -> str | None:
        """Return the problem."""
        return self.problem

    async def run(self) -> None:
        """Compare for ever."""
        while True:
            good = await self.step()
            await self._clock.sleep(self._seconds if good else self._pause())

    async def step(self) -> bool:
        """Compare once and write what differs; return whether that worked."""
        try:
            await self._step()
        except errors.Conflict:
            # Another client was faster; what it wrote is read first the next time.
            self._read_at = None
        except errors.KubeError as error:
            self._read_at = None
            self.problem = f"{self._resource.kind} {self._name}: {error}"
            _logger.warning(
                "object not written kind=%s error=%s", self._resource.kind, self.problem
            )
        else:
            self._failures, self.problem = 0, None
            return True
        self._failures += 1
        return False

    async def _step(self) -> None:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= REREAD_SECONDS:
            self._seen = await self._current()
            # Spread, so that thousands of agents that started together do not read together.
            self._read_at = now - REREAD_SECONDS * 0.5 * self._chance()
        wanted = self._wanted(self._seen)
        if wanted is None or wanted == self._seen:
            return
        if self._seen is None:
            self._seen = await self._kube.create(self._resource, wanted)
        else:
            # The version inside guards what others wrote in between.
            self._seen = await self._kube.update(self._resource, wanted)

    async def _current(self) -> Object | None:
        try:
            return await self._kube.get(self._resource, self._name)
        except errors.NotFound:
            return None

    def _pause(self) -> float:
        longest = min(LONGEST_PAUSE, 2.0 ** min(self._failures, 10))
        return longest * (0.5 + 0.5 * self._chance())
