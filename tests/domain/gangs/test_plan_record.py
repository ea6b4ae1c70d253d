"""The record of a plan on a member is bounded: what is no record of ours keeps no place."""

import json

import msgspec
import pytest
from hypothesis import given, strategies

from domain.gangs import plan_record

RECORD = plan_record.Record("ns/a,ns/b", "g1", "n1", 1000.0, {"note": "text"})


def written(**changed):
    return json.dumps(json.loads(plan_record.encode(RECORD)) | changed)


def test_a_record_is_read_as_it_was_written():
    assert plan_record.decode(plan_record.encode(RECORD), 900.0, 200.0) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param(written(v=2), id="other version"),
        pytest.param(written(node="a/b"), id="no node"),
        pytest.param(written(node=""), id="empty node"),
        pytest.param(written(generation=""), id="no generation"),
        pytest.param(written(generation="x" * 129), id="long generation"),
        pytest.param(written(group="x" * 1025), id="long group"),
        pytest.param(written(granted={str(n): "x" for n in range(33)}), id="many texts"),
        pytest.param(written(members=["x"] * 33), id="many members"),
        pytest.param(written(granted={"note": "x" * (16 << 10)}), id="long text"),
        pytest.param(written(until="soon"), id="no moment"),
        pytest.param(written(until=899.0), id="over"),
        pytest.param(written(until=1e12), id="for ever"),
    ],
)
def test_what_is_no_record_counts_as_absent(text):
    assert plan_record.decode(text, 900.0, 200.0) is None


def test_a_record_that_is_over_still_says_its_generation():
    assert plan_record.read(written(until=1.0)).generation == "g1"


def test_a_record_lists_members_by_a_few_letters():
    listed = tuple(plan_record.digest(f"uid-{number}") for number in range(32))
    assert len({*listed}) == 32
    assert {len(one) for one in listed} == {8}
    record = msgspec.structs.replace(RECORD, members=listed)
    assert plan_record.decode(plan_record.encode(record), 900.0, 200.0) == record


WHOLE = plan_record.Record("ns/a", "g1", "", 1000.0, members=("a", "b", "c"), count=3)
"""What is noted of a plan on all of its members."""


def test_what_is_not_known_is_not_written_but_for_the_version():
    bare = plan_record.Record("ns/a", "g1", "n1")
    assert json.loads(plan_record.encode(bare)) == {
        "group": "ns/a", "generation": "g1", "node": "n1", "v": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "node"),
    [
        pytest.param(None, "n2", id="none"),
        pytest.param({"generation": "g2"}, "n2", id="of another extender"),
        pytest.param({"members": ()}, "n1", id="lists nobody"),
        pytest.param({"completes": "g0"}, "n1", id="of another interruption"),
    ],
)
def test_a_binding_writes_the_record_where_the_member_has_another_one(changed, node):
    has = msgspec.structs.replace(WHOLE, node="n1", **(changed or {}))
    text = "" if changed is None else plan_record.encode(has)
    found = plan_record.renewed(text, WHOLE, "n2", "uid-1")
    assert (found.generation, found.completes, found.node) == ("g1", "", node)
    assert set(found.members) < set(WHOLE.members)


def test_a_binding_writes_no_record_that_the_member_has_already():
    text = plan_record.encode(msgspec.structs.replace(WHOLE, node="n1"))
    assert plan_record.renewed(text, WHOLE, "n2", "uid-1") is None


def test_long_groups_are_written_as_a_digest():
    assert plan_record.group_text("ns/a") == "ns/a"
    text = plan_record.group_text("ns/a," * 300)
    assert text.startswith("sha256-")
    assert plan_record.group_text("ns/b," * 300) != text


@given(strategies.text(max_size=200) | strategies.binary(max_size=200).map(repr))
def test_any_text_is_read_without_an_error(text):
    assert plan_record.decode(text, 0.0, 100.0) is None
