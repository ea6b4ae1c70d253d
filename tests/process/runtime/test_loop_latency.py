"""A blocked event loop is seen."""

import threading

from process.runtime import loop_latency, metrics, supervise
from process.runtime.clock import SystemClock


async def test_whoever_blocks_the_loop_is_counted() -> None:
    registry = metrics.Registry()
    clock = SystemClock()

    def looks() -> float:
        return registry.value("koord_process_loop_lag_seconds_count") or 0.0

    async with supervise.Supervisor("test") as tasks, supervise.deadline(clock, 15):
        tasks.start("lag", loop_latency.LoopLatency(registry).run)
        while looks() < 1:
            await clock.sleep(0.01)
        before = registry.value("koord_process_loop_lag_seconds_sum") or 0.0
        threading.Event().wait(0.6)
        while looks() < 2:
            await clock.sleep(0.01)
    # It was due after a quarter of a second at the latest.
    assert (registry.value("koord_process_loop_lag_seconds_sum") or 0.0) - before >= 0.3
