"""Selectors, node affinity and tolerations match as in Kubernetes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes import core, meta, selectors
from api.wire import base
from tests import builders

LABELS = {"app": "web", "tier": "1", "size": "10", "thousand": "1_000"}


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


MATCHES = [
    (None, False),
    ({}, True),
    ({"matchLabels": {"app": "web"}}, True),
    ({"matchLabels": {"app": "web", "x": "y"}}, False),
    ({"matchLabels": None, "matchExpressions": None}, True),
    (expression("app", "In", "api", "web"), True),
    (expression("app", "In", "api"), False),
    (expression("x", "In", "y"), False),
    (expression("app", "NotIn", "api"), True),
    (expression("app", "NotIn", "web"), False),
    (expression("x", "NotIn", "y"), True),
    (expression("app", "Exists"), True),
    (expression("x", "Exists"), False),
    (expression("app", "DoesNotExist"), False),
    (expression("x", "DoesNotExist"), True),
    ({"matchLabels": {"app": "web"}, **expression("app", "NotIn", "web")}, False),
]


@pytest.mark.parametrize(("selector", "expected"), MATCHES)
def test_raw_selectors(selector, expected):
    assert selectors.matches(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("selector", "expected"), [pair for pair in MATCHES if pair[0] is not None]
)
def test_models_match_alike(selector, expected):
    read = base.validated(meta.LabelSelector, selector, "selector")
    assert selectors.matches(read, LABELS) is expected


@pytest.mark.parametrize(("selector", "expected"), MATCHES)
def test_prepared_selectors_match_alike(selector, expected):
    assert selectors.matches(selectors.prepared(selector), LABELS) is expected


EXPRESSIONS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from("abc"),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
)


@given(
    st.lists(EXPRESSIONS, max_size=4),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz")),
    st.dictionaries(st.sampled_from("ad"), st.sampled_from("xyz"), max_size=1),
    st.integers(0, 20),
)
def test_long_selectors_match_alike(expressions, labels, pairs, more):
    absent = [{"key": f"k{at}", "operator": "DoesNotExist"} for at in range(more)]
    selector = {"matchLabels": pairs, "matchExpressions": [*expressions, *absent]}
    assert selectors.matches(selectors.prepared(selector), labels) is selectors.matches(
        selector, labels
    )


class Counted(dict):
    """Labels that count how often they are looked at."""

    looks = 0

    def get(self, key, default=None):
        self.looks += 1
        return super().get(key, default)

    def __contains__(self, key):
        self.looks += 1
        return super().__contains__(key)


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist"])
def test_thousands_of_requirements_are_not_looked_at_for_each_pod(operator):
    written = [{"key": f"k{at}", "operator": operator, "values": ["x"]} for at in range(5000)]
    read, labels = selectors.prepared({"matchExpressions": written}), Counted(LABELS)
    assert selectors.matches(read, labels) is (operator in ("NotIn", "DoesNotExist"))
    assert labels.looks <= len(LABELS)


@pytest.mark.parametrize(
    "odd",
    [
        {"matchExpressions": "x"},
        {"matchExpressions": [1]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [[]]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": "web"}]},
    ],
)
def test_what_is_no_selector_is_prepared_as_it_is(odd):
    assert selectors.prepared(odd) is odd


def test_an_unknown_operator_is_named():
    with pytest.raises(selectors.SelectorError, match='"Like" is unknown; use In'):
        selectors.matches(expression("app", "Like", "w"), LABELS)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({}, False),
        (expression("size", "Gt", "9"), True),
        (expression("size", "Gt", "10"), False),
        (expression("size", "Lt", "11"), True),
        (expression("app", "Gt", "1"), False),
        (expression("size", "Gt", "x"), False),
        (expression("size", "Gt", "+9"), True),
        (expression("size", "Gt", " 9"), False),
        (expression("size", "Gt", "\u0669"), False),
        (expression("size", "Lt", "9223372036854775807"), True),
        (expression("size", "Lt", "9223372036854775808"), False),
        (expression("thousand", "Gt", "9"), False),
        (expression("x", "Lt", "1"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}, False),
    ],
)
def test_node_selector_terms(term, expected):
    assert selectors.matches_term(term, LABELS, {"metadata.name": "n"}) is expected
    assert selectors.matches_any_term([{}, term], LABELS, {"metadata.name": "n"}) is expected


def test_node_affinity_and_selector_of_a_pod():
    node = msgspec.convert(builders.a_node("n", labels={"zone": "a"}), core.Node)
    required = {"nodeSelectorTerms": [expression("zone", "In", "a")]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    for affinity, selector, expected in (
        (None, {}, True),
        ({}, {"zone": "a"}, True),
        ({"nodeAffinity": {key: required}}, {}, True),
        ({"nodeAffinity": {key: required}}, {"zone": "b"}, False),
        ({"nodeAffinity": {key: {"nodeSelectorTerms": []}}}, {}, False),
        (
            {"nodeAffinity": {key: {"nodeSelectorTerms": [expression("zone", "In", "b")]}}},
            {},
            False,
        ),
    ):
        spec = core.PodSpec(affinity=affinity, node_selector=selector)
        assert selectors.matches_node(spec, node) is expected


TAINT = core.Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (core.Toleration(operator="Exists"), True),
        (core.Toleration(key="gpu", operator="Exists"), True),
        (core.Toleration(key="gpu", value="yes"), True),
        (core.Toleration(key="gpu", value="no"), False),
        (core.Toleration(key="gpu", value="yes", effect="NoExecute"), False),
        (core.Toleration(key="cpu", operator="Exists"), False),
        (core.Toleration(value="yes"), False),
    ],
)
def test_tolerations(toleration, expected):
    assert selectors.tolerates(toleration, TAINT) is expected
    assert selectors.tolerated([TAINT], [toleration]) is expected


def test_soft_taints_need_no_toleration():
    assert selectors.tolerated([core.Taint(key="a", effect="PreferNoSchedule")], [])
