"""How memory is protected, beyond what was recorded."""

import msgspec
import pytest

from agent.decide.strategies import memory_qos
from agent.model import cgroup_properties, edits, state, strategy_settings
from api.kubernetes import core

MIN, LOW, HIGH = edits.Role.MEMORY_MIN, edits.Role.MEMORY_LOW, edits.Role.MEMORY_HIGH
GIB = 1 << 30
KEY = "koordinator.sh/memoryQOS"


@pytest.fixture
def now(node, placed):
    placed.quality, placed.kubernetes_qos = "LSR", "Guaranteed"
    placed.requests = placed.limits = {"memory": "2Gi"}
    groups = {"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"}
    return state.NodeState(at=0, node=node, pods=(placed(),), qos_groups=groups)


def values(now, **settings):
    name = now.pods[0].effective_qos
    classes = {name: strategy_settings.Memory(**settings)} if settings else {}
    found = memory_qos.decide(now, classes)
    return {(edit.role, edit.group): edit.value for edit in found.wanted}


def test_a_request_is_protected_as_a_whole(now):
    found = values(now, min_percent=100, low_percent=100)
    for group in ("a", "a/app", "k"):
        assert found[MIN, group] == found[LOW, group] == str(2 * GIB)


@pytest.mark.parametrize(
    ("percent", "expected"), [(80, 8 * GIB), (100, 10 * GIB), (0, cgroup_properties.UNLIMITED)]
)
def test_throttling_of_a_batch_container_without_a_request(now, placed, percent, expected):
    batch = placed(
        quality="BE",
        kubernetes_qos="BestEffort",
        requests={},
        limits={"kubernetes.io/batch-memory": "10Gi"},
    )
    now = msgspec.structs.replace(now, pods=(batch,))
    assert values(now, throttling_percent=percent)[HIGH, "a/app"] == str(expected)


def test_above_a_hundred_percent_nothing_is_throttled_before_the_limit(now, placed):
    wide = placed(quality="LS", requests={"memory": "1Gi"}, limits={"memory": "2Gi"})
    now = msgspec.structs.replace(now, pods=(wide,))
    assert int(values(now, throttling_percent=120)[HIGH, "a/app"]) >= 2 * GIB
    assert values(now, throttling_percent=80)[HIGH, "a/app"] == "1932734464"


def test_batch_reclaims_for_itself_where_no_kernel_does(now, placed):
    batch = placed(quality="BE", requests={}, limits={"kubernetes.io/batch-memory": "10Gi"})
    plain = state.Kernel(frozenset({MIN.value}))
    bare = msgspec.structs.replace(now, pods=(batch,), kernel=plain)
    assert values(bare, throttling_percent=0, wmark_ratio=80)[HIGH, "a/app"] == str(8 * GIB)
    online = msgspec.structs.replace(now, kernel=plain)
    found = values(online, throttling_percent=0, wmark_ratio=80)
    assert found[HIGH, "a/app"] == str(cgroup_properties.UNLIMITED)
    able = state.Kernel(frozenset({edits.Role.MEMORY_WMARK_RATIO.value}))
    found = values(msgspec.structs.replace(bare, kernel=able), throttling_percent=0, wmark_ratio=80)
    assert found[HIGH, "a/app"] == str(cgroup_properties.UNLIMITED)


def test_a_sidecar_is_protected_and_a_container_that_ends_is_not(now):
    (pod,) = now.pods
    asked = core.ResourceRequirements(requests={"memory": "1Gi"}, limits={"memory": "1Gi"})
    side = core.Container(name="side", restart_policy="Always", resources=asked)
    once = core.Container(name="once", resources=asked)
    inits = tuple(
        state.ContainerState(one.name, f"a/{one.name}", one, initial=True) for one in (side, once)
    )
    spec = msgspec.structs.replace(pod.pod.spec, init_containers=(side, once))
    raw = msgspec.structs.replace(pod.pod, spec=spec)
    pod = msgspec.structs.replace(pod, pod=raw, containers=(*pod.containers, *inits))
    found = values(msgspec.structs.replace(now, pods=(pod,)), min_percent=100)
    wanted = {"a": 3, "a/app": 2, "a/side": 1, "k": 3}
    protected = {group: value for (role, group), value in found.items() if role is MIN}
    assert protected == {group: str(size * GIB) for group, size in wanted.items()}


def test_containers_of_a_virtual_machine_are_out_of_reach(now):
    (pod,) = now.pods
    spec = msgspec.structs.replace(pod.pod.spec, runtime_class_name=state.KATA)
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    found = values(msgspec.structs.replace(now, pods=(pod,)), min_percent=100)
    assert found[MIN, "a"] == str(2 * GIB)
    assert (MIN, "a/app") not in found


def test_one_pod_may_ask_for_it(now, placed):
    asks = placed(annotations={KEY: '{"policy":"auto","minLimitPercent":50}'})
    now = msgspec.structs.replace(now, pods=(asks, placed("other")))
    found = values(now)
    assert found[MIN, "a"] == str(GIB)
    assert not [group for _, group in found if group.startswith("other")]


def test_groups_that_are_unknown_and_pods_that_are_over_are_passed_by(now, placed):
    pods = (placed("unknown", group=""), placed("first", container={"initial": True}))
    found = values(msgspec.structs.replace(now, pods=pods), min_percent=100)
    assert {group for _, group in found} == {"unknown/app", "first", "k"}
    unlimited = placed(quality="BE", requests={}, limits={})
    bare = state.Kernel(frozenset({MIN.value}))
    now = msgspec.structs.replace(now, pods=(unlimited,), kernel=bare)
    found = values(now, throttling_percent=0, wmark_ratio=80)
    assert found[HIGH, "a/app"] == str(cgroup_properties.UNLIMITED)


def test_without_any_wish_nothing_is_wanted(now):
    found = memory_qos.decide(now, {})
    assert (found.wanted, found.decided) == ((), True)
    assert not memory_qos.decide(msgspec.structs.replace(now, node=None), {}).decided
