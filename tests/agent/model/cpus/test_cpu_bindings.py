"""Which claims to cpus of their own hold: what a scheduler could have granted, and no more."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model import state
from agent.model.cpus import cpu_bindings
from api import names
from api.kubernetes import core

MACHINE = tuple(state.Processor(cpu, cpu // 2, 0, 0) for cpu in range(16))
SITE = cpu_bindings.Site(processors=MACHINE)
KEY = names.ANNOTATION_RESOURCE_STATUS


def pod(name="a", cpuset="0-1", named="LSR", cpu="2", **more):
    """Make a pod that claims cpus."""
    asked = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    status = json.dumps({"cpuset": cpuset}) if not cpuset.startswith("{") else cpuset
    raw = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {names.LABEL_QOS: named} if named else {},
            "annotations": {KEY: status},
            "creationTimestamp": more.pop("created", "2026-01-31T08:00:00Z"),
        },
        "spec": {"containers": [{"name": "app", "resources": asked}], **more.pop("spec", {})},
        "status": {"phase": "Running", **more.pop("status", {})},
    }
    return msgspec.convert(raw, core.Pod)


def scheduled(moment):
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
    return {"phase": "Running", "conditions": [condition]}


def reasons(found):
    return {one.name: one.reason for one in found.refused}


INIT = {"initContainers": [{"name": "init", "resources": {"requests": {"cpu": "4"}}}]}
SIDECAR = {
    "initContainers": [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    ]
}
EPHEMERAL = {"ephemeralContainers": [{"name": "debug", "resources": {"requests": {"cpu": "9"}}}]}
PENDING_RESIZE = {
    "phase": "Running",
    "containerStatuses": [{"name": "app", "allocatedResources": {"cpu": "1"}}],
}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(pod(), "", id="what it requests"),
        pytest.param(pod(named="LSE"), "", id="exclusive class"),
        pytest.param(pod(cpu="2900m"), "", id="less than it requests"),
        pytest.param(pod(cpuset="0-14", cpu="100m"), "15 cpus are more than the 0", id="starves"),
        pytest.param(pod(cpuset="0-2"), "3 cpus are more than the 2", id="one too many"),
        pytest.param(pod(cpu="1999m"), "2 cpus are more than the 1", id="no whole cpus"),
        pytest.param(pod(cpu="many"), "many", id="no amount"),
        pytest.param(pod(named="LS"), "class LS has no cpus of its own", id="LS"),
        pytest.param(pod(named="BE"), "class BE has no cpus", id="BE"),
        pytest.param(pod(named="SYSTEM"), "class SYSTEM has no cpus", id="SYSTEM"),
        pytest.param(pod(named=""), "class none has no cpus", id="no class"),
        pytest.param(pod(named="lsr"), "class none has no cpus", id="no such class"),
        pytest.param(pod(cpuset="15-16"), "cpus 16 are not online", id="no such cpu"),
        pytest.param(pod(cpuset="{"), "not JSON", id="unreadable"),
        pytest.param(pod(cpuset='{"cpuset":"x"}'), "cpu list", id="no cpu list"),
        pytest.param(
            pod(cpuset='{"cpuset":"' + "0-4096," * 3600 + '"}'), "cpu list of", id="long cpu list"
        ),
        pytest.param(
            pod(cpuset='{"x":' + "[" * 3000 + "]" * 3000 + "}"), "nested more than", id="deep"
        ),
        pytest.param(pod(cpuset="0-3", spec=INIT), "", id="an init container requests more"),
        pytest.param(pod(cpuset="0-2", spec=SIDECAR), "", id="with a sidecar"),
        pytest.param(
            pod(cpuset="0-2", spec=EPHEMERAL), "3 cpus are more", id="ephemeral ones request none"
        ),
        pytest.param(pod(status=PENDING_RESIZE), "more than the 1", id="a resize that waits"),
    ],
)
def test_a_claim_holds_as_far_as_a_scheduler_could_have_granted_it(claim, expected):
    found = cpu_bindings.granted([claim], SITE)
    if expected:
        assert expected in reasons(found)["a"]
    assert bool(found.cpus) == (not expected)


@pytest.mark.parametrize("policy", ["FullPCPUsOnly", "SpreadByPCPUs", "Other"])
@pytest.mark.parametrize("named", ["LS", "", "BE", "SYSTEM"])
def test_a_node_may_be_one_whose_pods_are_all_bound(policy, named):
    labels = {names.LABEL_CPU_BIND_POLICY: policy}
    site = cpu_bindings.Site(core.Node(core.ObjectMeta(labels=labels)), MACHINE)
    found = cpu_bindings.granted([pod(named=named)], site)
    assert bool(found.cpus) == (named in ("LS", "") and policy != "Other")


OWN = state.GivenCpus("a", frozenset({0, 1}), "default", "a")
OTHER = state.GivenCpus("b", frozenset({1}), "default", "b")


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        pytest.param(
            {"reserved": state.Reserved(cpus=frozenset({1}))}, "cpu 1 is reserved", id="reserved"
        ),
        pytest.param(
            {"reserved": state.Reserved(system_cpus=frozenset({0}))}, "to the system", id="system"
        ),
        pytest.param(
            {"kubelet": state.KubeletCpus("static", reserved=frozenset({0}))},
            "reserved by the kubelet",
            id="reserved by the kubelet",
        ),
        pytest.param(
            {"kubelet": state.KubeletCpus("static", given=(OTHER,))},
            "cpu 1 was given to pod default/b",
            id="of another pod by the kubelet",
        ),
        pytest.param({"kubelet": state.KubeletCpus("static", given=(OWN,))}, "", id="its own"),
    ],
)
def test_what_somebody_else_has_cannot_be_claimed(site, expected):
    found = cpu_bindings.granted([pod()], msgspec.structs.replace(SITE, **site))
    assert expected in reasons(found).get("a", "")
    assert bool(found.cpus) == (not expected)


@pytest.mark.parametrize(
    ("early", "late"),
    [
        pytest.param(
            {"status": scheduled("2026-01-31T08:00:01Z"), "created": "2026-01-31T07:00:00Z"},
            {"status": scheduled("2026-01-31T08:00:02Z"), "created": "2026-01-30T08:00:00Z"},
            id="bound",
        ),
        pytest.param(
            {"status": {"phase": "Running", "startTime": "2026-01-31T08:00:00Z"}},
            {"status": {"phase": "Running", "startTime": "2026-01-31T08:00:01+00:00"}},
            id="started",
        ),
        pytest.param({}, {"created": "2026-02-01T00:00:00Z"}, id="made"),
        pytest.param({}, {"created": "yesterday"}, id="nobody knows"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_the_pod_that_was_bound_first_has_the_cpu(early, late, order):
    pods = [pod("z", "1-2", **early), pod("b", "0-1", **late)]
    found = cpu_bindings.granted(pods[::order], SITE)
    assert found.cpus == {"z": {1, 2}}
    assert reasons(found) == {"b": "cpu 1 belongs to pod default/z, which was bound before"}


def test_a_claim_that_changed_later_ranks_behind_all_others():
    pods = [pod("old", "0-1"), pod("young", "0-1", created="2026-02-01T00:00:00Z")]
    assert set(cpu_bindings.granted(pods, SITE).cpus) == {"old"}
    assert set(cpu_bindings.granted(pods, SITE, {"old": 1}).cpus) == {"young"}
    assert set(cpu_bindings.granted(pods, SITE, {"old": 1, "young": 2}).cpus) == {"old"}


def test_a_pod_that_has_ended_claims_nothing():
    ended = pod("ended", status={"phase": "Succeeded"})
    assert set(cpu_bindings.granted([ended, pod("b")], SITE).cpus) == {"b"}


CLAIMS = st.lists(
    st.tuples(
        st.sampled_from(["LSE", "LSR", "LS", "BE", "SYSTEM", ""]),
        st.frozensets(st.integers(0, 17), max_size=6),
        st.integers(0, 6),
        st.integers(0, 9),
    ),
    max_size=12,
)
SOME = st.frozensets(st.integers(0, 15), max_size=3)


@given(CLAIMS, SOME, SOME)
def test_whatever_is_claimed_nobody_loses_a_cpu(claims, kept, system):
    pods = [
        pod(
            str(number),
            ",".join(map(str, cpus)),
            named,
            str(cpu),
            created=f"2026-01-0{day}T00:00:00Z",
        )
        for number, (named, cpus, cpu, day) in enumerate(claims)
    ]
    site = msgspec.structs.replace(SITE, reserved=state.Reserved(cpus=kept, system_cpus=system))
    found = cpu_bindings.granted(pods, site)
    assert sum(map(len, found.cpus.values())) == len(frozenset().union(*found.cpus.values()))
    for uid, cpus in found.cpus.items():
        named, claimed, cpu, _ = claims[int(uid)]
        assert cpus == claimed
        assert named in ("LSE", "LSR")
        assert len(cpus) <= cpu
        assert not cpus & (kept | system)
    assert found.cpus.keys().isdisjoint(one.uid for one in found.refused)
    assert found == cpu_bindings.granted(pods[::-1], site)
