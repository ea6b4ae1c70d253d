"""Patches turn one document into another and touch nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes.patching import patches

KEYS = st.sampled_from(["a", "b/c", "~d", "e"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "y/z"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
# Merge patches cannot express null as a value.
WITHOUT_NULL = st.recursive(
    st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(DOCUMENTS, DOCUMENTS)
def test_operations_lead_from_one_document_to_the_other(before, after):
    found = patches.operations(before, after)
    assert patches.same(patches.applied(before, found), after)
    assert bool(found) is not patches.same(before, after)


@given(st.dictionaries(KEYS, WITHOUT_NULL, max_size=4), st.dictionaries(KEYS, WITHOUT_NULL))
def test_merge_patches_lead_from_one_document_to_the_other(before, after):
    patch = patches.merge_patch(before, after)
    assert patches.same(patches.merged(before, patch), after)
    assert bool(patch) is not patches.same(before, after)


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": {}}, {"a": {"b/c": "d"}}, [{"op": "add", "path": "/a/b~1c", "value": "d"}]),
        ({"a": 1, "b": 2}, {"a": 1}, [{"op": "remove", "path": "/b"}]),
        ({"l": [1, 2]}, {"l": [1, 2, 3]}, [{"op": "add", "path": "/l/2", "value": 3}]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [{"op": "remove", "path": "/l/1"}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ],
)
def test_operations_are_minimal(before, after, operations):
    assert patches.operations(before, after) == operations


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, "bar", "bar"),
    ],
)
def test_merging_follows_the_standard(document, patch, expected):
    assert patches.merged(document, patch) == expected
