"""Selectors that no label can match are refused in every kind that has one."""

import pytest

from api import resources
from webhook import kinds, review

PICTURE = review.Picture((), {}, {}, lambda _: 0)
P = resources.COLOCATION_PROFILES
TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
OWNERS = [{"labelSelector": {"matchLabels": {"app": "a"}}}]

REFUSED = {
    "key of a selector": (
        P,
        {"selector": {"matchLabels": {"a b": "c"}}},
        'spec.selector.matchLabels: Invalid value: "a b"',
    ),
    "value of a selector": (
        P,
        {"namespaceSelector": {"matchLabels": {"a": "c d"}}},
        'spec.namespaceSelector.matchLabels[a]: Invalid value: "c d"',
    ),
    "key of an expression": (
        P,
        {"selector": {"matchExpressions": [{"key": "/a", "operator": "Exists"}]}},
        'spec.selector.matchExpressions[0].key: Invalid value: "/a"',
    ),
    "value of an expression": (
        P,
        {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "-"]}]}},
        'spec.selector.matchExpressions[0].values[1]: Invalid value: "-"',
    ),
    "selector of an owner": (
        resources.RESERVATIONS,
        {"template": TEMPLATE, "owners": [*OWNERS, {"labelSelector": {"matchLabels": {"a": "-"}}}]},
        "spec.owners[1].labelSelector.matchLabels[a]",
    ),
    "selector of nodes": (
        resources.ELASTIC_QUOTA_PROFILES,
        {"quotaName": "q", "nodeSelector": {"matchLabels": {"a": "-"}}},
        "spec.nodeSelector.matchLabels[a]",
    ),
    "selector of a recommendation": (
        resources.RECOMMENDATIONS,
        {"target": {"type": "podSelector", "podSelector": {"matchLabels": {"a": "-"}}}},
        "spec.target.podSelector.matchLabels[a]",
    ),
}


def refusal(kind, spec, old=None):
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    before = None if old is None else {**body, "spec": old}
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(
        operation, "default", {**body, "spec": spec}, before, resource=(kind.group, kind.plural)
    )
    return kinds.validate(asked, PICTURE).refusal


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_keys_and_values_that_no_label_has_are_refused(case):
    kind, spec, field = case
    found = refusal(kind, spec)
    assert found is not None
    assert any(field in reason for reason in found.reasons), found.reasons


def test_a_selector_that_was_stored_before_holds_up_no_update():
    spec = {"selector": {"matchLabels": {"a": "-"}}}
    assert refusal(P, {**spec, "qosClass": "BE"}, old=spec) is None
