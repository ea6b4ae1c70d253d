"""Who may share a core."""

import msgspec
import pytest

from agent.hooks.cpu import core_sched
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos

COOKIE, IDLE = edits.Role.PROCESS_COOKIE, edits.Role.CPU_IDLE
CLASSES = strategy_settings.Classes(
    cpu={
        qos.QoS.LS: strategy_settings.Cpu(True, expeller=True),
        qos.QoS.BE: strategy_settings.Cpu(True, idle=True),
    },
    cpu_policy="coreSched",
)
KERNEL = state.Kernel(core_scheduling=True)
GROUP, POLICY = "koordinator.sh/core-sched-group-id", "koordinator.sh/core-sched-policy"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "group//expeller"),
        ({"labels": {GROUP: "g"}}, "group/default/g/expeller"),
        ({"labels": {POLICY: "exclusive"}}, "pod/uid-a/expeller"),
        ({"labels": {POLICY: "none"}}, None),
        ({"quality": "BE"}, "group/"),
        ({"quality": "SYSTEM"}, None),
        ({"quality": "LSR"}, None),
        ({"quality": ""}, "group//expeller"),
        ({"quality": "", "kubernetes_qos": "Guaranteed"}, "group//expeller"),
        ({"quality": "", "kubernetes_qos": "BestEffort"}, "group/"),
    ],
    ids=[
        "a group without a name",
        "a named group",
        "alone",
        "not at all",
        "batch",
        "system",
        "a class that is off",
        "burstable",
        "guaranteed",
        "best effort",
    ],
)
def test_a_pod_belongs_to_a_group(placed, changes, expected):
    assert core_sched.group_of(placed(**changes), CLASSES) == expected


def test_tenants_cannot_share_a_core_with_a_stranger_by_its_name(placed):
    def group(namespace, name, **changes):
        pod = placed("p", labels={GROUP: name}, **changes)
        meta = msgspec.structs.replace(pod.pod.metadata, namespace=namespace)
        inner = msgspec.structs.replace(pod.pod, metadata=meta)
        return core_sched.group_of(msgspec.structs.replace(pod, pod=inner), CLASSES)

    assert group("a", "g") == group("a", "g")
    assert group("a", "g") != group("b", "g")
    # Batch work cannot name itself into the group of what expels it.
    assert group("a", "g") != group("a", "g-expeller", quality="BE")
    assert group("a", "g") != group("a", "g", quality="BE")


def test_containers_of_a_group_share_a_cookie(placed):
    now = state.NodeState(
        at=0,
        pods=(placed("a", sandbox="a/pause"), placed("b"), placed("c", quality="SYSTEM")),
        kernel=KERNEL,
        qos_groups={"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"},
    )
    found = core_sched.reconcile(now, CLASSES)
    cookies = {edit.group: edit.value for edit in found.wanted if edit.role is COOKIE}
    assert cookies == dict.fromkeys(("a/app", "a/pause", "b/app"), "group//expeller")
    assert [(e.group, e.value) for e in found.wanted if e.role is IDLE] == [("k/e", "1")]


@pytest.mark.parametrize(
    ("classes", "kernel", "missing"),
    [
        (msgspec.structs.replace(CLASSES, cpu_policy=""), KERNEL, "not told apart"),
        (msgspec.structs.replace(CLASSES, cpu={}), KERNEL, "no class"),
        (CLASSES, state.Kernel(), "PR_SCHED_CORE"),
    ],
    ids=["another policy", "nothing on", "no such kernel"],
)
def test_nothing_is_wanted_where_it_cannot_be(placed, classes, kernel, missing):
    now = state.NodeState(at=0, pods=(placed(),), kernel=kernel)
    found = core_sched.reconcile(now, classes)
    assert found.wanted == ()
    assert missing in found.reason
