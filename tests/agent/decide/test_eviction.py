"""When pods have to leave, beyond what was recorded."""

import msgspec
import pytest

from agent.decide import eviction
from agent.decide.strategies import cpu_evict, memory_evict
from agent.model import state, strategy_settings
from api.kubernetes import core

GIB = 1 << 30
EVICTABLE = {"koordinator.sh/eviction-enabled": "true"}
BUSY = strategy_settings.CpuEviction(
    used=strategy_settings.Bounds(85, 80), highest_priority=5999, pressure=10
)
WINDOW = cpu_evict.Window(node=7.5)


@pytest.fixture
def now(node, placed):
    placed.quality, placed.labels, placed.priority = "BE", EVICTABLE, 5500
    pods = (
        placed("small", usage=state.Usage(cpu=0.5, memory=GIB)),
        placed("large", usage=state.Usage(cpu=2.0, memory=4 * GIB)),
    )
    return state.NodeState(at=0, node=node, pods=pods, usage=state.Usage(memory=13 * GIB))


def chosen(tasks, **more):
    return [one.name for one in eviction.pick(tasks, **more)]


def cpu(now, settings=BUSY, window=WINDOW, enabled=(cpu_evict.CPU_EVICT,)):
    return cpu_evict.evict(cpu_evict.tasks(now, settings, window), enabled)


def test_high_usage_evicts_who_uses_most(now):
    (task,) = cpu(now)
    assert task.to_release == {"cpu": 8000 * 13 // 100}
    assert chosen((task,)) == ["large"]
    assert "uses 93 % of its cpu" in task.reason
    assert task.figures["node-percent"] == 93


@pytest.mark.parametrize(("waiting", "evicts"), [(None, True), (30.0, True), (2.0, False)])
def test_usage_alone_evicts_nobody_where_the_kernel_says_that_none_waits(now, waiting, evicts):
    pressed = msgspec.structs.replace(now, pressure=state.Pressure(cpu=waiting))
    assert bool(cpu(pressed)) is evicts
    if waiting == 30.0:
        assert "wait 30 %" in cpu(pressed)[0].reason


def test_without_a_priority_best_effort_leaves(now, placed):
    settings = strategy_settings.CpuEviction(
        used=strategy_settings.Bounds(85, 80), best_effort=True
    )
    unasked = placed("unasked", labels={}, usage=state.Usage(cpu=3.0), priority=5000)
    online = placed("online", quality="LS", usage=state.Usage(cpu=6.0), priority=5000)
    now = msgspec.structs.replace(now, pods=(*now.pods, online, unasked))
    (task,) = cpu(now, settings)
    assert [pod.pod.metadata.name for pod in task.victims] == ["unasked", "large", "small"]


def test_without_a_figure_nothing_is_evicted(now):
    found = cpu_evict.tasks(now, BUSY, cpu_evict.Window())
    assert found[cpu_evict.CPU_EVICT].why == "the node has no cpu figure yet"
    found = cpu_evict.tasks(msgspec.structs.replace(now, node=None), BUSY, WINDOW)
    assert {answer.why for answer in found.values()} == {"the node's cpu is unknown"}


STARVED = strategy_settings.CpuEviction(
    satisfaction=strategy_settings.Bounds(80, 50), window_seconds=300
)


def starved(**changes):
    given = {
        "usage": cpu_evict.Series(2900, 2900, 300),
        "request": cpu_evict.Series(10_000, 10_000, 300),
        "limit": cpu_evict.Series(3000, 3000, 300),
    }
    return cpu_evict.Window(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "released"),
    [
        ({}, 5000),
        ({"usage": cpu_evict.Series(2000, 2000, 300)}, None),
        ({"usage": cpu_evict.Series(2900, 2900, 9)}, None),
        ({"limit": cpu_evict.Series(3000, 6000, 300)}, None),
        ({"request": cpu_evict.Series(10_000, 7000, 300)}, 2600),
        ({"limit": cpu_evict.Series(0, 0, 300)}, None),
    ],
    ids=["starved", "has room", "few samples", "satisfied by now", "asks for less", "no limit"],
)
def test_best_effort_that_is_starved_releases_requests(now, changes, released):
    found = cpu_evict.tasks(now, STARVED, starved(**changes))[cpu_evict.BE_CPU_EVICT]
    wanted = getattr(found, "to_release", {}).get("kubernetes.io/batch-cpu")
    assert wanted == released


@pytest.mark.parametrize(
    ("lower", "upper", "field"),
    [(None, 80, "Lower"), (50, None, "Upper"), (61, 80, "Lower"), (50, 40, "Upper")],
)
def test_unusable_settings_name_their_field(now, lower, upper, field):
    settings = strategy_settings.CpuEviction(satisfaction=strategy_settings.Bounds(upper, lower))
    found = cpu_evict.tasks(now, settings, starved())[cpu_evict.BE_CPU_EVICT]
    assert found.misconfigured
    assert f"cpuEvictBESatisfaction{field}Percent" in found.why


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_usage_threshold_out_of_its_range_evicts_nothing(now, percent):
    settings = msgspec.structs.replace(STARVED, best_effort_usage=percent)
    found = cpu_evict.tasks(now, settings, starved())[cpu_evict.BE_CPU_EVICT]
    assert found.misconfigured
    assert f"cpuEvictBEUsageThresholdPercent {percent} is not in 0..100" in found.why


def test_memory_is_given_back_down_to_the_lower_bound(now):
    settings = strategy_settings.MemoryEviction(used=strategy_settings.Bounds(75, 60))
    found = memory_evict.tasks(now, settings)
    tasks = memory_evict.evict(found, {memory_evict.BE_MEMORY_EVICT})
    assert tasks[0].to_release == {"memory": 16 * GIB * 21 // 100}
    assert chosen(tasks) == ["large"]
    assert memory_evict.evict(found, ()) == ()


def test_by_priority_mostly_one_leaves_at_a_time(now):
    settings = strategy_settings.MemoryEviction(
        used=strategy_settings.Bounds(75, 10), highest_priority=5999
    )
    tasks = memory_evict.evict(memory_evict.tasks(now, settings), {memory_evict.MEMORY_EVICT})
    assert chosen(tasks) == ["large"]


def test_all_that_is_requested_is_bound(now, placed):
    online = placed("online", quality="LS", requests={"memory": "12Gi"}, labels={}, priority=9000)
    batch = placed("batch", requests={"kubernetes.io/batch-memory": "4Gi"})
    now = msgspec.structs.replace(now, pods=(*now.pods, online, batch))
    settings = strategy_settings.MemoryEviction(all_requested=80)
    found = memory_evict.tasks(now, settings)[memory_evict.ALL_REQUESTED]
    assert found.to_release == {"memory": 16 * GIB - 16 * GIB * 80 // 100}
    assert [pod.pod.metadata.name for pod in found.victims] == ["batch"]
    assert "request 100 %" in found.reason
    relaxed = msgspec.structs.replace(settings, all_requested=100)
    idle = memory_evict.tasks(now, relaxed)[memory_evict.ALL_REQUESTED]
    assert "within 100 %" in idle.why
    unknown = memory_evict.tasks(msgspec.structs.replace(now, node=None), settings)
    assert "unknown" in unknown[memory_evict.ALL_REQUESTED].why


@pytest.fixture(params=["kubernetes.io/batch-cpu", "koordinator.sh/batch-cpu"])
def lent(request, now, placed):
    """A node and a pod, in present names or in those of an older release."""
    status = {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8", request.param: "2000"}}
    node = msgspec.convert({"metadata": {"name": "n"}, "status": status}, core.Node)
    used = state.Usage(cpu=0.1)
    free = placed("free", quality="", requests={"cpu": "1"}, priority=3500, usage=used)
    batch = placed("batch", requests={request.param: "3000"}, usage=used)
    return msgspec.structs.replace(now, node=node, pods=(free, batch))


def test_nobody_is_evicted_in_vain(lent):
    settings = strategy_settings.CpuEviction(
        requested=strategy_settings.Bounds(100, 90), highest_priority_requested=7999
    )
    found = cpu_evict.tasks(lent, settings, WINDOW)[cpu_evict.CPU_ALLOCATABLE_EVICT]
    assert found.to_release == {"kubernetes.io/batch-cpu": 1200}
    assert len(found.victims) == 2
    assert chosen(cpu(lent, settings, enabled=(cpu_evict.CPU_ALLOCATABLE_EVICT,))) == ["batch"]


def test_who_asks_for_nothing_of_what_is_over_stays(lent, placed):
    used = state.Usage(cpu=1.0)
    other = placed("mem", requests={"kubernetes.io/batch-memory": "1Gi"}, priority=5000, usage=used)
    now = msgspec.structs.replace(lent, pods=(other, *lent.pods))
    settings = strategy_settings.CpuEviction(
        requested=strategy_settings.Bounds(100, 90), highest_priority_requested=7999
    )
    assert chosen(cpu(now, settings, enabled=(cpu_evict.CPU_ALLOCATABLE_EVICT,))) == ["batch"]


@pytest.mark.parametrize("highest", [None, 8000])
def test_production_is_never_evicted_for_requests(lent, highest):
    settings = strategy_settings.CpuEviction(
        requested=strategy_settings.Bounds(100, 90), highest_priority_requested=highest
    )
    found = cpu_evict.tasks(lent, settings, WINDOW)[cpu_evict.CPU_ALLOCATABLE_EVICT]
    assert found.misconfigured
    assert "allocatableEvictPriorityThreshold" in found.why


def test_who_is_leaving_counts_and_who_was_refused_is_passed_over(now):
    tasks = cpu(now)
    assert chosen(tasks, gone={"uid-large"}) == []
    assert chosen(tasks, refused={"uid-large"}) == ["small"]


@pytest.mark.parametrize(
    ("written", "allowed"),
    [(None, True), ('["CPUEvict"]', True), ('["other"]', False), ("[]", False), ("x", False)],
)
def test_a_pod_says_who_may_evict_it(placed, written, allowed):
    annotations = {} if written is None else {"koordinator.sh/eviction-policy": written}
    assert eviction.allows(placed(annotations=annotations), "CPUEvict") is allowed
