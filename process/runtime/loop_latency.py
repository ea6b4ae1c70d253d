"""How late the event loop is: a task that blocks it makes all others wait."""

import asyncio
from typing import Final

from process.runtime import metrics

_PAUSE_SECONDS: Final = 0.25
_BUCKETS: Final = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class LoopLatency:
    """Measures again and again how much later than asked for the loop comes back."""

    def __init__(self, registry: metrics.Registry) -> None:
        self._seconds = registry.histogram(
            "koord_process_loop_lag_seconds",
            "How much later than due the event loop was, looked at four times a second.",
            buckets=_BUCKETS,
        )

    async def run(self) -> None:
        """Look at it for ever."""
        # The loop keeps real time, whatever clock the rest of the process uses.
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _PAUSE_SECONDS
            await asyncio.sleep(_PAUSE_SECONDS)
            self._seconds.observe(max(0.0, loop.time() - due))
