"""Watch events in protobuf say what they say in JSON."""

import itertools
import types
import typing
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes import core, protobuf_fields
from extender.scoring import traits
from kube.client import errors, protobuf, wire
from kube.informers import store
from tests import protobuf_messages as messages

CODEC = protobuf.Codec("Pod", protobuf_fields.POD)
MOMENT = "2026-07-01T00:00:00Z"


def reader() -> wire.Reader[Any]:
    return wire.Reader(traits.PlacedPod, lambda pod: pod, CODEC)


def pod(**parts: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "shop", "uid": "uid-a", "resourceVersion": "3"}
    return {"metadata": metadata | parts.pop("metadata", {}), **parts}


TERM = {
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
    },
    "namespaces": ["shop"],
    "topologyKey": "zone",
    "namespaceSelector": {},
    "matchLabelKeys": ["hash"],
}
SELECTOR = {
    "matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["4"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITY = {
    "nodeAffinity": {
        REQUIRED: {"nodeSelectorTerms": [SELECTOR]},
        PREFERRED: [{"weight": 7, "preference": SELECTOR}],
    },
    "podAffinity": {REQUIRED: [TERM]},
    "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": TERM}]},
}
CONTAINER = {
    "name": "main",
    "image": "registry/app:v1",
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
}
STATUS = {
    "phase": "Running",
    "reason": "Evicted",
    "qosClass": "Burstable",
    "nominatedNodeName": "n2",
    "podIP": "10.0.0.1",
    "startTime": MOMENT,
    "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": MOMENT},
        {"type": "Ready", "status": "False", "reason": "Wait", "message": "not yet"},
    ],
    "containerStatuses": [
        {
            "name": "main",
            "ready": True,
            "started": False,
            "restartCount": 2,
            "containerID": "containerd://1",
            "allocatedResources": {"cpu": "100m"},
            "resources": {"requests": {"cpu": "50m"}},
            "state": {"running": {"startedAt": MOMENT}},
        },
        {"name": "gone", "state": {"terminated": {"exitCode": 0, "finishedAt": MOMENT}}},
    ],
    "initContainerStatuses": [{"name": "init", "state": {"waiting": {"reason": "Pulling"}}}],
    "allocatedResources": {"cpu": "2"},
    "resources": {"limits": {"memory": "2Gi"}},
}

CASES = {
    "least": pod(),
    "empty parts": pod(spec={"affinity": {}, "resources": {}, "containers": [{}]}, status={}),
    "metadata": pod(
        metadata={
            "generateName": "a-",
            "generation": 4,
            "creationTimestamp": MOMENT,
            "deletionTimestamp": "1969-12-31T23:59:59Z",
            "labels": {"app": "web", "": ""},
            "annotations": {"note": "Größe"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u"},
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v", "controller": False},
            ],
        }
    ),
    "zeros that count": pod(
        spec={"priority": 0, "terminationGracePeriodSeconds": 0, "tolerations": [{"key": "x"}]}
    ),
    "negative numbers": pod(spec={"priority": -9, "terminationGracePeriodSeconds": -1}),
    "spec": pod(
        spec={
            "nodeName": "n1",
            "schedulerName": "mine",
            "priority": 9000,
            "priorityClassName": "koord-prod",
            "preemptionPolicy": "Never",
            "containers": [CONTAINER, {"name": "side"}],
            "initContainers": [{"name": "init", "restartPolicy": "Always"}],
            "resources": {"requests": {"cpu": "2"}},
            "overhead": {"memory": "10Mi"},
            "nodeSelector": {"disk": "ssd"},
            "affinity": AFFINITY,
            "tolerations": [
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
                {"key": "b", "value": "c", "operator": "Equal"},
            ],
            "schedulingGates": [{"name": "wait"}],
            "restartPolicy": "Never",
            "runtimeClassName": "kata",
            "serviceAccountName": "default",
            "activeDeadlineSeconds": 60,
            "hostNetwork": True,
        }
    ),
    "status": pod(status=STATUS),
}


@pytest.mark.parametrize("said", CASES.values(), ids=CASES)
@pytest.mark.parametrize("change", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_is_what_it_is_in_json(change: str, said: dict[str, Any]) -> None:
    line = orjson.dumps({"type": change, "object": said})
    assert reader().event(messages.event(change, said)) == reader().event(line)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
AMOUNTS = st.dictionaries(NAMES, st.from_regex(r"[0-9]{1,4}(m|Ki|Gi)?", fullmatch=True), max_size=3)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"resources": RESOURCES}), max_size=3
)
INTEGERS = st.integers(-(2**31), 2**31 - 1)


@given(
    labels=st.dictionaries(NAMES, NAMES, max_size=3),
    spec=st.fixed_dictionaries(
        {},
        optional={
            "containers": CONTAINERS, "initContainers": CONTAINERS, "overhead": AMOUNTS,
            "nodeName": NAMES, "priority": INTEGERS, "hostNetwork": st.booleans(),
            "terminationGracePeriodSeconds": INTEGERS, "resources": RESOURCES,
        },
    ),
)  # fmt: skip
def test_random_pods_are_what_they_are_in_json(labels: Any, spec: Any) -> None:
    said = pod(metadata={"labels": labels}, spec=spec)
    line = orjson.dumps({"type": "ADDED", "object": said})
    assert reader().event(messages.event("ADDED", said)) == reader().event(line)


@given(labels=st.dictionaries(NAMES, NAMES, max_size=6), amounts=AMOUNTS)
def test_maps_come_in_the_order_of_json(labels: Any, amounts: Any) -> None:
    container = {"name": "c", "resources": {"requests": amounts}}
    said = pod(metadata={"labels": labels}, spec={"containers": [container]})
    found = reader().event(messages.event("ADDED", said))
    assert isinstance(found, wire.Event)
    read = found.item.value
    assert list(read.metadata.labels) == sorted(labels)
    assert list(read.spec.containers[0].resources.requests) == sorted(amounts)


def test_a_text_that_is_not_utf8_leaves_no_pod_out() -> None:
    odd = b"\xff"
    metadata = {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "3"}
    metadata |= {"annotations": {"bad": odd}}
    said = {"metadata": metadata, "spec": {"nodeName": "n1", "schedulerName": odd}}
    found = reader().event(messages.event("ADDED", said))
    assert isinstance(found, wire.Event)
    assert not found.item.flaw
    assert found.item.value.metadata.annotations == {"bad": "\ufffd"}
    assert found.item.value.spec.scheduler_name == "\ufffd"


@pytest.mark.parametrize("seconds", [1 << 62, -(1 << 62), 1 << 40])
def test_a_moment_that_no_calendar_has_leaves_no_pod_out(seconds: int) -> None:
    metadata = messages.field(1, b"a") + messages.field(8, messages.field(1, seconds))
    found = reader().event(messages.envelope("ADDED", "Pod", messages.field(1, metadata)))
    assert isinstance(found, wire.Event)
    assert not found.item.flaw
    assert found.item.value.metadata.creation_timestamp is None


def test_an_object_that_cannot_be_converted_is_left_out_alone() -> None:
    metadata = {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    overhead = messages.field(32, messages.field(1, b"\xff") + messages.field(2, b""))
    data = messages.message("Pod", {"metadata": metadata}) + messages.field(2, overhead)
    found = reader().event(messages.envelope("ADDED", "Pod", data))
    assert isinstance(found, wire.Event)
    assert found.item.meta == store.Meta("shop/a", "u", 7)
    assert found.item.value is None
    assert found.item.flaw


def test_a_bookmark_says_whether_it_ends_the_list() -> None:
    notes = {wire.INITIAL_EVENTS_END: "true"}
    metadata = {"resourceVersion": "12"}
    assert reader().event(
        messages.event("BOOKMARK", {"metadata": metadata | {"annotations": notes}})
    ) == wire.Bookmark("12", True)
    plain = messages.event("BOOKMARK", {"metadata": metadata})
    assert reader().event(plain) == wire.Bookmark("12", False)


def test_an_error_is_raised_as_what_it_stands_for() -> None:
    said = {"status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}
    with pytest.raises(errors.Gone, match="too old"):
        reader().event(messages.event("ERROR", said, "Status"))


def test_a_refusal_in_protobuf_is_read() -> None:
    said = {"status": "Failure", "reason": "Forbidden", "code": 403, "message": "may not"}
    assert protobuf.refusal(messages.body(said, "Status")) == said
    assert protobuf.refusal(messages.body({}, "Pod")) is None
    assert protobuf.refusal(protobuf.MAGIC + b"\n\xff") is None


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\n\x05ADD", id="cut off"),
        pytest.param(messages.field(1, b"ADDED"), id="no object"),
        pytest.param(messages.event("ADDED", {}, "Status"), id="a status that is no error"),
        pytest.param(messages.envelope("ADDED", "Node", b""), id="another kind"),
        pytest.param(messages.envelope("ADDED", "Pod", b"\n\xff"), id="a broken object"),
        pytest.param(messages.event("RENAMED", pod()), id="an unknown type"),
        pytest.param(messages.envelope("ERROR", "Status", b"\n\xff"), id="a broken error"),
    ],
)
def test_what_is_no_event_is_malformed(frame: bytes) -> None:
    with pytest.raises(errors.Malformed):
        reader().event(frame)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 60), max_size=8))
def test_frames_are_the_same_however_the_stream_is_cut(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(messages.frame, sent))
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    frames = wire.Frames()
    chunks = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert [one for chunk in chunks for one in frames.feed(chunk)] == sent


def test_an_absurd_length_is_malformed() -> None:
    with pytest.raises(errors.Malformed):
        wire.Frames().feed(b"\xff\xff\xff\xff")


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    """Return the structs that a type of a field holds."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    if isinstance(kind, types.UnionType) or typing.get_origin(kind):
        return [one for part in typing.get_args(kind) for one in _structs(part)]
    return []


def _check_named(kind: type[msgspec.Struct], message: str, missing: list[str]) -> None:
    named = {one[0]: one[1].rstrip("[]{}?") for one in _named(message)}
    hints = typing.get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in named:
            missing.append(f"{message}.{field.encode_name}")
            continue
        for inner in _structs(hints[field.name]):
            _check_named(inner, named[field.encode_name], missing)


def _named(message: str) -> list[list[str]]:
    return [part.split() for part in protobuf_fields.POD[message].split(", ")]


def test_every_field_of_a_pod_is_named() -> None:
    missing: list[str] = []
    _check_named(traits.PlacedPod, "Pod", missing)
    _check_named(core.Pod, "Pod", missing)
    assert missing == []
