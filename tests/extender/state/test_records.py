"""Records of pods and nodes are slim and shared."""

import sys
import weakref

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources
from extender.state import bounds, records, requirement_reader


def _pod(make, name, **more):
    return msgspec.convert(make.pod(name, **more), core.Pod)


def test_pods_that_are_alike_share_one_demand_that_goes_with_the_last_of_them(make):
    projector = records.Projector()
    first = projector.pod(_pod(make, "a", node="n1", requests={"cpu": "1"}))
    second = projector.pod(_pod(make, "b", node="n2", requests={"cpu": "1000m"}))
    other = projector.pod(_pod(make, "c", requests={"cpu": "2"}))
    assert first.requirements is second.requirements
    assert other.requirements != first.requirements
    demand = weakref.ref(first.requirements)
    del first
    assert demand() is second.requirements
    del second
    assert demand() is None


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", names.BATCH_CPU]), st.sampled_from(["0", "1", "250m", "2Gi"])
)
CONTAINERS = st.lists(
    st.builds(
        core.Container,
        name=st.sampled_from(["a", "b"]),
        resources=st.builds(core.ResourceRequirements, requests=AMOUNTS, limits=AMOUNTS),
        restart_policy=st.sampled_from(["", "Always"]),
    ),
    max_size=3,
).map(tuple)
PODS = st.builds(
    core.Pod,
    metadata=st.builds(
        core.ObjectMeta,
        name=st.sampled_from(["p", "q"]),
        labels=st.dictionaries(
            st.sampled_from(["app", names.LABEL_QOS, names.LABEL_PRIORITY_CLASS]),
            st.sampled_from(["BE", "LS", "koord-batch", "koord-mid", "x"]),
        ),
        annotations=st.dictionaries(
            st.sampled_from(["note", names.ANNOTATION_LOAD_SCALING_FACTORS]), st.just("{}")
        ),
        owner_references=st.lists(
            st.builds(core.OwnerReference, kind=st.sampled_from(["DaemonSet", "Job"])), max_size=2
        ).map(tuple),
    ),
    spec=st.builds(
        core.PodSpec,
        containers=CONTAINERS,
        init_containers=CONTAINERS,
        overhead=AMOUNTS,
        priority=st.sampled_from([None, 0, 5500, 9500]),
        node_name=st.sampled_from(["", "n1"]),
    ),
    status=st.builds(
        core.PodStatus, qos_class=st.sampled_from(["", "BestEffort", "Guaranteed", "Burstable"])
    ),
)


@hypothesis.given(pods=st.lists(PODS, min_size=1, max_size=4))
def test_what_is_remembered_of_a_shape_holds_for_every_pod_of_it(pods):
    projector = records.Projector()
    for pod in pods * 2:
        notes = pod.metadata.annotations
        assert projector.requirements(pod) == records.PodRequirements(
            requests=bounds.pairs(resources.pod_requests(pod)),
            limits=bounds.pairs(resources.pod_limits(pod)),
            band=qos.band_of_pod(pod),
            daemon=any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references),
            scaling_factors=notes.get(names.ANNOTATION_LOAD_SCALING_FACTORS, ""),
            priority=pod.spec.priority or 0,
            nonzero=tuple(map(resources.nonzero_requests(pod).get, ("cpu", "memory"), (0, 0))),
            sequential=bounds.pairs(resources.sequential_requests(pod)),
        )


def test_a_record_is_small(make):
    record = records.Projector().pod(_pod(make, "some-workload-7d9f", node="n1"))
    own = sum(map(sys.getsizeof, (record, record.key, record.uid, record.assigned_at)))
    assert own < 400


def test_a_pod_that_has_ended_is_not_kept(make):
    projector = records.Projector()
    assert projector.pod(_pod(make, "done", node="n1", phase="Succeeded")) is None


def test_a_pod_is_named_by_its_key(make):
    record = records.Projector().pod(_pod(make, "p"))
    assert (record.namespace, record.name) == ("default", "p")


@pytest.mark.parametrize(
    ("raw", "total"),
    [
        pytest.param("", 128000, id="not amplified"),
        pytest.param('{"cpu":"64"}', 64000, id="amplified"),
        pytest.param("{", 128000, id="not JSON"),
        pytest.param('{"cpu":"many"}', 128000, id="no quantity"),
        pytest.param("[]", 128000, id="no object"),
    ],
)
def test_usage_is_measured_against_the_machine_itself(make, raw, total):
    notes = {names.ANNOTATION_RAW_ALLOCATABLE: raw} if raw else {}
    node = records.Projector().node(msgspec.convert(make.node("n1", annotations=notes), core.Node))
    assert dict(node.total)["cpu"] == total
    assert dict(node.allocatable)["cpu"] == 128000


def test_a_node_that_could_not_take_it_back_lends_nothing() -> None:
    row = '{"cpu-suppress":{"verdict":"unavailable","how":"no cpu-quota"}}'
    notes = {
        names.ANNOTATION_STRATEGIES: row,
        names.ANNOTATION_COLOCATION_STRATEGY: '{"overcommitPercent":30}',
    }
    raw = {"metadata": {"name": "n", "annotations": notes}, "status": {}}
    assert records.Projector().node(msgspec.convert(raw, core.Node)).strategy == '{"enable":false}'


LONG = "9" * 200_000


@pytest.mark.parametrize(
    "name",
    [
        names.ANNOTATION_LOAD_SCALING_FACTORS,
        names.ANNOTATION_LOAD_SECONDS_AFTER_SCHEDULED,
        names.ANNOTATION_LOAD_SECONDS_AFTER_INITIALIZED,
    ],
)
def test_no_annotation_of_a_pod_is_kept_that_is_longer_than_any_real_one(make, name):
    projector = records.Projector()
    pod = _pod(make, "a", annotations={name: LONG})
    assert projector.pod(pod).requirements is projector.pod(_pod(make, "b")).requirements


@pytest.mark.parametrize(
    "name",
    [
        names.ANNOTATION_USAGE_THRESHOLDS,
        names.ANNOTATION_COLOCATION_STRATEGY,
        names.ANNOTATION_RAW_ALLOCATABLE,
        names.ANNOTATION_STRATEGIES,
    ],
)
@pytest.mark.parametrize(
    "written", [LONG, "[" * 4000, "[1]", '{"cpu": [1]}', '{"cpu": {}}', '{"cpu": 1e400}', "null"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_node_stays_known_whatever_its_annotations_say(make, name, written):
    raw = make.node("n1", annotations={name: written})
    record = records.Projector().node(msgspec.convert(raw, core.Node))
    assert dict(record.allocatable)["cpu"] == 128_000
    assert len(record.thresholds) + len(record.strategy) <= bounds.SHORT.bytes
    assert record.total == record.allocatable


def test_a_node_says_which_machine_it_is_and_since_when(make):
    raw = make.node("n1")
    raw["metadata"]["creationTimestamp"] = "2026-07-01T12:00:00Z"
    record = records.Projector().node(msgspec.convert(raw, core.Node))
    assert (record.uid, record.created_at) == ("uid-n1", 1782907200.0)


def test_plugins_name_the_labels_and_annotations_that_they_look_at(make):
    inputs = requirement_reader.Inputs(
        frozenset({"team", "both"}), frozenset({"note", "both", "long"})
    )
    projector = records.Projector(None, (), inputs)
    raw = make.pod("p", annotations={"note": "n", "other": "o", "both": "a", "long": "x" * 5000})
    raw["metadata"]["labels"] |= {"team": "red", "both": "l"}
    found = projector.pod(msgspec.convert(raw, core.Pod)).requirements
    assert dict(found.inputs) == {"note": "n", "team": "red", "both": "l", "long": ""}
    raw["metadata"]["labels"]["team"] = "blue"
    other = projector.pod(msgspec.convert(raw, core.Pod)).requirements
    assert other != found, "pods that differ in what a plug-in looks at are not alike"
    assert records.Projector().pod(msgspec.convert(raw, core.Pod)).requirements.inputs == ()


def test_pods_of_one_controller_share_their_owner_references() -> None:
    """What owners of Reservations are compared with costs a pointer per pod."""
    owners = (core.OwnerReference("apps/v1", "ReplicaSet", "web", "rs-1", True),)
    written = [
        core.Pod(metadata=core.ObjectMeta(name=name, uid=name, owner_references=(*owners,)))
        for name in ("one", "other")
    ]
    projector = records.Projector()
    found = [projector.pod(pod) for pod in written]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].owners == owners
    assert found[0].owners is found[1].owners


PORTS = [
    pytest.param((), (), id="none"),
    pytest.param((core.ContainerPort(0),), (), id="of the container alone"),
    pytest.param(
        (core.ContainerPort(80), core.ContainerPort(53, "UDP", "10.0.0.1")),
        (("", "TCP", 80), ("10.0.0.1", "UDP", 53)),
        id="two",
    ),
    pytest.param(
        (core.ContainerPort(80, host_ip="0.0.0.0"), core.ContainerPort(80)),
        (("", "TCP", 80),),
        id="all addresses, written twice",
    ),
]


@pytest.mark.parametrize(("ports", "expected"), PORTS)
def test_ports_of_the_node_are_part_of_what_a_pod_requires(
    ports: tuple[core.ContainerPort, ...], expected: tuple[tuple[str, str, int], ...]
) -> None:
    spec = core.PodSpec(containers=(core.Container(name="main", ports=ports),))
    wanted = records.Projector().requirements(core.Pod(spec=spec))
    assert wanted.host_ports == expected
