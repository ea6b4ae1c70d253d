"""What is found wrong with a ClusterColocationProfile."""

import pytest

from api.koordinator import colocation
from domain.pods import profile_checks, profile_effects

CLASSES = {
    name: profile_effects.PriorityClass(name, value)
    for name, value in (("koord-batch", 5500), ("koord-prod", 9500))
}


def profile(name="a", **spec):
    return colocation.read_profile({"metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"labels": {"a b": "c"}}, "spec.labels"),
        ({"labels": {"a": "c d"}}, "spec.labels"),
        ({"annotations": {"a b": "c"}}, "spec.annotations"),
        ({"labelSuffixes": {"a": "!"}}, "spec.labelSuffixes"),
        ({"patch": {"spec": {"containers": 3}}}, "spec.patch"),
    ],
    ids=["key", "value", "annotation", "suffix", "patch"],
)
def test_what_no_pod_can_be_given_is_a_fault(spec, field):
    (fault,) = profile_checks.faults(profile(**spec), CLASSES)
    assert fault.startswith(field)


def test_a_profile_that_pods_can_follow_has_no_faults():
    fine = profile(qosClass="BE", priorityClassName="koord-batch", labels={"a": "b"})
    assert list(profile_checks.faults(fine, {})) == []
    assert profile_checks.missing_class(fine, CLASSES) == ""
    assert profile_checks.contradiction(fine, CLASSES) == ""
    assert "koord-batch" in profile_checks.missing_class(fine, {})
    online = profile(qosClass="BE", priorityClassName="koord-prod")
    assert "cannot be used in combination" in profile_checks.contradiction(online, CLASSES)


NARROW = {"selector": {"matchLabels": {"app": "x", "tier": "y"}}, "qosClass": "BE"}
LATER = {
    "wider": ({"selector": {"matchLabels": {"app": "x"}}, "qosClass": "LS"}, True),
    "all pods": ({"qosClass": "LS"}, True),
    "the same value": ({"qosClass": "BE"}, False),
    "another field": ({"schedulerName": "s"}, False),
    "other pods": ({"selector": {"matchLabels": {"app": "z"}}, "qosClass": "LS"}, False),
    "some of the pods": (
        {"selector": {"matchLabels": {"app": "x", "zone": "z"}}, "qosClass": "LS"},
        False,
    ),
    "some namespaces": (
        {"namespaceSelector": {"matchLabels": {"a": "b"}}, "qosClass": "LS"},
        False,
    ),
    "by chance": ({"qosClass": "LS", "probability": 50}, False),
}


@pytest.mark.parametrize(("spec", "overrides"), LATER.values(), ids=LATER)
def test_a_later_profile_that_selects_all_the_pods_prevails(spec, overrides):
    field = "metadata.labels[koordinator.sh/qosClass]"
    found = list(profile_checks.overridden(profile(**NARROW), [profile("b", **spec)]))
    assert found == ([(field, "LS", "b")] if overrides else [])
    # Applied before, it loses.
    assert not list(profile_checks.overridden(profile("c", **NARROW), [profile("b", **spec)]))


def test_expressions_are_compared_as_they_are_written():
    demand = {"key": "app", "operator": "In", "values": ["x", "y"]}
    narrow = profile(selector={"matchExpressions": [demand]}, labels={"a": "1"})
    same = profile("b", selector={"matchExpressions": [demand]}, labels={"a": "2"})
    other = {**demand, "values": ["x"]}
    stricter = profile("b", selector={"matchExpressions": [demand, other]}, labels={"a": "2"})
    assert list(profile_checks.overridden(narrow, [same, stricter])) == [
        ("metadata.labels[a]", "2", "b")
    ]
