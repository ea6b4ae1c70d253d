"""Collections stay short, and still nothing that is garbage stays for good."""

import gc
import json
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from process.runtime import collector, metrics, supervise
from process.runtime.clock import SystemClock

ROOT = Path(__file__).parents[3]
DAY = """
    import collections, gc, json, sys
    from process.runtime import collector

    now, worked, longest, begun = 0.0, 0.0, 0.0, 0.0
    alive = collections.Counter()

    class Held:
        # A cycle, as a request that knows its task that knows its request.
        def __init__(self):
            self.me, self.parts = self, [[number] for number in range(50)]
            alive["cycles"] += 1

        def __del__(self):
            alive["cycles"] -= 1

    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 1_000_000_000)
    kept = collector.Collector(
        collector.Limits(newcomers=500, idle_growth=1.15, busy_growth=1.5),
        monotonic=lambda: now,
        worked=lambda: worked,
    )
    objects = collections.deque([[number] for number in range(20_000)])
    held, lines = collections.deque(), []
    for second in range(86_400 // 10):
        # Things come and go: most without cycles, some in a cycle that was old when it went.
        objects.extend([second] for _ in range(20))
        for _ in range(20):
            objects.popleft()
        held.append(Held())
        if len(held) > 200:
            held.popleft()
        now += 10.0
        worked += 10.0 if second % 10 < {busy} else 0.0
        kept.look()
        if second % 864 == 863:
            used = sys.getallocatedblocks()
            lines.append((alive["cycles"], used))
    (peak,) = [
        int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")
    ]
    print(json.dumps([lines, kept.frozen, kept.full, peak]))
"""


@pytest.fixture(autouse=True)
def _frozen_again() -> Iterator[None]:
    """Leave frozen what the tests froze at their start: a million objects that all stay."""
    yield
    gc.freeze()


@pytest.mark.parametrize("busy", [0, 10], ids=["idle", "never-idle"])
def test_a_day_of_coming_and_going_leaves_nothing_behind(busy: int) -> None:
    script = textwrap.dedent(DAY).replace("{busy}", str(busy))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    lines, frozen, full, peak_kib = json.loads(done.stdout)
    # Nearly every cycle was frozen while it was needed, so only looks at everything find it.
    assert frozen > 100
    assert 2 <= full <= 288
    cycles, blocks = zip(*lines, strict=True)
    # 8,640 were made and 200 are needed; what is garbage waits until memory has grown by half.
    assert max(cycles) <= 2000
    assert max(blocks[1:]) <= 1.6 * min(blocks)
    assert peak_kib < 100 * 1024


@pytest.fixture
async def kept() -> AsyncIterator[collector.Collector]:
    limits = collector.Limits(
        look_seconds=0.001, worth_counting_seconds=0.001, newcomers=2000, pass_seconds=0.05
    )
    async with collector.running(limits) as kept:
        yield kept


async def test_what_survives_is_frozen_and_not_looked_at_again(kept: collector.Collector) -> None:
    clock = SystemClock()
    survivors = [[number] for number in range(3000)]
    async with supervise.deadline(clock, 15):
        while not kept.frozen:
            await clock.sleep(0.001)
    left = {id(found) for found in gc.get_objects()}
    assert not any(id(one) in left for one in survivors)
    assert kept.full == 0


@pytest.mark.parametrize(
    ("busy", "grown", "looks"),
    [(True, 1.9, 0), (True, 2.1, 1), (False, 1.4, 0), (False, 1.6, 1)],
    ids=["busy-below", "busy-doubled", "idle-below", "idle-by-half"],
)
def test_everything_is_looked_at_only_when_memory_has_grown_much(
    busy: bool, grown: float, looks: int
) -> None:
    now, blocks = 0.0, 1_000_000
    kept = collector.Collector(
        collector.Limits(newcomers=1_000_000_000),
        monotonic=lambda: now,
        worked=lambda: now if busy else 0.0,
        blocks=lambda: blocks,
    )
    for factor in (1.0, grown):
        blocks = int(1_000_000 * factor)
        for _ in range(2):
            now += 150.0
            kept.look()
    assert kept.full == looks


async def test_garbage_among_newcomers_is_found(kept: collector.Collector) -> None:
    clock, gone = SystemClock(), []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            gone.append(1)

    for _ in range(2500):
        Cycle()
    async with supervise.deadline(clock, 15):
        while len(gone) < 2500:
            await clock.sleep(0.001)


async def test_python_is_given_back_as_it_was() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    async with collector.running():
        young, middle, old = gc.get_threshold()
        # What Python itself collects in one go stays as short as a pass over newcomers.
        assert young * (middle + 1) <= 30_000
        assert old > 1_000_000
        assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == before
    # Tests have frozen a million objects, which stay frozen: to look at them takes seconds.
    assert gc.get_freeze_count() >= frozen > 0


def test_where_nothing_was_frozen_nothing_stays_frozen() -> None:
    script = """if True:
        import asyncio, gc
        from process.runtime import collector

        async def look():
            async with collector.running():
                return gc.get_freeze_count()

        print(asyncio.run(look()) > 0, gc.get_freeze_count())
        """
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["True", "0"]


async def test_collections_are_counted_and_timed() -> None:
    registry = metrics.Registry()
    timing = collector.Timing(registry)
    async with supervise.Supervisor("test") as tasks:
        tasks.start("collections", timing.run)
        clock = SystemClock()
        await clock.sleep(0)
        gc.collect(1)
        gc.collect(1)
    timing.drain()
    labels = {"generation": "1"}
    count = registry.value("koord_process_collection_seconds_count", labels)
    longest = registry.value("koord_process_longest_collection_seconds", labels)
    total = registry.value("koord_process_collection_seconds_sum", labels)
    assert count is not None
    assert longest is not None
    assert total is not None
    assert count >= 2
    assert 0 < longest <= total
    assert timing.note not in gc.callbacks
