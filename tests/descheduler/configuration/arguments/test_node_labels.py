"""Selectors as `kubectl --selector` takes them."""

import pytest

from descheduler.configuration.arguments import node_labels

A, B, NONE = {"pool": "a"}, {"pool": "b", "spot": ""}, {}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        pytest.param("", [A, B, NONE], id="everything"),
        pytest.param("pool=a", [A], id="equal"),
        pytest.param("pool == a", [A], id="equal twice"),
        pytest.param("pool!=a", [B, NONE], id="not equal"),
        pytest.param("pool in (a, b),!spot", [A], id="in and absent"),
        pytest.param("pool notin (a,b)", [NONE], id="not in"),
        pytest.param("spot", [B], id="present"),
        pytest.param("spot=", [B], id="empty value"),
    ],
)
def test_requirements_are_read(text, selected):
    found = node_labels.parse(text)
    assert [labels for labels in (A, B, NONE) if found.matches(labels)] == selected


@pytest.mark.parametrize(
    "text", ["a b", "pool in a", "=a", "a=b=c", ",", "a=b,", "-=x", "a=-", "in (a)", "(" * 5000]
)
def test_everything_else_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"pool in \(a,b\)|characters are more than"):
        node_labels.parse(text)
