"""Bodies in the binary form that kubectl uses to create built-in kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.apiserver.http import api_errors, protobuf


def varint(number: int) -> bytes:
    number %= 1 << 64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(kind: str, raw: bytes, version: str = "v1") -> bytes:
    about = field(1, version) + field(2, kind)
    return protobuf.MAGIC + field(1, about) + field(2, raw) + field(3, "") + field(4, "")


def test_a_body_as_kubectl_sends_it() -> None:
    body = bytes.fromhex(
        "6b3873000a0f0a0276311209436f6e6669674d6170"
        "121b0a110a01611200 1a0022002a00320038004200 12060a017812 01311a002200".replace(" ", "")
    )
    assert protobuf.decoded(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"x": "1"},
    }


def test_every_type_of_field() -> None:
    meta = (
        field(1, "d") + field(8, field(1, 1_700_000_000)) + field(11, field(1, "a") + field(2, "b"))
    )
    limits = field(1, "cpu") + field(2, field(1, "500m"))
    container = field(1, "c") + field(3, "sleep") + field(3, "1") + field(8, field(1, limits))
    rolling = field(1, field(1, 1) + field(3, "25%")) + field(2, field(1, 0) + field(2, 0))
    spec = (
        field(1, 0)
        + field(3, field(2, field(2, container)))
        + field(4, field(2, rolling))
        + field(7, 1)
        + field(6, -1)
    )
    decoded = protobuf.decoded(envelope("Deployment", field(1, meta) + field(2, spec), "apps/v1"))
    assert decoded == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "d",
            "creationTimestamp": "2023-11-14T22:13:20Z",
            "labels": {"a": "b"},
        },
        "spec": {
            "replicas": 0,
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "command": ["sleep", "1"],
                            "resources": {"limits": {"cpu": "500m"}},
                        }
                    ]
                }
            },
            "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}},
            "paused": True,
            "revisionHistoryLimit": -1,
        },
    }


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        pytest.param(b"{}", 400, "not a protobuf object", id="no magic"),
        pytest.param(envelope("Widget", b""), 501, "kind Widget", id="unknown kind"),
        pytest.param(
            envelope("Pod", field(2, field(15, 1))), 501, "field 15 of PodSpec", id="unknown field"
        ),
        pytest.param(envelope("Pod", b"\x0a\x7f"), 400, "longer than its message", id="cut off"),
        pytest.param(envelope("Pod", b"\x0d1234"), 400, "wire type 5", id="wire type"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(body: bytes, code: int, words: str) -> None:
    with pytest.raises(api_errors.FailureError, match=words) as caught:
        protobuf.decoded(body)
    assert caught.value.code == code


@given(st.binary(max_size=200), st.sampled_from(["Pod", "ConfigMap", "Deployment", "Eviction"]))
def test_no_bytes_break_it(raw: bytes, kind: str) -> None:
    try:
        decoded = protobuf.decoded(envelope(kind, raw))
    except api_errors.FailureError:
        return
    assert decoded["kind"] == kind
