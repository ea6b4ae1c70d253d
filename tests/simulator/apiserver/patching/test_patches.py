"""The patch types."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import resources
from simulator.apiserver.http import api_errors
from simulator.apiserver.patching import patches
from simulator.apiserver.registry import kinds

POD = kinds.Kind(resources.PODS)
CUSTOM = kinds.Kind(resources.NODE_SLOS, custom=True)
CURRENT = {
    "metadata": {"name": "x"},
    "spec": {"a": 1, "b": {"c": 2}, "containers": [{"name": "c"}]},
}


@pytest.mark.parametrize(
    ("media", "patch", "spec"),
    [
        pytest.param(
            patches.MERGE,
            {"spec": {"a": None, "b": {"d": 3}, "containers": []}},
            {"b": {"c": 2, "d": 3}, "containers": []},
            id="merge",
        ),
        pytest.param(
            patches.STRATEGIC,
            {"spec": {"containers": [{"name": "d"}]}},
            {"a": 1, "b": {"c": 2}, "containers": [{"name": "d"}, {"name": "c"}]},
            id="strategic",
        ),
        pytest.param(
            patches.JSON_PATCH,
            [{"op": "move", "from": "/spec/b/c", "path": "/spec/a"}],
            {"a": 2, "b": {}, "containers": [{"name": "c"}]},
            id="json",
        ),
    ],
)
def test_patches(media: str, patch: Any, spec: dict[str, Any]) -> None:
    patched = patches.patched(POD, media, CURRENT, patch)
    assert patched == {"metadata": {"name": "x"}, "spec": spec}
    assert CURRENT["spec"]["a"] == 1


@pytest.mark.parametrize(
    ("kind", "media", "patch", "code"),
    [
        pytest.param(POD, patches.MERGE, [], 400, id="merge by a list"),
        pytest.param(POD, patches.STRATEGIC, {"$patch": "bend"}, 500, id="directive"),
        pytest.param(CUSTOM, patches.STRATEGIC, {}, 415, id="strategic for a custom kind"),
        pytest.param(POD, patches.JSON_PATCH, {}, 400, id="no list"),
        pytest.param(POD, patches.JSON_PATCH, ["x"], 422, id="no operation"),
        pytest.param(POD, patches.JSON_PATCH, [{"op": "bend", "path": "/a"}], 422, id="unknown"),
        pytest.param(
            POD, patches.JSON_PATCH, [{"op": "replace", "path": "", "value": 1}], 422, id="all"
        ),
        pytest.param(
            POD,
            patches.JSON_PATCH,
            [{"op": "test", "path": "", "value": 1}] * 10_001,
            413,
            id="many",
        ),
    ],
)
def test_patches_that_cannot_be_applied(
    kind: kinds.Kind, media: str, patch: Any, code: int
) -> None:
    with pytest.raises(api_errors.FailureError) as caught:
        patches.patched(kind, media, CURRENT, patch)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("media", "body"), [(patches.MERGE, b"{"), (patches.APPLY, b"a: [")], ids=["json", "yaml"]
)
def test_bodies_that_cannot_be_read(media: str, body: bytes) -> None:
    with pytest.raises(api_errors.FailureError, match="error decoding patch"):
        patches.decode(media, body)


VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_merging_twice_is_merging_once(current: Any, patch: Any) -> None:
    once = patches.merged(current, patch)
    assert patches.merged(once, patch) == once
    assert patches.merged(current, {}) == (current if isinstance(current, dict) else {})
