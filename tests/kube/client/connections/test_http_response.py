"""One answer out of the bytes of a connection, however they are cut, and nothing guessed."""

import gc
import itertools
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.client.connections import http_response
from tests import processor_time

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\n\r\n"
)
TRAILED = CHUNKED[:-2] + b"Audit-Id: 7\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + PLAIN


def read(data: bytes, *, without_body: bool = False) -> http_response.Response | None:
    return http_response.Reader(without_body=without_body).feed(data)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(PLAIN, 201, id="length"),
        pytest.param(CHUNKED, 200, id="chunked"),
        pytest.param(TRAILED, 200, id="chunked, with trailers"),
        pytest.param(ANNOUNCED, 201, id="announced before"),
    ],
)
@given(cuts=st.lists(st.integers(0, 160), max_size=12))
def test_however_it_is_cut(data: bytes, status: int, cuts: list[int]) -> None:
    reader = http_response.Reader()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [reader.feed(data[start:end]) for start, end in itertools.pairwise(places)]
    done = [answer for answer in found if answer is not None]
    assert done
    assert (done[0].status, done[0].body, done[0].reusable) == (status, b"hello", True)
    before = found[: found.index(done[0])]
    assert before == [None] * len(before)


@pytest.mark.parametrize(
    ("data", "without_body", "body", "reusable"),
    [
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", False, b"", True, id="nothing to say"),
        pytest.param(b"HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n", False, b"", True, id="as is"),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 9\r\n\r\n", True, b"", True, id="HEAD"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
            *(False, b"x", False),
            id="leaves",
        ),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", False, b"x", False, id="old"
        ),
        pytest.param(PLAIN + b"HTTP/1.1 200", False, b"hello", False, id="talks on"),
        pytest.param(CHUNKED + b"x", False, b"hello", False, id="talks on after chunks"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: \t 1 \r\n\r\nx", False, b"x", True, id="blanks"
        ),
        pytest.param(
            b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", True, b"", False, id="HEAD, talks on"
        ),
    ],
)
def test_ends(data: bytes, without_body: bool, body: bytes, reusable: bool) -> None:
    answer = read(data, without_body=without_body)
    assert answer is not None
    assert (answer.body, answer.reusable) == (body, reusable)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="another version"),
        pytest.param(b"HTTP/1.1 2x0 OK\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="switches"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", id="no header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", id="space in a name"),
        pytest.param(b"HTTP/1.1 200 OK\r\n folded: 1\r\n\r\nx", id="folded"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="negative"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", id="no number"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", id="two lengths"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            id="length and chunks",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\nx", id="length twice"
        ),
        pytest.param(
            CHUNKED.replace(b"ed\r\n\r\n", b"ed\r\nContent-Length: 5\r\n\r\n"),
            id="chunks and length",
        ),
        pytest.param(
            CHUNKED.replace(b"chunked", b"chunked\r\nTransfer-Encoding: chunked"),
            id="chunked twice",
        ),
        pytest.param(CHUNKED.replace(b"chunked", b"chunked, gzip"), id="chunked, then coded"),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip, chunked"), id="coded, then chunked"),
        pytest.param(b"HTTP/1.1 2010\r\nContent-Length: 0\r\n\r\n", id="status of four digits"),
        pytest.param(b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", id="two blanks"),
        pytest.param(b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="RTSP"),
        pytest.param(b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n", id="HTTP/0.9"),
        pytest.param(b"\r\n" + PLAIN, id="blank line before"),
        pytest.param(PLAIN.replace(b"\r\n", b"\n"), id="bare newlines"),
        pytest.param(PLAIN.replace(b"json\r\n", b"json\n"), id="one bare newline"),
        pytest.param(PLAIN.replace(b"json", b"js\ron"), id="bare carriage return"),
        pytest.param(PLAIN.replace(b"json", b"js\0on"), id="zero byte"),
        pytest.param(PLAIN.replace(b"json", b"json\r\n more"), id="obsolete folding"),
        pytest.param(PLAIN.replace(b": 5", b": 5 5"), id="blank inside a length"),
        pytest.param(PLAIN.replace(b": 5", b": 5\x0b"), id="vertical tab after a length"),
        pytest.param(PLAIN.replace(b": 5", b": \xa05"), id="other blank before a length"),
        pytest.param(PLAIN.replace(b": 5", b":"), id="empty length"),
        pytest.param(PLAIN.replace(b": 5", b": " + b"9" * 30), id="endless length"),
        pytest.param(PLAIN.replace(b": 5", b": 999999999999"), id="huge length"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"3\n;x\r\n"), id="newline in a chunk size"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"3 \r\n"), id="blank after a chunk size"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"3;" + b"x" * 70_000 + b"\r\n"), id="endless line"),
        pytest.param(TRAILED.replace(b"7", b"7" * 70_000), id="endless trailer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", id="coded"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"+3\r\n"), id="signed size"),
        pytest.param(CHUNKED.replace(b"3\r\nhel", b"4\r\nhel"), id="wrong size"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"f" * 17 + b"\r\n"), id="huge size"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000, id="endless head"),
    ],
)
def test_what_is_not_clear_is_refused(data: bytes) -> None:
    with pytest.raises(http_response.BrokenError):
        read(data)


@pytest.mark.parametrize("size", [b"3e9", b"f" * 15], ids=["one byte more", "huge"])
def test_no_chunks_are_taken_in_beyond_the_largest_body(size: bytes) -> None:
    reader = http_response.Reader(largest=1000)
    assert reader.feed(CHUNKED.partition(b"3\r\n")[0] + size + b"\r\n" + b"x" * 1000) is None
    with pytest.raises(http_response.BrokenError, match="too large"):
        reader.feed(b"x")


def test_a_read_answer_leaves_no_cycle_to_collect() -> None:
    for data in (PLAIN, CHUNKED, PLAIN[:-1]):
        reader = http_response.Reader()
        reader.feed(data)
        reader.close()
        left = weakref.ref(reader)
        gc.disable()
        try:
            del reader
            assert left() is None
        finally:
            gc.enable()


def test_large_chunks_are_not_joined_again_for_each_piece() -> None:
    """The time for a chunk grows with its size, not with the square of it."""
    piece = b"x" * 65_536
    body = piece * 512
    reader = http_response.Reader()
    reader.feed(CHUNKED.partition(b"3\r\n")[0] + b"%x\r\n" % len(body))
    with processor_time.below(0.5):
        for _ in range(512):
            assert reader.feed(piece) is None
        answer = reader.feed(b"\r\n0\r\n\r\n")
    assert answer is not None
    assert answer.body == body


def test_a_body_without_a_length_lasts_as_long_as_the_connection() -> None:
    reader = http_response.Reader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    answer = reader.end()
    assert (answer.body, answer.reusable) == (b"hello", False)


@pytest.mark.parametrize(
    ("data", "begun"),
    [(b"", False), (b"HTTP/1.1 200 OK\r\n", True), (PLAIN[:-1], True), (CHUNKED[:-1], True)],
    ids=["nothing", "head", "body", "chunk"],
)
def test_an_early_end_is_no_answer(data: bytes, begun: bool) -> None:
    reader = http_response.Reader()
    assert reader.feed(data) is None
    assert reader.begun is begun
    with pytest.raises(http_response.BrokenError):
        reader.end()


@given(data=st.binary(max_size=200))
def test_noise_is_refused_or_waited_for(data: bytes) -> None:
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        try:
            answer = read(start + data)
        except http_response.BrokenError:
            continue
        assert answer is None or answer.status >= 200
