"""Field ownership: what others set is neither taken nor fought for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import field_ownership

KEYS = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.integers(0, 3) | st.just([]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(KEYS, values, max_size=3)


def foreign(one) -> bool:
    return not field_ownership.is_ours(one)


def entry(fields, manager="kubectl", **more):
    return {"manager": manager, "fieldsV1": {"f:spec": fields}, **more}


def test_reads_paths_of_others_and_of_ours() -> None:
    managed = (
        entry({".": {}, "f:a": {"f:b": {}, "f:c": {}}, "f:list": {}}),
        entry({"f:d": {".": {}}}, manager="koord-manager"),
        entry({"f:e": {}}, subresource="status"),
        {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
        {"manager": "kubectl"},
    )
    assert field_ownership.owned(managed, foreign) == {("a", "b"), ("a", "c"), ("list",)}
    assert field_ownership.owned(managed, field_ownership.is_ours) == {("d",)}


def test_what_another_program_wrote_under_our_name_is_not_ours() -> None:
    theirs = entry({"f:a": {}}, manager="koord-manager", operation="Update")
    ours = entry({"f:b": {}}, manager="koord-manager", operation="Apply")
    assert field_ownership.owned((theirs, ours), field_ownership.is_ours) == {("b",)}
    assert field_ownership.owned((theirs, ours), foreign) == {("a",)}
    assert field_ownership.owned((theirs, ours), field_ownership.is_managers) == {("a",), ("b",)}


@pytest.mark.parametrize(
    "managed",
    [
        None,
        {"manager": "kubectl"},
        ["kubectl", None, 7],
        [{"manager": ["koord-manager"], "fieldsV1": "f:spec"}],
        [entry("f:a")],
        [entry({"f:a": "f:b", "k:{}": {}})],
    ],
    ids=str,
)
def test_what_has_no_shape_owns_no_more_than_it_names(managed) -> None:
    assert field_ownership.owned(managed, foreign) <= {("a",)}


def test_fields_are_told_apart_down_to_a_bounded_depth() -> None:
    fields: dict = {}
    for _ in range(100_000):
        fields = {"f:a": fields}
    (path,) = field_ownership.owned([entry(fields)], foreign)
    assert set(path) == {"a"}
    assert len(path) < 100
    assert field_ownership.covers(frozenset({path}), ("a",) * 100_000)
    assert not field_ownership.covers(frozenset({path}), ("a",))


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        pytest.param({("a", "b")}, {"a": {"c": 2}, "d": 3}, id="one-field"),
        pytest.param({("a",)}, {"d": 3}, id="everything-below"),
        pytest.param({("d", "x")}, {"a": {"b": 1, "c": 2}}, id="part-of-a-value"),
        pytest.param({("a", "b"), ("a", "c"), ("d",)}, {}, id="nothing-left"),
    ],
)
def test_leaves_out_what_is_foreign(foreign, expected) -> None:
    wanted = {"a": {"b": 1, "c": 2}, "d": 3}
    assert field_ownership.without(wanted, frozenset(foreign)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a", "b"), {"a": {"c": 2}, "d": 3}),
        (("a",), {"d": 3}),
        (("a", "x", "y"), {"a": {"b": 1, "c": 2}, "d": 3}),
        (("d", "x"), {"a": {"b": 1, "c": 2}, "d": 3}),
    ],
)
def test_a_path_is_removed_from_a_copy(path, expected) -> None:
    value = {"a": {"b": 1, "c": 2}, "d": 3}
    assert field_ownership.removed(value, path) == expected
    assert value == {"a": {"b": 1, "c": 2}, "d": 3}


def test_differs() -> None:
    there = {"a": {"b": 1, "c": 2}}
    assert not field_ownership.differs({"a": {"b": 1}}, there, frozenset())
    assert field_ownership.differs({"a": {"b": 2}}, there, frozenset())
    assert field_ownership.differs({"a": {"d": 1}}, there, frozenset())
    assert field_ownership.differs({"a": {"b": 1}}, there, frozenset({("a", "c")}))
    assert not field_ownership.differs({"a": {"b": 1}}, there, frozenset({("a", "gone")}))


@given(objects)
def test_without_foreign_fields_nothing_is_lost(value) -> None:
    said = {path: inner for path, inner in field_ownership.leaves(value) if inner != {}}
    assert dict(field_ownership.leaves(field_ownership.without(value, frozenset()))) == said


@given(objects, objects)
def test_what_is_left_out_is_gone_and_the_rest_stays(value, other) -> None:
    foreign = frozenset(path for path, _ in field_ownership.leaves(other))
    left = dict(field_ownership.leaves(field_ownership.without(value, foreign)))
    for path, inner in field_ownership.leaves(value):
        overlaps = any(
            path[: len(taken)] == taken or taken[: len(path)] == path for taken in foreign
        )
        if inner == {}:
            continue
        assert (path in left) is not overlaps
        assert overlaps or left[path] == inner


@given(objects)
def test_what_is_there_does_not_differ_from_itself(value) -> None:
    assert not field_ownership.differs(
        value, value, frozenset(p for p, _ in field_ownership.leaves(value))
    )
