"""Looks at one hardware type, each in a thread, so that a driver that hangs stops nothing else."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping
from typing import Final

from agent.device_daemon.hardware import findings
from agent.devices import device_inventory
from agent.host import files
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
EXPECTED: Final = (files.ReadingError, device_inventory.DriverError, OSError)


class Manager:
    """Looks at one hardware type, and remembers what a tool said that now fails."""

    def __init__(
        self, name: str, discover: findings.Discover, seconds: float, clock: clocks.Clock
    ) -> None:
        self.name = name
        self._discover = discover
        self._seconds = seconds
        self._clock = clock
        self._before = findings.Findings()
        self._failures = 0
        self._hangs = False

    async def look(self, host: findings.Host) -> findings.Findings:
        """Look once; whatever goes wrong is named in what is returned, and hides nothing else."""
        try:
            found = await self._apart(host)
        except EXPECTED as error:
            found = findings.Findings(self._before.cards, problems=(str(error),), silent=True)
        self._failures = self._failures + 1 if found.silent else 0
        known = findings.remembered(self._before, found, self._failures)
        if not found.silent:
            self._before = found
        return known

    async def _apart(self, host: findings.Host) -> findings.Findings:
        if self._hangs:
            raise files.ReadingError("an earlier look has not answered yet")
        loop, nap = asyncio.get_running_loop(), clocks.Nap(self._clock)
        at = self._clock.monotonic()
        answers: list[findings.Findings | Exception] = []

        def work() -> None:
            try:
                answers.append(self._discover(host, at))
            except EXPECTED as error:
                answers.append(error)
            except Exception as error:
                # The root of a thread: a mistake in one manager must not hide the others' devices.
                _logger.exception("look failed hardware=%s", self.name)
                answers.append(files.ReadingError(f"{type(error).__name__}: {error}"))
            self._hangs = False
            with contextlib.suppress(RuntimeError):
                # The loop may have ended while a driver did not answer.
                loop.call_soon_threadsafe(nap.wake)

        self._hangs = True
        # A thread that hangs in a driver must not keep the process from ending.
        threading.Thread(target=work, name=f"look at {self.name}", daemon=True).start()
        await nap.rest(self._seconds)
        if not answers:
            raise files.ReadingError(f"no answer within {self._seconds:g} s")
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]


def problems(found: Mapping[str, findings.Findings]) -> dict[str, str]:
    """Return what could not be told, by hardware type."""
    return {name: "; ".join(one.problems)[:500] for name, one in found.items() if one.problems}
