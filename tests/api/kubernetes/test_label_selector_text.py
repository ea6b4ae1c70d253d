"""Label selectors as `-l` takes them."""

import pytest

from api.kubernetes import label_selector_text, selectors

LABELS = {"team": "a", "tier": "web", "a.b/c": "1"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", True),
        ("team=a", True),
        ("team==a,tier = web", True),
        ("team!=a", False),
        ("absent!=a", True),
        ("tier in (web, db)", True),
        ("tier notin (web,db),team=a", False),
        ("team,!absent", True),
        ("!team", False),
        ("team=", False),
        ("a.b/c=1", True),
    ],
    ids=str,
)
def test_a_selector_means_these_labels(text, meant):
    assert label_selector_text.matches(label_selector_text.parse(text), LABELS) is meant


@pytest.mark.parametrize("text", ["a b", "team=(", "=a", "a=b=c", "tier in web"], ids=str)
def test_what_is_no_selector_is_named(text):
    with pytest.raises(selectors.SelectorError, match="unable to parse requirement"):
        label_selector_text.parse(text)
