"""Say in the status of the NodeSLO when it was applied and how much of it is enforced."""

import logging
import random
import zlib
from collections.abc import Callable
from typing import Any, Final

from agent.decide import spec_enforcement
from agent.informers import node_objects
from api import resources
from api.wire import durations
from domain import conditions
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
SETTLE_SECONDS: Final = 10.0
"""How long after a change of the spec its condition is written: a start knows little at first."""
SPREAD_SECONDS: Final = 20.0
"""... and up to so much later, by the node's name, so that not all nodes write at once."""
SELDOM_SECONDS: Final = 60.0
"""Time between two writes of the condition, so that a host that wavers writes no more often."""
LONGEST_PAUSE: Final = 30.0


class NodeSloStatus:
    """Writes the status of this node's NodeSLO when it says something else than it should.

    The moment at which a spec takes effect is written at once, together with its condition. What
    the status says already is not written again, and conditions of other clients stay.
    """

    def __init__(
        self,
        kube: clients.Client,
        clock: clocks.Clock,
        node_name: str,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._name = node_name
        self._late = SETTLE_SECONDS + SPREAD_SECONDS * zlib.crc32(node_name.encode()) / 2**32
        self._chance = chance
        self._failures = 0
        self._due = self._told_from = 0.0
        self._seen: tuple[str, int] | None = None
        self._applied: tuple[str, int] | None = None
        """The NodeSLO that was said to be applied, by uid and generation."""

    async def step(
        self, stated: node_objects.Stated, verdict: spec_enforcement.Verdict, at: float
    ) -> bool:
        """Write what is new; return whether anything was written."""
        now = self._clock.monotonic()
        version = stated.uid, stated.generation
        if version != self._seen:
            self._seen, self._told_from = version, now + self._late
        applies = verdict.applied and version != self._applied
        if now < self._due or (now < self._told_from and not applies):
            return False
        status = _status(stated, verdict, at, applies=applies)
        if not status or not await self._write(stated.version, status, now):
            return False
        self._told_from = now + SELDOM_SECONDS
        if applies:
            self._applied = version
        return True

    async def _write(self, version: str, status: dict[str, Any], now: float) -> bool:
        # The version guards what others wrote into the list since; the watch brings the next one.
        body = {"metadata": {"resourceVersion": version}, "status": status}
        try:
            await self._kube.patch(
                resources.NODE_SLOS, self._name, body, subresource="status", brief=True
            )
        except errors.KubeError as error:
            self._failures += 1
            self._due = now + self._pause()
            if not isinstance(error, errors.Conflict):
                _logger.warning("NodeSLO status not written node=%s reason=%s", self._name, error)
            return False
        self._failures = 0
        return True

    def _pause(self) -> float:
        # All agents fail together when the server does, and must not come back together.
        longest = min(LONGEST_PAUSE, 2.0 ** min(self._failures, 10))
        return longest * (0.5 + 0.5 * self._chance())


def _status(
    stated: node_objects.Stated,
    verdict: spec_enforcement.Verdict,
    at: float,
    *,
    applies: bool,
) -> dict[str, Any]:
    """Return what of the status is to be written."""
    said = conditions.merged(
        stated.conditions,
        (verdict.condition,),
        at,
        types=(spec_enforcement.ENFORCED,),
        generation=stated.generation,
    )
    status: dict[str, Any] = {} if said is None else {"conditions": said}
    if applies:
        status["nodeMetric"] = {"updateTime": durations.moment(at)}
    return status
