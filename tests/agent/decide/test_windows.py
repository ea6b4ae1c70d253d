"""Figures of the last while."""

import msgspec
import pytest

from agent.decide import windows
from agent.model import state
from agent.store import time_series
from api.kubernetes import core

BATCH = {"kubernetes.io/batch-cpu": "4000"}
PROCESSORS = tuple(state.Processor(cpu, cpu, 0, 0) for cpu in range(8))


def groups(*sizes, quota=-1):
    found = tuple(
        state.Group(f"g{depth}", min(depth, 2), frozenset(range(size)))
        for depth, size in enumerate(sizes)
    )
    return state.BestEffort(found, found[0].cpus, quota)


@pytest.fixture
def now(placed):
    batch = placed("batch", quality="BE", requests=BATCH, usage=state.Usage(cpu=1.5))
    online = placed("online", usage=state.Usage(cpu=5.0))
    return state.NodeState(
        at=0, pods=(batch, online), best_effort=groups(6, 6, 4), processors=PROCESSORS
    )


def test_best_effort_is_remembered(now):
    seen, samples = windows.Windows(1.0), time_series.Histories()
    for second in range(10):
        seen.add(now, float(second))
        samples.add(("node", "cpu"), float(second), 6.5, 60)
    found = seen.of_evictions(samples, 5, 9.0)
    assert found.node == 6.5
    assert (found.usage.average, found.usage.last, found.usage.count) == (1500, 1500, 6)
    assert found.request.average == 4000
    assert found.limit.average == 4000
    later = seen.of_evictions(samples, 5, 90.0)
    assert later.usage.count == 0
    assert later.node is None


def test_what_sidecars_ask_for_counts(now):
    batch, online = now.pods
    asked = core.ResourceRequirements(requests={"kubernetes.io/batch-cpu": "500"})
    side = core.Container(name="side", restart_policy="Always", resources=asked)
    once = core.Container(name="once", resources=asked)
    spec = msgspec.structs.replace(batch.pod.spec, init_containers=(once, side))
    batch = msgspec.structs.replace(batch, pod=msgspec.structs.replace(batch.pod, spec=spec))
    seen = windows.Windows(1.0)
    seen.add(msgspec.structs.replace(now, pods=(batch, online)), 0.0)
    assert seen.of_evictions(time_series.Histories(), 5, 0.0).request.average == 4500


def test_bursts_look_at_the_last_seconds(now):
    seen, samples = windows.Windows(1.0), time_series.Histories()
    for second in range(20):
        samples.add(("node", "cpu"), float(second), float(second), 60)
        samples.add(("pod", "uid-batch", "cpu"), float(second), 2.0, 60)
    found = seen.of_bursts(now, samples, 19.0)
    assert found.node == pytest.approx(16.5)
    assert found.pods == {"uid-batch": 2.0}


@pytest.mark.parametrize(
    ("best_effort", "expected"),
    [
        (groups(6, 6, 4), 4000),
        (groups(6, quota=150_000), 1500),
        (groups(0, quota=-1), 8000),
        (None, None),
    ],
    ids=["smallest set", "quota", "no set", "unknown"],
)
def test_what_best_effort_may_use(best_effort, expected):
    picture = state.NodeState(at=0, best_effort=best_effort, processors=PROCESSORS)
    assert windows.real_limit(picture) == expected
