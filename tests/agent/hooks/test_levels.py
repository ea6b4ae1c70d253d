"""On which levels each hook sets each property: pod, container, sidecar, pause container, host."""

import msgspec
import pytest

from agent.decide.strategies import cpu_burst as bursting
from agent.hooks import batch_resources, oom_score
from agent.hooks.cpu import core_sched, cpu_burst, cpu_normalization, cpuset, group_identity
from agent.hooks.lifecycle import reconciliation
from agent.model import edits, state, strategy_settings
from api.koordinator.metadata import qos
from api.kubernetes import core

R = edits.Role
CLASSES = strategy_settings.Classes(
    cpu={
        qos.QoS.LS: strategy_settings.Cpu(True, identity=2, expeller=True),
        qos.QoS.BE: strategy_settings.Cpu(True, identity=-1),
    }
)
BY_CORE = msgspec.structs.replace(CLASSES, cpu_policy="coreSched")
OOM = "koordinator.sh/oom-score-adj"
BATCH = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "1Gi"}
POD, APP, SIDE, PAUSE = "p", "p/app", "p/side", "p/pause"
VENDOR = frozenset({R.CPU_IDENTITY, R.SCHED_CORE, R.SCHED_GROUP_IDENTITY})


@pytest.fixture
def everything(placed):
    """A node with one pod that has a sidecar and a pause container, and what runs beside it."""

    def make(quality="LS", *, kata=False, roles=VENDOR, kubernetes_qos="Burstable"):
        asked = BATCH if quality == "BE" else {"cpu": "1"}
        pod = placed(
            "p",
            quality=quality,
            kubernetes_qos=kubernetes_qos,
            limits=asked,
            requests=asked,
            annotations={OOM: "500"},
            sandbox=PAUSE,
        )
        resources = core.ResourceRequirements(requests=asked, limits=asked)
        side = core.Container(name="side", resources=resources, restart_policy="Always")
        sidecar = state.ContainerState("side", SIDE, side, initial=True)
        spec = core.PodSpec(
            containers=pod.pod.spec.containers,
            init_containers=(side,),
            runtime_class_name="kata" if kata else "",
        )
        raw = core.Pod(metadata=pod.pod.metadata, spec=spec, status=pod.pod.status)
        pod = msgspec.structs.replace(pod, pod=raw, containers=(*pod.containers, sidecar))
        return state.NodeState(
            at=0,
            pods=(pod,),
            host_applications=(
                state.HostApplication("web", best_effort=False, qos="LS", group="host/web"),
                state.HostApplication("cron", best_effort=True, qos="BE", group="host/cron"),
            ),
            qos_groups={"Guaranteed": "k", "Burstable": "k/b", "BestEffort": "k/e"},
            processors=tuple(state.Processor(n, n, 0, 0) for n in range(4)),
            reserved=state.Reserved(cpus=frozenset({0})),
            kernel=state.Kernel(roles, core_scheduling=True),
            pod_groups={POD: "Burstable", "k/e/podlost": "BestEffort"},
        )

    return make


BURSTS = cpu_burst.Rule(
    strategy_settings.NodeBurst(strategy_settings.Burst("auto")), state.Kernel(frozenset())
)


def groups(decision, role):
    return {edit.group: edit.value for edit in decision.wanted if edit.role is role}


def test_group_identity_is_set_everywhere(everything):
    found = group_identity.reconcile(everything(), CLASSES)
    assert groups(found, R.CPU_IDENTITY) == {
        **dict.fromkeys((POD, APP, SIDE, PAUSE), "2"),
        "k": "0",
        "k/b": "2",
        "k/e": "-1",
        "host/web": "2",
        "host/cron": "-1",
        # Nobody knows this pod: it has what its class has.
        "k/e/podlost": "-1",
    }
    assert groups(found, R.SCHED_CORE) == {"": "0"}
    assert groups(found, R.SCHED_GROUP_IDENTITY) == {"": "1"}


def test_the_idle_policy_stands_for_it_also_outside_of_pods(everything):
    now = everything("BE", roles=frozenset(), kubernetes_qos="BestEffort")
    found = groups(group_identity.reconcile(now, CLASSES), R.PROCESS_POLICY)
    assert found == dict.fromkeys((APP, SIDE, "host/cron"), "idle")


def test_cookies_are_for_containers_and_pauses(everything):
    found = core_sched.reconcile(everything(), BY_CORE)
    assert set(groups(found, R.PROCESS_COOKIE)) == {APP, SIDE, PAUSE}
    assert groups(found, R.SCHED_CORE) == {"": "1"}
    assert groups(found, R.SCHED_GROUP_IDENTITY) == {"": "0"}
    assert groups(found, R.SCHED_FEATURE) == {}


def test_a_kernel_with_the_feature_alone_has_it_switched_on(everything):
    now = everything(roles=frozenset({R.SCHED_FEATURE}))
    assert groups(core_sched.reconcile(now, BY_CORE), R.SCHED_FEATURE) == {"CORE_SCHED": "1"}


def test_cpus_are_for_containers_pauses_and_the_host(everything):
    found = groups(cpuset.reconcile(everything()), R.CPUSET)
    assert found == dict.fromkeys((APP, SIDE, PAUSE, "host/web"), "1-3")


@pytest.mark.parametrize("role", [R.CPU_SHARES, R.CPU_QUOTA, R.MEMORY_LIMIT])
def test_batch_resources_are_for_pods_and_containers(everything, role):
    now = everything("BE", kubernetes_qos="BestEffort")
    found = batch_resources.reconcile(now, batch_resources.Rule())
    assert set(groups(found, role)) == {POD, APP, SIDE}


def test_scaled_quotas_are_for_pods_and_containers(everything):
    found = groups(cpu_normalization.reconcile(everything(), 2.0), R.CPU_QUOTA)
    assert set(found) == {POD, APP, SIDE}
    assert found[APP] == "50000"


def without_limit(now):
    """The same node; the sidecar has no limit, so that its kubelet does not limit the pod."""
    (pod,) = now.pods
    side = core.Container(name="side", restart_policy="Always")
    spec = msgspec.structs.replace(pod.pod.spec, init_containers=(side,))
    states = (pod.containers[0], msgspec.structs.replace(pod.containers[1], container=side))
    raw = msgspec.structs.replace(pod.pod, spec=spec)
    return msgspec.structs.replace(
        now, pods=(msgspec.structs.replace(pod, pod=raw, containers=states),)
    )


def test_a_pod_without_a_limit_gets_none_from_its_containers(everything):
    found = groups(cpu_normalization.reconcile(without_limit(everything()), 2.0), R.CPU_QUOTA)
    assert found == {APP: "50000"}


def test_bursts_are_for_pods_containers_and_sidecars(everything):
    def found(now):
        decision = reconciliation.of_pods(now.pods, cpu_burst.HOOK.bind(BURSTS))
        return {one.group: one.value for one in decision.wanted if one.role is R.CPU_BURST}

    assert found(everything()) == {POD: "200000", APP: "100000", SIDE: "100000"}
    assert found(without_limit(everything())) == {POD: "1000000", APP: "100000"}


def test_oom_scores_are_for_containers(everything):
    found = groups(oom_score.reconcile(everything()), R.PROCESS_OOM_SCORE)
    assert found == {APP: "500", SIDE: "500"}


@pytest.mark.parametrize(
    "decide",
    [
        lambda now: group_identity.reconcile(now, CLASSES),
        lambda now: core_sched.reconcile(now, BY_CORE),
        cpuset.reconcile,
        lambda now: batch_resources.reconcile(now, batch_resources.Rule()),
        lambda now: cpu_normalization.reconcile(now, 2.0),
        oom_score.reconcile,
        lambda now: reconciliation.of_pods(now.pods, cpu_burst.HOOK.bind(BURSTS)),
        lambda now: bursting.decide(now, BURSTS.settings, bursting.Averages(1.0), {}, 0.0)[0],
    ],
    ids=[
        *("group-identity", "core-sched", "cpuset", "batch", "normalization", "oom-score"),
        *("bursts", "bursting"),
    ],
)
@pytest.mark.parametrize("quality", ["LS", "BE"])
def test_nothing_is_set_inside_a_virtual_machine(everything, decide, quality):
    inside = {edit.group for edit in decide(everything(quality, kata=True)).wanted}
    assert not inside & {APP, SIDE, PAUSE}
