"""What batch pods get in their groups."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hooks import batch_resources
from agent.model import edits, state
from api.kubernetes import core

SHARES, QUOTA, MEMORY = edits.Role.CPU_SHARES, edits.Role.CPU_QUOTA, edits.Role.MEMORY_LIMIT
ASKED = {"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": "1Gi"}


def values(decision):
    return {(edit.role, edit.group): edit.value for edit in decision.wanted}


@pytest.fixture
def batch(placed):
    placed.quality, placed.kubernetes_qos = "BE", "BestEffort"
    placed.requests = placed.limits = ASKED
    return placed


def test_pods_and_containers_get_what_they_ask_for(batch):
    now = state.NodeState(at=0, pods=(batch(),))
    found = batch_resources.reconcile(now, batch_resources.Rule())
    assert values(found) == {
        (role, group): value
        for group in ("a", "a/app")
        for role, value in ((SHARES, "2048"), (QUOTA, "200000"), (MEMORY, str(1 << 30)))
    }
    assert found.reason == "batch resources of 1 pod"


def test_a_pod_that_asks_by_names_of_an_older_release_gets_the_same(batch):
    old = {name.replace("kubernetes.io", "koordinator.sh"): value for name, value in ASKED.items()}
    found = [
        batch_resources.reconcile(state.NodeState(at=0, pods=(pod,)), batch_resources.Rule())
        for pod in (batch(), batch(requests=old, limits=old))
    ]
    assert values(found[0]) == values(found[1])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"quality": "LS"}, None),
        ({"limits": {}}, ("-1", "-1")),
        ({"group": ""}, None),
    ],
    ids=["not best effort", "no limit", "no group"],
)
def test_what_else_a_pod_may_be(batch, changes, expected):
    now = state.NodeState(at=0, pods=(batch(**changes),))
    found = values(batch_resources.reconcile(now, batch_resources.Rule()))
    pair = (found[QUOTA, "a"], found[MEMORY, "a"]) if (QUOTA, "a") in found else None
    assert pair == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (batch_resources.Rule(limited_above=True), -1),
        (batch_resources.Rule(ratio=1.5), 133334),
        (batch_resources.Rule(ratio=0.8), 200000),
    ],
    ids=["one quota for all", "fast cpus", "slow cpus"],
)
def test_quotas_follow_the_node(rule, expected):
    assert batch_resources.quota(2000, rule) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, None),
        ({"kubernetes.io/batch-cpu": "500"}, "50000"),
        ({"kubernetes.io/batch-cpu": "4000"}, "200000"),
    ],
    ids=["nothing of its own", "its own", "no more than the pod"],
)
def test_a_sidecar_has_what_it_asks_for_itself(batch, asked, expected):
    resources = core.ResourceRequirements(requests=asked, limits=asked)
    sidecar = state.ContainerState(
        "side", "a/side", core.Container(name="side", resources=resources), initial=True
    )
    pod = batch()
    pod = msgspec.structs.replace(pod, containers=(*pod.containers, sidecar))
    found = values(
        batch_resources.reconcile(state.NodeState(at=0, pods=(pod,)), batch_resources.Rule())
    )
    assert found.get((QUOTA, "a/side")) == expected
    # It is not counted in what the pod has.
    assert found[QUOTA, "a"] == "200000"


def test_an_unreadable_annotation_says_nothing(batch):
    key = "node.koordinator.sh/extended-resource-spec"
    pod = batch(requests={}, limits={}, annotations={key: "{"}).pod
    assert batch_resources.extended(pod) is None


MEBI, GIBI = 1 << 20, 1 << 30
KEY = "node.koordinator.sh/extended-resource-spec"
LIFTED = json.dumps(
    {"containers": {"app": {"requests": {"kubernetes.io/batch-cpu": "999k"}, "limits": {}}}}
)
BATCH_CPU = {"kubernetes.io/batch-cpu": "1000"}
BATCH_MEMORY = {"kubernetes.io/batch-memory": "1Gi"}


def decided(pod, rule=None):
    now = state.NodeState(at=0, pods=(pod,))
    return values(batch_resources.reconcile(now, rule or batch_resources.Rule()))


def resized(pod, **limits):
    """Let the status say what the container runs with."""
    real = core.ContainerStatus("app", "c://1", resources=core.ResourceRequirements(limits=limits))
    status = msgspec.structs.replace(pod.pod.status, container_statuses=(real,))
    return msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, status=status))


@pytest.mark.parametrize("written", [LIFTED, "{", '{"containers":{}}', '{"containers":{"app":{}}}'])
@pytest.mark.parametrize("asked", [ASKED, BATCH_CPU, {}, {"memory": "64Mi"}])
def test_an_annotation_changes_nothing_where_there_is_a_spec(batch, written, asked):
    plain = decided(batch(requests=asked, limits=asked))
    annotated = decided(batch(requests=asked, limits=asked, annotations={KEY: written}))
    assert annotated == plain


@pytest.mark.parametrize(
    ("limits", "quota", "memory"),
    [
        pytest.param({**BATCH_CPU, "memory": "64Mi"}, 100_000, 64 * MEBI, id="memory is plain"),
        pytest.param({**BATCH_MEMORY, "cpu": "100m"}, 10_000, GIBI, id="cpu is plain"),
        pytest.param({**ASKED, "memory": "64Mi", "cpu": "1"}, 100_000, 64 * MEBI, id="plain less"),
        pytest.param({**ASKED, "memory": "2Gi", "cpu": "9"}, 200_000, GIBI, id="plain more"),
        pytest.param(BATCH_CPU, 100_000, -1, id="no plain limit"),
    ],
)
@pytest.mark.parametrize("quality", ["BestEffort", "Burstable", "Guaranteed"])
def test_no_limit_of_the_spec_is_exceeded(batch, limits, quota, memory, quality):
    found = decided(batch(requests=BATCH_CPU, limits=limits, kubernetes_qos=quality))
    for group in ("a", "a/app"):
        assert found[QUOTA, group] == str(quota)
        assert found[MEMORY, group] == str(memory)


def test_a_quota_for_all_does_not_lift_a_plain_limit(batch):
    found = decided(
        batch(limits={**BATCH_CPU, "cpu": "500m"}), batch_resources.Rule(limited_above=True)
    )
    assert found[QUOTA, "a"] == found[QUOTA, "a/app"] == "50000"


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        pytest.param({"memory": "64Mi"}, 64 * MEBI, id="a raise that waits"),
        pytest.param({"memory": "512Mi"}, 512 * MEBI, id="a cut that is not done"),
        pytest.param({}, 128 * MEBI, id="nothing said"),
    ],
)
def test_while_a_pod_is_resized_what_it_runs_with_counts(batch, real, expected):
    pod = batch(limits={**BATCH_CPU, "memory": "128Mi"})
    assert decided(resized(pod, **real))[MEMORY, "a/app"] == str(expected)


def test_plain_limits_of_the_pod_as_a_whole_hold(batch):
    pod = batch(limits=ASKED)
    level = core.ResourceRequirements(limits={"memory": "256Mi", "cpu": "500m"})
    spec = msgspec.structs.replace(pod.pod.spec, resources=level)
    pod = msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec))
    found = decided(pod)
    assert (found[QUOTA, "a"], found[MEMORY, "a"]) == ("50000", str(256 * MEBI))


@pytest.mark.parametrize("lasting", [True, False], ids=["sidecar", "init container"])
def test_an_init_container_keeps_its_plain_limit(batch, lasting):
    limits = {**BATCH_CPU, "memory": "32Mi"}
    resources = core.ResourceRequirements(requests=limits, limits=limits)
    spec = core.Container(
        name="side", resources=resources, restart_policy="Always" if lasting else ""
    )
    pod = batch()
    whole = msgspec.structs.replace(pod.pod.spec, init_containers=(spec,))
    pod = msgspec.structs.replace(
        pod,
        pod=msgspec.structs.replace(pod.pod, spec=whole),
        containers=(*pod.containers, state.ContainerState("side", "a/side", spec, initial=True)),
    )
    assert decided(pod)[MEMORY, "a/side"] == str(32 * MEBI)


def test_containers_with_plain_limits_alone_are_left_alone_and_counted(batch):
    pod = batch(limits=ASKED)
    plain = core.Container(
        name="web", resources=core.ResourceRequirements(limits={"cpu": "1", "memory": "64Mi"})
    )
    spec = msgspec.structs.replace(pod.pod.spec, containers=(*pod.pod.spec.containers, plain))
    pod = msgspec.structs.replace(
        pod,
        pod=msgspec.structs.replace(pod.pod, spec=spec),
        containers=(*pod.containers, state.ContainerState("web", "a/web", plain)),
    )
    found = decided(pod)
    assert not [key for key in found if key[1] == "a/web"]
    assert (found[QUOTA, "a"], found[MEMORY, "a"]) == ("300000", str(GIBI + 64 * MEBI))


def test_an_ephemeral_container_is_left_alone(batch):
    debug = state.ContainerState("debug", "a/debug", core.Container())
    pod = msgspec.structs.replace(batch(), containers=(*batch().containers, debug))
    assert not [key for key in decided(pod) if key[1] == "a/debug"]


AMOUNTS = st.one_of(st.none(), st.integers(1, 1 << 40))


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS), min_size=1, max_size=4))
def test_whatever_is_asked_for_no_plain_limit_is_exceeded(containers):
    keys = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory", "cpu", "memory")
    made = []
    for number, amounts in enumerate(containers):
        limits = {key: str(n) for key, n in zip(keys, amounts, strict=True) if n is not None}
        resources = core.ResourceRequirements(requests=limits, limits=limits)
        made.append(core.Container(name=f"c{number}", resources=resources))
    pod = state.PodState(
        core.Pod(
            core.ObjectMeta(uid="u", labels={"koordinator.sh/qosClass": "BE"}),
            core.PodSpec(containers=tuple(made)),
            core.PodStatus(phase="Running"),
        ),
        "Burstable",
        group="p",
        containers=tuple(state.ContainerState(one.name, f"p/{one.name}", one) for one in made),
    )
    found = decided(pod)
    for number, (_, _, cpu, memory) in enumerate(containers):
        for role, limit in ((QUOTA, None if cpu is None else cpu * 100_000), (MEMORY, memory)):
            written = found.get((role, f"p/c{number}"))
            if written is not None and limit is not None:
                assert 0 < int(written) <= limit
    for role, limits in (
        (QUOTA, [cpu and cpu * 100_000 for _, _, cpu, _ in containers]),
        (MEMORY, [memory for *_, memory in containers]),
    ):
        if (role, "p") in found and None not in limits:
            assert 0 < int(found[role, "p"]) <= sum(limits)


class Counted(dict):
    """Limits that count how often they are looked at."""

    reads = 0

    def get(self, *given):
        self.reads += 1
        return super().get(*given)


def test_limits_of_a_container_are_not_read_once_for_each_sidecar(batch):
    pod, limits = batch(), Counted(ASKED)
    asked = core.ResourceRequirements(limits=limits)
    sidecars = [
        core.Container(name=f"s{at}", resources=asked, restart_policy="Always") for at in range(50)
    ]
    states = (state.ContainerState(c.name, f"a/{c.name}", c, initial=True) for c in sidecars)
    spec = msgspec.structs.replace(pod.pod.spec, init_containers=sidecars)
    pod = msgspec.structs.replace(
        pod, pod=msgspec.structs.replace(pod.pod, spec=spec), containers=tuple(states)
    )
    found = values(
        batch_resources.reconcile(state.NodeState(at=0, pods=(pod,)), batch_resources.Rule())
    )
    assert found[MEMORY, "a/s49"] == str(1 << 30)
    assert limits.reads <= 10 * len(sidecars)
