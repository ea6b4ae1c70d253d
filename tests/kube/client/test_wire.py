"""Pages and watch lines, good and odd ones."""

from typing import Any

import msgspec
import orjson
import pytest

from api.kubernetes import core
from kube.client import errors, wire
from kube.informers import store
from tests import processor_time


@pytest.fixture
def reader() -> wire.Reader[str]:
    return wire.Reader(core.Pod, lambda pod: pod.spec.node_name or None)


@pytest.fixture
def raw_reader() -> wire.Reader[Any]:
    return wire.Reader(dict, lambda raw: raw["spec"]["size"])


def page(*items: Any, version: str = "9", more: str = "") -> bytes:
    return orjson.dumps(
        {"metadata": {"resourceVersion": version, "continue": more}, "items": list(items)}
    )


def event(kind: str, told: Any) -> bytes:
    return orjson.dumps({"type": kind, "object": told})


def test_page(reader: wire.Reader[str], pod: Any) -> None:
    meta, items = reader.page(page(pod("a", 3, node="n1"), pod("b", 4), more="x"))
    assert (meta.resource_version, meta.continue_) == ("9", "x")
    assert items == [
        wire.Item(store.Meta("shop/a", "uid-a", 3), "n1"),
        wire.Item(store.Meta("shop/b", "uid-b", 4), None),
    ]


def test_empty_page_is_null_in_go(reader: wire.Reader[str]) -> None:
    meta, items = reader.page(b'{"metadata":{"resourceVersion":"5"},"items":null}')
    assert (meta.resource_version, items) == ("5", [])


def test_object_of_a_wrong_shape_is_left_out_alone(reader: wire.Reader[str], pod: Any) -> None:
    bad = pod("bad", 4)
    bad["spec"] = "nonsense"
    _, items = reader.page(page(pod("a", 3, node="n1"), bad))
    assert [item.value for item in items] == ["n1", None]
    assert items[1].meta == store.Meta("shop/bad", "uid-bad", 4)
    assert "$.spec" in items[1].flaw


@pytest.mark.parametrize("levels", [1_100, 3_000, 200_000])
@pytest.mark.parametrize("opening", ["[", '{"x":', '[{"\\"]":'])
def test_object_that_is_nested_too_deep_is_left_out_alone(
    reader: wire.Reader[str], pod: Any, opening: str, levels: int
) -> None:
    closing = {"[": "]", "{": "}"}
    ends = "".join(closing[c] for c in reversed(opening) if c in closing)
    if opening.startswith("[{"):
        ends = "}]"
    deep = orjson.Fragment((opening * levels + "0" + ends * levels).encode())
    bad = pod("bad", 4) | {"x": deep}
    try:
        msgspec.json.decode(orjson.dumps(bad), type=core.Pod)
        flaw = ""  # From Python 3.12 on some thousand levels can be read, and are.
    except RecursionError:
        flaw = "nested more than 128 levels deep"
    _, items = reader.page(page(pod("a", 3, node="n1"), bad, pod("c", 5, node="n2")))
    assert [item.value for item in items] == ["n1", None, "n2"]
    assert items[1].meta == store.Meta("shop/bad", "uid-bad", 4)
    assert items[1].flaw == flaw
    assert flaw or levels < 200_000
    told = reader.event(event("MODIFIED", bad))
    assert told == wire.Event(items[1], deleted=False)
    gone = reader.event(event("DELETED", bad))
    assert isinstance(gone, wire.Event)
    assert (gone.item.meta, gone.deleted) == (items[1].meta, True)


@pytest.mark.parametrize(
    "fault",
    [ZeroDivisionError("x"), OverflowError("x"), RecursionError("x"), UnicodeError("x")],
    ids=lambda fault: type(fault).__name__,
)
def test_projection_that_fails_on_an_object(pod: Any, fault: Exception) -> None:
    def project(found: core.Pod) -> str:
        if found.metadata.name == "bad":
            raise fault
        return found.spec.node_name

    _, items = wire.Reader(core.Pod, project).page(page(pod("bad", 3), pod("a", 4, node="n1")))
    assert [item.value for item in items] == [None, "n1"]
    assert type(fault).__name__ in items[0].flaw


def test_projection_that_refuses_an_object(raw_reader: wire.Reader[Any]) -> None:
    metadata = {"name": "n", "uid": "u", "resourceVersion": "7"}
    told = raw_reader.event(event("ADDED", {"metadata": metadata, "spec": {}}))
    assert isinstance(told, wire.Event)
    assert told.item == wire.Item(store.Meta("n", "u", 7), None, "KeyError: 'size'")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"items":[{"metadata":3}]}', b'{"metadata":{},"items":[3]}']
)
def test_page_that_is_none(reader: wire.Reader[str], data: bytes) -> None:
    with pytest.raises(errors.Malformed):
        reader.page(data)


def test_object_without_a_name(raw_reader: wire.Reader[Any]) -> None:
    with pytest.raises(errors.Malformed, match="no name"):
        raw_reader.page(page({"spec": {"size": 1}}))


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_events(reader: wire.Reader[str], pod: Any, kind: str) -> None:
    told = reader.event(event(kind, pod("a", 3, node="n1")))
    assert told == wire.Event(wire.Item(store.Meta("shop/a", "uid-a", 3), "n1"), deleted=False)


def test_of_what_is_deleted_only_the_identity_is_read(pod: Any) -> None:
    read = list[str]()
    reader = wire.Reader(core.Pod, lambda found: read.append(found.metadata.name))
    gone = reader.event(event("DELETED", pod("a", 3, node="n1")))
    assert gone == wire.Event(wire.Item(store.Meta("shop/a", "uid-a", 3), None), deleted=True)
    assert not read


@pytest.mark.parametrize(
    ("annotations", "ends"),
    [(None, False), ({}, False), ({wire.INITIAL_EVENTS_END: "true"}, True)],
    ids=["null", "none", "end of the initial events"],
)
def test_bookmarks(
    reader: wire.Reader[str], raw_reader: wire.Reader[Any], annotations: Any, ends: bool
) -> None:
    metadata = {"resourceVersion": "12", "annotations": annotations}
    line = event("BOOKMARK", {"kind": "Pod", "metadata": metadata})
    assert reader.event(line) == raw_reader.event(line) == wire.Bookmark("12", ends)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"code": 410, "reason": "Expired"}, errors.Gone),
        ({"code": 410, "reason": "Gone", "metadata": {}, "status": "Failure"}, errors.Gone),
        ({"code": 500, "reason": "InternalError"}, errors.ServerFailure),
        ({}, errors.ServerFailure),
        (
            {"code": 429, "details": {"retryAfterSeconds": 3}, "message": "m" * 9999},
            errors.TooManyRequests,
        ),
    ],
)
def test_error_events_are_raised(
    reader: wire.Reader[str], raw_reader: wire.Reader[Any], status: Any, expected: Any
) -> None:
    line = event("ERROR", {"kind": "Status", **status})
    for each in (reader, raw_reader):
        with pytest.raises(expected):
            each.event(line)


@pytest.mark.parametrize(
    "line",
    [b"{", b"3", event("ADDED", 3), event("PROMOTED", {"metadata": {}}), event("ADDED", {})],
    ids=["cut", "number", "object is a number", "unknown type", "no metadata"],
)
def test_line_that_is_no_event(raw_reader: wire.Reader[Any], line: bytes) -> None:
    with pytest.raises(errors.Malformed):
        raw_reader.event(line)


def test_object_whose_text_is_not_utf_8_is_left_out_alone(reader: wire.Reader[str]) -> None:
    """Not every extension API server replaces what is no UTF-8."""
    line = event(
        "MODIFIED", {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"nodeName": "?"}}
    )
    found = reader.event(line.replace(b"?", b"\xff"))
    assert isinstance(found, wire.Event)
    assert (found.item.meta.key, found.item.meta.version, found.item.value) == ("a", 7, None)
    assert "utf-8" in found.item.flaw


@pytest.mark.parametrize("part", [b"MODIFIED", b"name-a", b"12"])
def test_event_whose_identity_is_not_utf_8_is_malformed(
    reader: wire.Reader[str], part: bytes
) -> None:
    line = event("MODIFIED", {"metadata": {"name": "name-a", "resourceVersion": "12"}})
    with pytest.raises(errors.Malformed):
        reader.event(line.replace(part, b"\xff"))


def test_list_whose_version_is_not_utf_8_is_malformed(reader: wire.Reader[str]) -> None:
    with pytest.raises(errors.Malformed):
        reader.page(b'{"metadata":{"resourceVersion":"\xff"},"items":[]}')


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_lines_are_cut_anywhere(step: int) -> None:
    data = b'{"a":1}\n\n{"b":22}\r\n{"c":333}\n{"rest"'
    lines = wire.Lines()
    cut = []
    for start in range(0, len(data), step):
        cut += lines.feed(data[start : start + step])
    assert [orjson.loads(line) for line in cut] == [{"a": 1}, {"b": 22}, {"c": 333}]
    assert [orjson.loads(line) for line in lines.feed(b":4}\n")] == [{"rest": 4}]


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("", 0), ("0", 0), ("abc", 0), ("-3", 0), ("\u0663", 0), ("9" * 5000, 0)],
)
def test_versions_that_are_no_numbers_are_unknown(text: str, number: int) -> None:
    assert wire.number(text) == number


def test_a_list_that_is_cut_in_a_string_takes_no_longer_to_make_shallow() -> None:
    text = b"[" * 200 + b'"' + b'\\"' * 100_000 + b"\\"
    with processor_time.below(1.0):
        wire.shallow(text)
