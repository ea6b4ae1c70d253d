"""Bytes of an NRI socket."""

import struct

import hypothesis
import pytest
from hypothesis import strategies as st

from agent.nri import frames, messages
from tests.agent.nri import stand_in

MESSAGES = st.lists(
    st.builds(
        frames.Message,
        st.sampled_from([frames.PLUGIN_SERVICE, frames.RUNTIME_SERVICE]),
        st.integers(0, 2**32 - 1),
        st.sampled_from([frames.REQUEST, frames.RESPONSE]),
        st.binary(max_size=60),
    ),
    max_size=6,
)


def test_a_message_is_written_as_the_protocol_says():
    found = frames.encoded(frames.Message(2, 1, frames.REQUEST, b"abc"))
    assert found == bytes.fromhex("00000002 0000000d 00000003 00000001 01 00 616263")


@hypothesis.given(MESSAGES, st.integers(1, 40), st.integers(1, 5))
def test_messages_arrive_however_they_are_cut(sent, chunk, pieces):
    data = b"".join(stand_in.framed(m.connection, m.stream, m.type, m.data, pieces) for m in sent)
    decoder = frames.Decoder()
    found = [m for at in range(0, len(data), chunk) for m in decoder.feed(data[at : at + chunk])]
    assert found == sent


def test_messages_of_two_connections_may_be_interleaved():
    one = stand_in.framed(1, 1, 1, b"abcdef", pieces=2)
    other = stand_in.framed(2, 1, 2, b"xyz")
    half = len(one) // 2
    found = list(frames.Decoder().feed(one[:half] + other + one[half:]))
    assert [(m.connection, m.data) for m in found] == [(2, b"xyz"), (1, b"abcdef")]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 1, frames.MOST_PAYLOAD + 1),
        struct.pack(">II", 3, 4) + b"abcd",
        struct.pack(">II", 1, 10) + struct.pack(">IIBB", frames.MOST_DATA + 1, 1, 1, 0),
    ],
    ids=["frame-too-long", "connection-that-is-none", "message-too-long"],
)
def test_what_is_no_frame_is_an_error(data):
    with pytest.raises(frames.FrameError):
        list(frames.Decoder().feed(data))


def test_no_message_is_sent_that_the_runtime_would_refuse():
    with pytest.raises(frames.FrameError):
        frames.encoded(frames.Message(1, 1, frames.RESPONSE, bytes(frames.MOST_DATA + 1)))


def test_subscriptions_are_masks():
    events = messages.Event
    wanted = (events.RUN_POD_SANDBOX, events.REMOVE_POD_SANDBOX)
    assert messages.mask(*wanted, events.CREATE_CONTAINER, events.UPDATE_CONTAINER) == 0x8D


def test_a_text_that_is_not_utf_8_does_not_cost_the_request():
    raw = stand_in.wire.field(1, stand_in.wire.field(2, b"\xff\xfe"))
    found = messages.read("CreateContainerRequest", raw)
    assert messages.text(found.pod.name) == "\ufffd\ufffd"
