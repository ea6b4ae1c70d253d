"""When best-effort work is shrunk, by how much, and when it is let go."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.strategies import cpu_suppress
from agent.model import edits, state
from api import names
from domain.cpus import cpulists

CPUSET, QUOTA = edits.Role.CPUSET, edits.Role.CPU_QUOTA
GROUPS = ("be", "be/pod", "be/pod/c")


def processors(count):
    return tuple(state.Processor(cpu, cpu // 2, 0, 0) for cpu in range(count))


@pytest.fixture
def busy(node, new_pod):
    """Eight cores, 65 %: 5.2; online uses 2, the system 1, best effort 2: 2.2 are left."""
    every = frozenset(range(8))
    return state.NodeState(
        at=0,
        node=node,
        thresholds=state.Thresholds(True),
        usage=state.Usage(cpu=5.0),
        pods=(
            state.PodState(new_pod("ls"), "Burstable", state.Usage(cpu=2.0)),
            state.PodState(new_pod("be", "BestEffort"), "BestEffort", state.Usage(cpu=2.0)),
        ),
        best_effort=state.BestEffort(
            tuple(state.Group(path, depth, every) for depth, path in enumerate(GROUPS)), every, -1
        ),
        processors=processors(8),
    )


def by_role(decided, role):
    return {edit.group: edit.value for edit in decided.wanted if edit.role is role}


def test_best_effort_gets_what_the_threshold_leaves(busy):
    decided = cpu_suppress.decide(busy)
    assert decided.allowed_milli == 2200
    cpus = by_role(decided, CPUSET)
    assert set(cpus) == set(GROUPS)
    assert {len(cpulists.parse(value)) for value in cpus.values()} == {3}
    assert by_role(decided, QUOTA) == {"be": None}
    assert "2.20 cores" in decided.reason
    assert "threshold 65 %" in decided.reason


def test_a_quota_is_used_where_asked(busy):
    thresholds = msgspec.structs.replace(busy.thresholds, cpu_suppress_policy="cfsQuota")
    decided = cpu_suppress.decide(msgspec.structs.replace(busy, thresholds=thresholds))
    assert by_role(decided, QUOTA) == {"be": "220000"}
    assert by_role(decided, CPUSET) == dict.fromkeys(GROUPS)


def test_a_quota_stands_in_where_the_kernel_has_no_cpusets(busy):
    without = state.BestEffort((state.Group("be", 0, frozenset()),), None, -1)
    decided = cpu_suppress.decide(msgspec.structs.replace(busy, best_effort=without))
    assert by_role(decided, QUOTA) == {"be": "220000"}


def test_a_small_change_of_the_quota_keeps_the_old_one(busy):
    groups = busy.best_effort.groups
    thresholds = msgspec.structs.replace(busy.thresholds, cpu_suppress_policy="cfsQuota")
    now = msgspec.structs.replace(
        busy, thresholds=thresholds, best_effort=state.BestEffort(groups, frozenset(), 221_000)
    )
    assert by_role(cpu_suppress.decide(now), QUOTA) == {"be": "221000"}


@pytest.mark.parametrize(
    ("capacity", "current", "allowed", "expected"),
    [
        (80_000, 1_000_000, 20_000, 1_800_000),
        (80_000, 1_980_000, 20_000, None),
        (80_000, -1, 20_000, 2_000_000),
        (80_000, 2_000_000, -5_000, 2_000),
    ],
    ids=["step", "too small", "from none", "least"],
)
def test_quota_steps(capacity, current, allowed, expected):
    assert cpu_suppress.next_quota(allowed, current, capacity) == expected


def test_switched_off_everything_is_put_back(busy):
    off = msgspec.structs.replace(busy, thresholds=state.Thresholds(False))
    decided = cpu_suppress.decide(off)
    assert decided.allowed_milli is None
    assert {edit.value for edit in decided.wanted} == {None}
    assert len(decided.wanted) == 4


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"thresholds": None}, "NodeSLO"),
        ({"node": None}, "Node object"),
        ({"usage": state.Usage()}, "usage figure"),
        ({"pods": ()}, "a pod on this node"),
        ({"best_effort": None}, "group of best-effort"),
        (
            {"best_effort": state.BestEffort((state.Group("be", 0, frozenset()),), None, None)},
            "a file to limit it by",
        ),
    ],
    ids=["no NodeSLO", "no Node", "no sample", "no pods", "no groups", "no files"],
)
def test_nothing_is_decided_while_something_is_missing(busy, changes, missing):
    decided = cpu_suppress.decide(msgspec.structs.replace(busy, **changes))
    assert decided.wanted == ()
    assert decided.allowed_milli is None
    assert missing in decided.reason


def test_a_floor_holds(busy):
    thresholds = msgspec.structs.replace(
        busy.thresholds, cpu_suppress_percent=10, cpu_suppress_min_percent=25
    )
    assert cpu_suppress.allowed_milli(busy, thresholds) == 2000
    bare = msgspec.structs.replace(thresholds, cpu_suppress_min_percent=None)
    assert cpu_suppress.allowed_milli(busy, bare) == 800 - 3000


def test_host_applications_count_by_their_class(busy):
    apps = (state.HostApplication("a", True, 1.0), state.HostApplication("b", False, 0.5))
    now = msgspec.structs.replace(busy, host_applications=apps, usage=state.Usage(cpu=6.5))
    assert cpu_suppress.allowed_milli(now, busy.thresholds) == 5200 - 2000 - 500 - 1000


def test_growth_is_limited_and_shrinking_is_not(busy):
    assert len(cpu_suppress.next_cpus(busy, 8000, before=2)) == 3
    assert len(cpu_suppress.next_cpus(busy, -1000, before=8)) == 2


def test_without_its_groups_nothing_can_be_written(busy):
    bare = msgspec.structs.replace(busy, best_effort=None)
    assert cpu_suppress.by_cpuset(bare, 2000, "r") == ()
    assert cpu_suppress.by_quota(bare, 2000, "r") == ()


@pytest.mark.parametrize("allowed", [-1000, 2000, 8000])
def test_no_cpu_at_all_changes_nothing(busy, allowed):
    reserved = state.Reserved(cpus=frozenset(range(8)))
    now = msgspec.structs.replace(busy, reserved=reserved)
    assert cpu_suppress.next_cpus(now, allowed, 2) == frozenset()
    assert by_role(cpu_suppress.decide(now), CPUSET) == {}


@given(st.integers(1, 64), st.integers(0, 64), st.integers(1, 4), st.integers(1, 4))
def test_choosing_gives_as_many_as_asked_or_none(count, wanted, sockets, threads):
    cpus = [
        state.Processor(cpu, cpu // threads, cpu % sockets, cpu % sockets) for cpu in range(count)
    ]
    chosen = cpu_suppress.choose(cpus, wanted)
    assert len(chosen) == (wanted if wanted <= count else 0)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= {processor.cpu for processor in cpus}


@given(st.floats(0, 100), st.floats(0, 8), st.floats(0, 8), st.integers(0, 100), st.integers(1, 8))
def test_what_is_given_respects_every_bound(node_cpu, online, batch, percent, before):
    every = frozenset(range(8))
    exclusive = frozenset({0, 1})
    now = state.NodeState(
        at=0,
        usage=state.Usage(cpu=node_cpu),
        processors=processors(8),
        reserved=state.Reserved(cpus=exclusive),
    )
    allowed = int(8000 * percent / 100 - online * 1000 - batch)
    chosen = cpu_suppress.next_cpus(now, allowed, before)
    assert chosen <= every - exclusive
    assert len(chosen) <= max(before + 1, 2)


PLACED = '{"numaNodeResources":[{"node":0,"resources":{"kubernetes.io/batch-cpu":"1k"}}]}'


@pytest.fixture
def managed(busy, new_pod):
    """Best effort of which one container has a place of its own, and an exclusive online pod."""
    status = {names.ANNOTATION_RESOURCE_STATUS: PLACED}
    there = (state.ContainerState("app", "be/pod/c"),)
    placed = state.PodState(
        new_pod("placed", "BestEffort", **status), "BestEffort", containers=there, sandbox="be/x"
    )
    raw = new_pod("alone", "Guaranteed")
    labels = {"koordinator.sh/qosClass": "LSE"}
    alone = msgspec.structs.replace(
        raw, metadata=msgspec.structs.replace(raw.metadata, labels=labels)
    )
    exclusive = state.PodState(alone, "Guaranteed", cpus=frozenset({0, 1}))
    return msgspec.structs.replace(busy, pods=(*busy.pods, placed, exclusive))


def test_managed_best_effort_is_not_shrunk_and_placed_containers_are_left_alone(managed):
    decided = cpu_suppress.decide(managed, managed=True)
    assert decided.allowed_milli is None
    assert by_role(decided, CPUSET) == {"be": "2-7", "be/pod": "2-7"}
    assert by_role(decided, QUOTA) == {"be": None}


def test_what_lies_inside_a_placed_container_is_left_alone_with_it(managed):
    best_effort = managed.best_effort
    inner = [state.Group(f"be/pod/{name}/inner", 3, frozenset()) for name in ("c", "d")]
    groups = state.BestEffort((*best_effort.groups, *inner), best_effort.cpus, None)
    decided = cpu_suppress.decide(
        msgspec.structs.replace(managed, best_effort=groups), managed=True
    )
    assert by_role(decided, CPUSET) == dict.fromkeys(("be", "be/pod", "be/pod/d/inner"), "2-7")


@pytest.mark.parametrize(
    "written",
    [
        "{}",
        "{",
        '{"cpuset":"0-7"}',
        '{"numaNodeResources":[{"node":0}]}',
        PLACED.replace("0,", "9,"),
    ],
    ids=["nothing", "unreadable", "cpus", "no cpu of a node", "no such node"],
)
def test_managed_best_effort_cannot_exempt_itself_by_an_annotation(managed, written):
    *others, placed, alone = managed.pods
    meta = msgspec.structs.replace(
        placed.pod.metadata, annotations={names.ANNOTATION_RESOURCE_STATUS: written}
    )
    pod = msgspec.structs.replace(placed.pod, metadata=meta)
    pods = (*others, msgspec.structs.replace(placed, pod=pod), alone)
    decided = cpu_suppress.decide(msgspec.structs.replace(managed, pods=pods), managed=True)
    assert by_role(decided, CPUSET)["be/pod/c"] == "2-7"


@pytest.mark.parametrize(
    ("kept", "expected"),
    [({1, 2, 3, 4, 5, 6, 7}, {0}), (set(range(1, 7)), {0, 7}), (set(range(8)), None)],
    ids=["one is left", "two are left", "none is left"],
)
def test_best_effort_runs_on_what_is_left_however_little_that_is(busy, kept, expected):
    now = msgspec.structs.replace(busy, reserved=state.Reserved(kubelet_cpus=frozenset(kept)))
    chosen = {cpulists.parse(cpus) for cpus in by_role(cpu_suppress.decide(now), CPUSET).values()}
    assert chosen == ({frozenset(expected)} if expected else set())


@pytest.mark.parametrize("policy", ["cpuset", "managed", "off"])
def test_best_effort_keeps_off_what_the_kubelet_gave_away(busy, policy):
    """Cpus that a static kubelet gave to one pod alone."""
    kept = state.Reserved(kubelet_cpus=frozenset({1, 2, 3, 4, 5}))
    now = msgspec.structs.replace(busy, reserved=kept)
    if policy == "off":
        assert cpu_suppress.full_set(now) == {0, 6, 7}
        return
    decided = cpu_suppress.decide(now, managed=policy == "managed")
    chosen = {cpulists.parse(cpus) for cpus in by_role(decided, CPUSET).values()}
    assert chosen
    assert all(cpus <= {0, 6, 7} for cpus in chosen)


@pytest.mark.parametrize(
    "changes",
    [
        {"best_effort": state.BestEffort((state.Group("be", 0, frozenset()),), None, -1)},
        {"processors": ()},
    ],
    ids=["no cpusets", "no processors"],
)
def test_managed_best_effort_without_cpus_lets_go_of_its_quota(managed, changes):
    decided = cpu_suppress.decide(msgspec.structs.replace(managed, **changes), managed=True)
    assert by_role(decided, CPUSET) == {}
    assert by_role(decided, QUOTA) == {"be": None}


def test_managed_best_effort_is_let_go_where_suppression_is_off(managed):
    *others, _exclusive = managed.pods
    off = msgspec.structs.replace(managed, thresholds=state.Thresholds(False), pods=tuple(others))
    assert by_role(cpu_suppress.decide(off, managed=True), CPUSET) == dict.fromkeys(GROUPS)


def test_managed_best_effort_keeps_off_exclusive_cpus_where_suppression_is_off(managed):
    off = msgspec.structs.replace(managed, thresholds=state.Thresholds(False))
    decided = cpu_suppress.decide(off, managed=True)
    assert by_role(decided, CPUSET) == {"be": "2-7", "be/pod": "2-7"}


@pytest.mark.parametrize(
    "thresholds",
    [
        pytest.param({"enable": False}, id="off"),
        pytest.param({"enable": True, "cpu_suppress_policy": "cfsQuota"}, id="by quota"),
    ],
)
def test_best_effort_keeps_off_exclusive_cpus_without_a_cpuset_policy(managed, thresholds):
    now = msgspec.structs.replace(managed, thresholds=state.Thresholds(**thresholds))
    assert by_role(cpu_suppress.decide(now), CPUSET) == dict.fromkeys(GROUPS, "2-7")
    *others, alone = managed.pods
    labels = {"koordinator.sh/qosClass": "LSR"}
    meta = msgspec.structs.replace(alone.pod.metadata, labels=labels)
    shared = msgspec.structs.replace(alone, pod=msgspec.structs.replace(alone.pod, metadata=meta))
    now = msgspec.structs.replace(now, pods=(*others, shared))
    assert by_role(cpu_suppress.decide(now), CPUSET) == dict.fromkeys(GROUPS)
