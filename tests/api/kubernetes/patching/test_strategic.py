"""Strategic merge patch, as kubectl and colocation profiles send it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes.patching import strategic

POD: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", "tier": "a"}, "finalizers": ["one"]},
    "spec": {
        "containers": [
            {"name": "c0", "image": "a:1", "env": [{"name": "A", "value": "0"}]},
            {"name": "c1", "image": "b:1"},
        ],
        "tolerations": [{"key": "old"}],
        "volumes": [{"name": "v0", "emptyDir": {}}],
    },
}

CASES = {
    "scalar replaces": ({"spec": {"schedulerName": "s"}}, ("spec", "schedulerName"), "s"),
    "null removes": (
        {"metadata": {"labels": {"app": None}}},
        ("metadata", "labels"),
        {"tier": "a"},
    ),
    "map replaces on demand": (
        {"metadata": {"labels": {"$patch": "replace", "only": "this"}}},
        ("metadata", "labels"),
        {"only": "this"},
    ),
    "map is deleted on demand": (
        {"metadata": {"labels": {"$patch": "delete"}}},
        ("metadata", "labels"),
        {},
    ),
    "element merges by key": (
        {"spec": {"containers": [{"name": "c0", "env": [{"name": "B", "value": "2"}]}]}},
        ("spec", "containers", 0, "env"),
        [{"name": "B", "value": "2"}, {"name": "A", "value": "0"}],
    ),
    "element is deleted on demand": (
        {"spec": {"containers": [{"name": "c1", "$patch": "delete"}]}},
        ("spec", "containers", slice(None)),
        [{"name": "c0", "image": "a:1", "env": [{"name": "A", "value": "0"}]}],
    ),
    "new element goes in front": (
        {"spec": {"volumes": [{"name": "v1"}]}},
        ("spec", "volumes"),
        [{"name": "v1"}, {"name": "v0", "emptyDir": {}}],
    ),
    "list replaces on demand": (
        {"spec": {"containers": [{"$patch": "replace"}, {"name": "new"}]}},
        ("spec", "containers"),
        [{"name": "new"}],
    ),
    "tolerations are atomic": (
        {"spec": {"tolerations": [{"key": "new"}]}},
        ("spec", "tolerations"),
        [{"key": "new"}],
    ),
    "finalizers are a set": (
        {"metadata": {"finalizers": ["two", "one"]}},
        ("metadata", "finalizers"),
        ["one", "two"],
    ),
    "primitive is deleted on demand": (
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["one"]}},
        ("metadata", "finalizers"),
        [],
    ),
    "only retained keys stay": (
        {
            "spec": {
                "volumes": [{"name": "v0", "hostPath": {}, "$retainKeys": ["name", "hostPath"]}]
            }
        },
        ("spec", "volumes"),
        [{"name": "v0", "hostPath": {}}],
    ),
    "order is set": (
        {"spec": {"$setElementOrder/containers": [{"name": "c1"}, {"name": "c0"}]}},
        ("spec", "containers", 0, "name"),
        "c1",
    ),
}


@pytest.mark.parametrize(("patch", "where", "expected"), CASES.values(), ids=CASES.keys())
def test_merge(patch: dict[str, Any], where: tuple[Any, ...], expected: Any) -> None:
    before = copy.deepcopy(POD)
    found: Any = strategic.merge(POD, patch)
    for step in where:
        found = found[step]
    assert found == expected
    assert before == POD, "the original must not change"


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers"),
        ({"spec": {"$patch": "sideways"}}, "spec"),
        ({"spec": {"$retainKeys": 1}}, r"spec\.\$retainKeys"),
        ({"spec": {"$setElementOrder/containers": "c0"}}, r"spec\.\$setElementOrder/containers"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": {}}}, "metadata"),
    ],
    ids=["no merge key", "unknown directive", "retained", "order", "deleted primitives"],
)
def test_a_bad_patch_names_the_field(patch: dict[str, Any], names: str) -> None:
    with pytest.raises(strategic.PatchError, match=names):
        strategic.merge(POD, patch)


LEAVES = st.none() | st.integers() | st.text(max_size=3)
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abcd"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner | LEAVES, max_size=3),
    max_leaves=8,
)


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_merging_once(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = strategic.merge(original, patch)
    assert strategic.merge(once, patch) == once
