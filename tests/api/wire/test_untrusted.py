"""JSON texts of tenants are read within bounds."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import annotations
from api.wire import base, untrusted
from tests import processor_time

KEY = names.ANNOTATION_RESOURCE_STATUS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("[" * 3000 + "]" * 3000, "nested more than 32 levels", id="deep arrays"),
        pytest.param('{"a":' * 40 + "1" + "}" * 40, "nested more than 32 levels", id="objects"),
        pytest.param("[" * 60_000, "nested more than 32 levels", id="never closed"),
        pytest.param('"' + "x" * 70_000 + '"', "more than the 65536", id="long"),
        pytest.param("[" + "1," * 5000 + "1]", "more than the 4096 entries", id="many entries"),
        pytest.param('{"a":1', "not JSON", id="cut short"),
        pytest.param("", "not JSON", id="empty"),
        pytest.param("]" * 100, "not JSON", id="closed only"),
        pytest.param('"\ud800"', "not JSON", id="lone surrogate"),
        pytest.param("[]", "Expected `object`", id="another shape"),
    ],
)
def test_what_cannot_be_read_says_why(text, reason):
    with pytest.raises(untrusted.ReadError, match=f"annotation a: .*{reason}"):
        untrusted.decode(text, dict, "annotation a")


def test_brackets_in_strings_are_not_levels():
    text = '{"a":"' + "[{" * 500 + '\\"' + '"}'
    assert untrusted.parsed(text, "a") == {"a": "[{" * 500 + '"'}


@pytest.mark.parametrize(
    "payload", [one for one in vars(annotations).values() if isinstance(one, annotations.Payload)]
)
@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, '{"x":' + "[" * 900 + "]" * 900 + "}"])
def test_no_annotation_raises_anything_but_a_read_error(payload, text):
    with pytest.raises(base.ReadError, match="nested"):
        payload.read({payload.key: text})


@given(st.text(max_size=60) | st.text(alphabet='[]{}",:1a\\ ', max_size=400))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(untrusted.ReadError):
        untrusted.parsed(text, "annotation a")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "[]," * 4000 + "[]]", id="brackets"),
        pytest.param("[" + "{}," * 4000 + "1" * 50_000 + "]", id="a long number"),
        pytest.param('{"' + '\\"' * 30_000 + '":[]}', id="escapes"),
        pytest.param(('"' + "[" * 33) * 1900, id="strings that never end"),
        pytest.param("[" * 33 + '"' + '\\"' * 30_000, id="quotes in a string that never ends"),
        pytest.param("[" * 33 + '"' + '\\"' * 30_000 + "\\", id="a string that ends in an escape"),
    ],
)
def test_a_text_within_bounds_is_read_or_refused_fast(text):
    with processor_time.below(0.02), contextlib.suppress(untrusted.ReadError):
        untrusted.parsed(text, "a")
