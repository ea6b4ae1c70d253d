"""Asks the kernel to take memory back from batch work, a little at a time.

Nothing is set and so nothing has to be put back: memory that was reclaimed comes back when
it is touched. What was done stands in the audit.
"""

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from agent.decide import planner
from agent.decide.strategies import memory_qos, memory_reclaim
from agent.host import files, psi
from agent.loop import ticks
from agent.model import cgroup_layout, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.wire import durations
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
STRATEGY: Final = "memory-qos"
_OBSERVE: Final = planner.Mode.OBSERVE
Settings = tuple[Mapping[qos.QoS, strategy_settings.Memory], strategy_settings.Overrides]
"""What classes have, and how far pods may deviate."""


class Reclaimer:
    """Looks at batch containers now and then and takes back what they do not need."""

    def __init__(
        self,
        loop: ticks.Ticks,
        clock: clocks.Clock,
        rules: memory_reclaim.Rules,
        figures: metrics.Registry,
        settings: Callable[[], Settings],
    ) -> None:
        self.problem: str | None = None
        """Why nothing can be reclaimed, None when it can or nothing has to be."""
        self.tell: Callable[[Mapping[str, Any]], None] = lambda _: None
        """Takes a line of the audit."""
        self._loop, self._clock, self._rules = loop, clock, rules
        self._settings = settings
        self._pauses: memory_reclaim.Pauses = {}
        self._told: frozenset[str] = frozenset()
        self._bytes = figures.counter(
            "koord_agent_reclaimed_bytes_total", "Memory taken back from batch work."
        )

    async def run(self, seconds: float) -> None:
        """Look for ever."""
        while True:
            await self._clock.sleep(seconds)
            await self.step()

    async def step(self) -> None:
        """Look once; one group after the other, so that the disk is not flooded."""
        self.problem = None
        picture, arranged = self._loop.picture, self._loop.layout
        if picture is None or arranged is None or STRATEGY not in self._loop.decisions:
            self._pauses, self._told = {}, frozenset()
            return
        modes: dict[str, planner.Mode] = {}
        readings: list[memory_reclaim.Reading] = []
        for pod in picture.pods:
            mode = self._loop.reach(STRATEGY, pod)
            if mode is not planner.Mode.OFF and pod.qos is qos.QoS.BE and pod.active:
                found = self._read(pod, arranged)
                modes |= dict.fromkeys((reading.group for reading in found), mode)
                readings += found
        now = self._clock.monotonic()
        wanted, self._pauses = memory_reclaim.decide(readings, self._rules, self._pauses, now)
        observed = frozenset(one.group for one in wanted if modes[one.group] is _OBSERVE)
        for one in wanted:
            if one.group not in observed:
                # Asked again: the switch may have been thrown while the kernel was at work.
                if self._loop.mode(STRATEGY) is planner.Mode.ENFORCE:
                    await self._reclaim(one, arranged)
            elif one.group not in self._told:
                self._say("would have reclaimed", one, one.amount)
        self._told = observed

    def _read(
        self, pod: state.PodState, arranged: cgroup_layout.Layout
    ) -> list[memory_reclaim.Reading]:
        """Read the containers of a pod whose memory has a mark; none where the kernel cannot."""
        wanted = memory_qos.of_pod(pod, *self._settings())
        found: list[memory_reclaim.Reading] = []
        if wanted is None or not wanted.wmark_ratio:
            return found
        for container in pod.inside:
            limit = state.core_amount(container.container.resources.limits, names.BATCH_MEMORY)
            group = container.group
            if not limit or not group or not container.running:
                continue
            if not os.access(arranged.path(cgroup_layout.File.MEMORY_RECLAIM, group), os.W_OK):
                self.problem = "the kernel has no memory.reclaim, or its files cannot be written"
                continue
            path = arranged.path(cgroup_layout.File.MEMORY_CURRENT, group)
            try:
                current = int(files.read(path))
            except files.VanishedError:
                # The container has ended since the node was looked at.
                continue
            except files.ReadingError as error:
                self.problem = str(error)
                continue
            except ValueError as error:
                self.problem = f"{path}: {error}"
                continue
            scale, ratio = wanted.wmark_scale or 0, wanted.wmark_ratio
            waited = self._waited(arranged, group)
            found.append(memory_reclaim.Reading(group, current, limit, ratio, scale, waited))
        return found

    def _waited(self, arranged: cgroup_layout.Layout, group: str) -> float | None:
        try:
            return psi.parse(
                files.read(arranged.path(cgroup_layout.File.MEMORY_PRESSURE, group))
            ).some
        except files.ReadingError:
            self.problem = "groups do not say how long their tasks wait for memory (psi=1)"
            return None

    async def _reclaim(self, one: memory_reclaim.Reclaim, arranged: cgroup_layout.Layout) -> None:
        path = arranged.path(cgroup_layout.File.MEMORY_RECLAIM, one.group)
        try:
            # The kernel answers when it is done, which may take the time of its disks.
            await asyncio.to_thread(files.write, path, str(one.amount))
        except OSError as error:
            if error.errno == errno.EAGAIN:
                self._say("reclaimed in part", one, one.amount)
            elif error.errno not in (errno.ENOENT, errno.ENODEV):
                self.problem = f"{path}: {error.strerror}"
                self._say("failed", one, one.amount)
            all_of_it = False
        else:
            self._say("reclaimed", one, one.amount)
            self._bytes.inc(one.amount)
            all_of_it = True
        now = self._clock.monotonic()
        self._pauses = memory_reclaim.taken(
            self._pauses, one.group, self._rules, now, all_of_it=all_of_it
        )

    def _say(self, outcome: str, one: memory_reclaim.Reclaim, amount: int) -> None:
        _logger.info("%s group=%s bytes=%d reason=%r", outcome, one.group, amount, one.reason)
        self.tell(
            {
                "createdAt": durations.moment(self._clock.now()),
                "type": "group",
                "reason": outcome,
                "property": "memory-reclaim",
                "groups": [one.group],
                "from": "",
                "to": str(amount),
                "message": one.reason,
            }
        )
