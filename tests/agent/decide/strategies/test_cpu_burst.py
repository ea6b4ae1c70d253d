"""When containers may exceed their limit, and what is written for it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import burst_limiter
from agent.decide.strategies import cpu_burst
from agent.model import edits, state, strategy_settings
from api import names
from tests.agent import conftest

BURST, QUOTA = edits.Role.CPU_BURST, edits.Role.CPU_QUOTA
AUTO = strategy_settings.NodeBurst(strategy_settings.Burst("auto"))
IDLE = cpu_burst.Averages(1.0)


@pytest.fixture
def now(placed):
    placed.limits = {"cpu": "2"}
    container = {"quota_us": 200_000, "throttled": 0.3}
    return state.NodeState(
        at=0,
        pods=(placed(container=container, quota_us=200_000),),
        processors=tuple(state.Processor(cpu, cpu, 0, 0) for cpu in range(8)),
    )


def decide(now, settings=AUTO, averages=IDLE):
    decision, _ = cpu_burst.decide(now, settings, averages, {}, 0.0)
    return decision, {(edit.role, edit.group): edit.value for edit in decision.wanted}


def test_a_throttled_container_grows_while_there_is_room(now):
    decision, values = decide(now)
    assert values[QUOTA, "a/app"] == values[QUOTA, "a"] == "240000"
    assert decision.figures["up"] == 2
    assert "idle" in decision.reason


def test_a_mainline_kernel_takes_no_burst_beyond_the_quota(now):
    assert decide(now)[1][BURST, "a/app"] == "200000"
    kernel = state.Kernel(frozenset({edits.Role.CPU_IDENTITY.value}))
    _, values = decide(msgspec.structs.replace(now, kernel=kernel))
    assert values[BURST, "a/app"] == values[BURST, "a"] == "2000000"


@pytest.mark.parametrize(
    ("limit", "standing", "expected"),
    [
        pytest.param("4", 200_000, "200000", id="a raise that waits"),
        pytest.param("1", 200_000, "100000", id="a cut that waits"),
        pytest.param("2", -1, "200000", id="no quota yet"),
        pytest.param("2", None, "200000", id="nobody knows"),
        pytest.param("2", 150_000, "150000", id="scaled to fast cpus"),
    ],
)
def test_no_burst_is_above_the_quota_that_stands(now, placed, limit, standing, expected):
    """The kernel answers EINVAL to a burst above the quota, and to a quota below the burst."""
    pod = placed(limits={"cpu": limit}, container={"quota_us": standing}, quota_us=standing)
    _, values = decide(msgspec.structs.replace(now, pods=(pod,)))
    assert values[BURST, "a/app"] == values[BURST, "a"] == expected


@given(
    st.integers(1, 64),
    st.none() | st.just(-1) | st.integers(1000, 1 << 40),
    st.integers(0, 1 << 40),
)
def test_a_burst_never_exceeds_any_quota(cores, standing, percent):
    written = f'{{"policy":"auto","cpuBurstPercent":{percent}}}'
    pod = conftest.Placed(
        limits={"cpu": str(cores)},
        annotations={names.ANNOTATION_CPU_BURST: written},
        container={"quota_us": standing},
    )(quota_us=standing)
    now = state.NodeState(at=0, pods=(pod,), processors=(state.Processor(0, 0, 0, 0),))
    _, values = decide(now)
    for key, value in values.items():
        if key[0] is BURST:
            assert 0 < int(value) <= cores * 100_000
            assert standing is None or standing < 0 or int(value) <= standing


def test_an_overloaded_node_shrinks_them_again(now, placed):
    grown = placed(
        limits={"cpu": "2"},
        container={"quota_us": 400_000, "throttled": 0.3},
        quota_us=400_000,
    )
    busy = msgspec.structs.replace(now, pods=(grown,))
    decision, values = decide(busy, averages=cpu_burst.Averages(6.0))
    assert values[QUOTA, "a/app"] == "320000"
    assert decision.figures["down"] == 2


def test_without_a_policy_nothing_is_wanted(now):
    assert decide(now, strategy_settings.NodeBurst())[1] == {}


def test_a_pod_may_ask_for_it_alone(now, placed):
    asks = placed(
        limits={"cpu": "2"},
        annotations={"koordinator.sh/cpuBurst": '{"policy":"auto"}'},
        container={"quota_us": 200_000, "throttled": 0.3},
        quota_us=200_000,
    )
    now = msgspec.structs.replace(now, pods=(asks,))
    assert decide(now, strategy_settings.NodeBurst())[1][QUOTA, "a/app"] == "240000"


def test_quotas_of_fast_cpus_are_the_base(now, placed):
    scaled = placed(
        limits={"cpu": "2"}, container={"quota_us": 100_000, "throttled": 0.0}, quota_us=100_000
    )
    now = msgspec.structs.replace(now, pods=(scaled,))
    _, values = decide(now, msgspec.structs.replace(AUTO, ratio=2.0))
    assert values[QUOTA, "a/app"] == "100000"


def test_a_throttled_sidecar_grows_with_its_pod(now):
    (pod,) = now.pods
    spec = msgspec.structs.replace(pod.containers[0].container, restart_policy="Always")
    side = state.ContainerState(
        "side", "a/side", spec, initial=True, quota_us=200_000, throttled=0.3
    )
    app = msgspec.structs.replace(pod.containers[0], throttled=0.0)
    pod = msgspec.structs.replace(pod, containers=(app, side), quota_us=400_000)
    _, values = decide(msgspec.structs.replace(now, pods=(pod,)))
    assert values[QUOTA, "a/side"] == "240000"
    assert values[QUOTA, "a/app"] == "200000"
    assert values[QUOTA, "a"] == "440000"


def test_unlimited_pods_and_init_containers_are_left_alone(now, placed):
    pods = (
        placed("free", limits={}, container={"quota_us": -1}, quota_us=-1),
        placed("first", limits={"cpu": "1"}, container={"initial": True}),
    )
    assert decide(msgspec.structs.replace(now, pods=pods))[1] == {}


@pytest.mark.parametrize(
    ("node", "expected"),
    [(None, "unknown"), (1.0, "idle"), (3.7, "cooling"), (4.0, "overload")],
)
def test_how_loaded_the_shared_cpus_are(now, node, expected):
    assert cpu_burst.node_load(now, 50, cpu_burst.Averages(node)).value == expected


def test_no_shared_cpu_is_an_overload(now, placed):
    own = placed(quality="LSR", requests={"cpu": "8"})
    assert (
        cpu_burst.node_load(msgspec.structs.replace(now, pods=(own,)), 50, IDLE)
        is cpu_burst.Load.OVERLOAD
    )


@pytest.mark.parametrize(
    ("period", "percent", "allowed"), [(None, 300, True), (-1, 300, True), (10, None, False)]
)
def test_a_limiter_without_a_period_allows(period, percent, allowed):
    assert burst_limiter.look(None, period, percent, 200, 0.0) == (allowed, None)


def test_a_bucket_runs_dry_and_fills_again():
    allowed, bucket = burst_limiter.look(None, 10, 200, 100, 0.0)
    assert allowed
    assert bucket.tokens == 250
    allowed, bucket = burst_limiter.look(bucket, 10, 200, 200, 3.0)
    assert not allowed
    allowed, bucket = burst_limiter.look(bucket, 10, 200, 0, 6.0)
    assert allowed
    assert burst_limiter.look(bucket, 20, 200, 100, 6.0)[1].capacity == 2000
