"""The relay without sockets: flow control, frames in pieces, and what it cannot read."""

import hpack
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from runtimeproxy.http2 import frames, grpc, relay

METHOD = "/runtime.v1.RuntimeService/CreateContainer"
OTHER = "/runtime.v1.RuntimeService/Version"
SMALL = grpc.body_of(b"as it came")


def headers(stream, path=METHOD, encoder=None, *, pieces=1):
    """A block of headers, in a HEADERS frame and CONTINUATIONs."""
    named = [(":method", "POST"), (":path", path), ("x-own", f"{stream}")]
    block = (encoder or hpack.Encoder()).encode(named)
    size = -(-len(block) // pieces)
    parts = [block[at : at + size] for at in range(0, len(block), size)]
    found = b""
    for position, part in enumerate(parts):
        kind = frames.Kind.CONTINUATION if position else frames.Kind.HEADERS
        end = frames.END_HEADERS if position == len(parts) - 1 else 0
        found += frames.written(kind, end, stream, part)
    return found


def data(stream, body, *, end=True):
    return frames.written(frames.Kind.DATA, frames.END_STREAM if end else 0, stream, body)


def settings(name, value):
    payload = name.to_bytes(2) + value.to_bytes(4)
    return frames.written(frames.Kind.SETTINGS, 0, 0, payload)


def taken(buffer):
    """The frames that a buffer holds, which is empty afterwards."""
    raw = bytes(buffer)
    buffer.clear()
    return frames.Splitter().feed(raw.removeprefix(frames.PREFACE))


def sent_data(found, stream):
    return b"".join(one.payload for one in found if (one.kind, one.stream) == (0, stream))


@pytest.fixture
def made():
    found = relay.Relay({METHOD})
    found.from_kubelet(frames.PREFACE)
    return found


def asked(made):
    events, made.events = made.events, []
    return [(type(one).__name__, one.stream, one.message) for one in events]


def test_a_request_waits_and_its_headers_do_not(made):
    made.from_kubelet(headers(1) + data(1, SMALL) + headers(3, OTHER) + data(3, SMALL))
    assert asked(made) == [("Asked", 1, b"as it came")]
    assert [(one.kind, one.stream) for one in taken(made.to_runtime)] == [(1, 1), (1, 3), (0, 3)]
    made.forward(1)
    (sent,) = taken(made.to_runtime)
    assert sent.raw == data(1, SMALL)


def test_another_body_keeps_to_the_windows_of_the_runtime(made):
    made.from_runtime(settings(frames.INITIAL_WINDOW_SIZE, 10) + settings(frames.MAX_FRAME_SIZE, 8))
    made.from_kubelet(headers(1) + data(1, SMALL))
    taken(made.to_runtime)
    made.forward(1, bytes(30))
    found = taken(made.to_runtime)
    assert [len(one.payload) for one in found] == [8, 2]
    made.from_runtime(frames.window_update(1, 100))
    found += taken(made.to_runtime)
    assert sent_data(found, 1) == grpc.body_of(bytes(30))
    assert [one.ends_stream for one in found] == [False] * (len(found) - 1) + [True]
    # The kubelet gets its own 15 bytes back, and nothing for the 35 that it did not send.
    made.from_runtime(frames.window_update(0, 35))
    given = [one for one in taken(made.to_kubelet) if one.kind == frames.Kind.WINDOW_UPDATE]
    assert [(one.stream, one.number) for one in given] == [(0, len(SMALL))]


def test_frames_of_the_kubelet_wait_for_what_the_relay_sends_and_are_credited_when_cancelled(made):
    window = 65_535
    made.from_runtime(settings(frames.INITIAL_WINDOW_SIZE, 1 << 20))
    made.from_kubelet(headers(1) + data(1, SMALL))
    made.forward(1, bytes(window - 10))
    taken(made.to_runtime), taken(made.to_kubelet)
    made.from_kubelet(headers(3, OTHER) + data(3, bytes(20), end=False))
    made.from_kubelet(headers(5, OTHER) + data(5, bytes(30), end=False))
    assert [one.kind for one in taken(made.to_runtime)] == [1, 1]
    made.from_kubelet(frames.reset(5, frames.CANCEL))
    assert [one.raw for one in taken(made.to_kubelet)] == [frames.window_update(0, 30)]
    taken(made.to_runtime)
    made.from_runtime(frames.window_update(0, window))
    assert sent_data(taken(made.to_runtime), 3) == bytes(20)


def test_a_request_that_is_too_large_is_refused_and_everything_is_credited(made):
    made.from_kubelet(headers(1))
    part = bytes(1 << 20)
    for _ in range(17):
        made.from_kubelet(data(1, part, end=False))
    found = taken(made.to_kubelet)
    of_connection = [one.number for one in found if (one.kind, one.stream) == (8, 0)]
    assert sum(of_connection) == 17 << 20
    (refused,) = (one for one in found if one.kind == frames.Kind.HEADERS)
    told = dict(hpack.Decoder().decode(refused.payload))
    assert (told["grpc-status"], refused.ends_stream) == ("8", True)
    assert "larger than 16777216 bytes" in told["grpc-message"]
    assert [one.kind for one in taken(made.to_runtime)] == [1, frames.Kind.RST_STREAM]


def test_a_refusal_never_cuts_a_header_block_of_the_runtime(made):
    made.from_kubelet(headers(1) + data(1, SMALL) + headers(3, OTHER) + data(3, SMALL))
    taken(made.to_kubelet)
    first, second = frames.Splitter().feed(headers(3, OTHER, pieces=2))
    made.from_runtime(first.raw)
    made.refuse(1, grpc.UNKNOWN, "nö, 100 %")
    assert not made.to_kubelet
    made.from_runtime(second.raw)
    found = taken(made.to_kubelet)
    assert [one.stream for one in found] == [3, 3, 1]
    told = dict(hpack.Decoder().decode(found[-1].payload))
    assert told["grpc-message"] == "n%C3%B6, 100 %25"


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\0\0\0\x09short", SMALL + SMALL, b"\x01" + SMALL[1:]],
    ids=["empty", "cut", "two", "compressed"],
)
def test_what_is_not_one_message_is_not_read_and_passes(made, body):
    made.from_kubelet(headers(1) + data(1, body))
    assert asked(made) == [("Asked", 1, None)]
    made.forward(1)
    assert sent_data(taken(made.to_runtime), 1) == body


@pytest.mark.parametrize(
    "broken",
    [
        frames.written(frames.Kind.HEADERS, frames.END_HEADERS, 3, b"\xff\xff\xff\xff\xff\xff"),
        frames.written(frames.Kind.HEADERS, frames.END_HEADERS | frames.PADDED, 3, b"\x09"),
        frames.written(frames.Kind.DATA, frames.PADDED, 1, b""),
    ],
    ids=["headers", "padding", "data"],
)
def test_from_what_cannot_be_read_on_everything_passes(made, broken):
    made.from_kubelet(headers(1))
    later = headers(5) + data(5, SMALL) + b"\0\0"
    made.from_kubelet(broken + later)
    made.from_kubelet(b"more")
    assert made.problem
    assert bytes(made.to_runtime).endswith(headers(1) + broken + later + b"more")


@for_all(
    requests=st.lists(
        st.tuples(st.booleans(), st.binary(max_size=40), st.integers(1, 3)), max_size=6
    ),
    cuts=st.lists(st.integers(1, 30), max_size=40),
)
def test_however_bytes_are_cut_the_same_reaches_the_runtime(requests, cuts):
    made, encoder = relay.Relay({METHOD}), hpack.Encoder()
    raw = frames.PREFACE
    for position, (intercepted, message, pieces) in enumerate(requests):
        stream = 2 * position + 1
        path = METHOD if intercepted else OTHER
        raw += headers(stream, path, encoder, pieces=pieces) + data(stream, grpc.body_of(message))
    rest = raw
    for cut in [*cuts, len(raw)]:
        made.from_kubelet(rest[:cut])
        rest = rest[cut:]
        for event in made.events:
            made.forward(event.stream)
        made.events.clear()
    sent, got = (frames.Splitter().feed(one[24:]) for one in (raw, bytes(made.to_runtime)))
    assert bytes(made.to_runtime[:24]) == frames.PREFACE
    # Of one stream everything keeps its order, and so do header blocks of all streams.
    assert sorted(got, key=lambda one: one.stream) == sent
    assert [one for one in got if one.kind] == [one for one in sent if one.kind]
