"""Messages of traffic control, against what the kernel's own tools send, and back again."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.host import tc_messages
from tests import draws

ROOT = 0x4B00_0000


def back(request):
    (answer,) = tc_messages.answers(request)
    return answer


@settings(max_examples=draws.at_least(30))
@given(
    st.integers(1, 0xFFFE),
    st.integers(1, 1 << 40),
    st.integers(1, 1 << 40),
    st.integers(0, 7),
)
def test_a_class_reads_back_as_it_was_made(minor, rate, ceiling, priority):
    made = tc_messages.Class(ROOT | minor, ROOT | 1, rate, ceiling, priority)
    assert tc_messages.read_class(back(tc_messages.new_class(7, made))) == made


@settings(max_examples=draws.at_least(30))
@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
def test_an_address_reads_back_as_it_was_made(source):
    found = tc_messages.read_filter(back(tc_messages.new_source(7, ROOT, source, ROOT | 0x13)))
    assert (found.kind, found.source, found.target) == ("u32", source, ROOT | 0x13)
    assert found.protocol == (tc_messages.IPV4 if len(source) == 4 else tc_messages.IPV6)


def test_tables_and_rules_of_groups_name_no_address():
    made = [
        make(7, ROOT, protocol)
        for make in (tc_messages.new_table, tc_messages.new_lookup)
        for protocol in (tc_messages.IPV4, tc_messages.IPV6)
    ]
    found = [tc_messages.read_filter(back(request)) for request in made]
    assert tc_messages.without_lookup(found) == ()
    assert tc_messages.without_lookup(found[:3]) == (tc_messages.IPV6,)
    for request in (*made, tc_messages.new_cgroup_rule(7, ROOT)):
        assert tc_messages.read_filter(back(request)).source == b""


def test_a_queue_reads_back_as_it_was_made():
    request = tc_messages.new_queue(7, ROOT, 2)
    assert tc_messages.queue(back(request)) == tc_messages.Queue(7, "htb", ROOT, tc_messages.ROOT)
    assert back(request).flags & (tc_messages.EXCLUSIVE | tc_messages.CREATE)
    # What `tc qdisc add dev X root handle 4b00: htb default 2` puts into its options.
    assert struct.pack("=IIIII", 3, 10, 2, 0, 0) in request


def test_a_time_is_bounded_for_the_slowest():
    slow = tc_messages.new_class(7, tc_messages.Class(ROOT | 2, ROOT | 1, 1, 1, 0))
    assert struct.pack("=I", 16384 * 10**9 >> 6 & 0xFFFF_FFFF) not in slow
    assert struct.pack("=II", 0xFFFF_FFFF, 0xFFFF_FFFF) in slow


def test_an_acknowledgement_says_what_was_wrong():
    said = b"no such queue\0"
    attribute = struct.pack("=HH", 4 + len(said), 1) + said
    body = struct.pack("=i", -2) + bytes(16) + attribute
    assert tc_messages.failure(tc_messages.Answer(tc_messages.ERROR, 0x300, body)) == (
        2,
        "no such queue",
    )
    assert tc_messages.failure(
        tc_messages.Answer(tc_messages.ERROR, 0x100, struct.pack("=i", 0))
    ) == (0, "")


@pytest.mark.parametrize("cut", [20, 40, 50])
def test_a_message_that_is_cut_off_is_refused(cut):
    with pytest.raises(ValueError, match="cut off"):
        list(tc_messages.answers(tc_messages.new_queue(7, ROOT, 2)[:cut]))


def test_an_attribute_that_is_cut_off_is_refused():
    answer = back(tc_messages.new_queue(7, ROOT, 2))
    with pytest.raises(ValueError, match="cut off"):
        tc_messages.queue(tc_messages.Answer(answer.kind, answer.flags, answer.body[:26]))


def test_a_class_of_another_queue_is_none_of_ours():
    answer = back(tc_messages.new_queue(7, ROOT, 2))
    body = answer.body.replace(b"htb\0", b"drr\0")
    assert tc_messages.read_class(tc_messages.Answer(tc_messages.NEW_CLASS, 0, body)) is None
