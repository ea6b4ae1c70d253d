"""Group identity, and what stands for it."""

import pytest

from agent.hooks.cpu import group_identity
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos

IDENTITY, POLICY = edits.Role.CPU_IDENTITY, edits.Role.PROCESS_POLICY
CLASSES = strategy_settings.Classes(
    cpu={
        qos.QoS.LSR: strategy_settings.Cpu(True, 2),
        qos.QoS.LS: strategy_settings.Cpu(True, 2),
        qos.QoS.BE: strategy_settings.Cpu(True, -1),
    }
)
KEY = "koordinator.sh/cpuQOS"


@pytest.fixture
def now(placed):
    pods = (
        placed("ls"),
        placed("be", quality="BE", kubernetes_qos="BestEffort"),
        placed("bad", annotations={KEY: '{"groupIdentity":7}'}),
    )
    apps = (state.HostApplication("nginx", False, qos="LS", group="host/nginx"),)
    return state.NodeState(
        at=0,
        pods=pods,
        host_applications=apps,
        qos_groups={"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"},
    )


def on(now, *roles, classes=CLASSES):
    kernel = state.Kernel(frozenset(role.value for role in roles))
    return group_identity.reconcile(
        state.NodeState(
            at=0,
            pods=now.pods,
            host_applications=now.host_applications,
            qos_groups=now.qos_groups,
            kernel=kernel,
        ),
        classes,
    )


def test_every_group_carries_its_identity(now):
    found = on(now, IDENTITY, edits.Role.SCHED_CORE, edits.Role.SCHED_GROUP_IDENTITY)
    values = {edit.group: edit.value for edit in found.wanted if edit.role is IDENTITY}
    assert values == {
        "ls": "2",
        "ls/app": "2",
        "be": "-1",
        "be/app": "-1",
        "k": "0",
        "k/b": "2",
        "k/e": "-1",
        "host/nginx": "2",
    }
    switches = {edit.role: edit.value for edit in found.wanted if not edit.group}
    assert switches == {edits.Role.SCHED_CORE: "0", edits.Role.SCHED_GROUP_IDENTITY: "1"}
    assert "groupIdentity 7" in found.reason


def test_a_mainline_kernel_runs_what_ranks_lowest_under_the_idle_policy(now):
    found = on(now)
    assert {(edit.role, edit.group, edit.value) for edit in found.wanted} == {
        (POLICY, "be/app", "idle")
    }
    assert "no group identity" in found.reason


def test_groups_that_are_unknown_are_passed_by(placed):
    apps = (state.HostApplication("nginx", False, qos="LS"),)
    now = state.NodeState(at=0, pods=(placed(group=""),), host_applications=apps)
    assert {edit.group for edit in on(now, IDENTITY).wanted} == {"a/app"}


def test_a_class_may_ask_for_idle_time_by_name(now):
    idle = strategy_settings.Classes(cpu={qos.QoS.BE: strategy_settings.Cpu(True, 0, idle=True)})
    found = on(now, classes=idle)
    assert [(e.role, e.group, e.value) for e in found.wanted] == [(edits.Role.CPU_IDLE, "k/e", "1")]
    assert not [e for e in on(now, IDENTITY, classes=idle).wanted if e.role is edits.Role.CPU_IDLE]


@pytest.mark.parametrize(
    "classes",
    [
        strategy_settings.Classes(),
        strategy_settings.Classes(cpu=CLASSES.cpu, cpu_policy="coreSched"),
    ],
    ids=["nothing on", "another policy"],
)
def test_nothing_is_wanted_without_a_class(now, classes):
    assert on(now, IDENTITY, classes=classes).wanted == ()


@pytest.mark.parametrize("written", ["bad", '{"enable":1}'])
def test_an_unreadable_annotation_is_an_error(written):
    rule = group_identity.rule(CLASSES)
    with pytest.raises(group_identity.IdentityError, match=KEY):
        group_identity.of_pod(rule, qos.QoS.LS, "Burstable", {KEY: written})
