"""Pods and selectors found by labels, against asking everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from descheduler.framework.pods import pods_alike
from descheduler.model import podinfo
from domain.scoring import terms

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
REQUIREMENTS = st.one_of(
    st.builds(
        terms.Requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES).map(tuple)
    ),
    st.builds(terms.Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(lambda found: terms.Selector(tuple(found)))


def pods(labels):
    return [podinfo.Pod(f"n/{i}", str(i), labels=one) for i, one in enumerate(labels)]


@given(labels=st.lists(LABELS, max_size=5), selector=SELECTORS)
def test_a_selector_selects_the_pods_that_it_matches(labels, selector):
    # Some share their labels, some have equal ones of their own.
    all_pods = pods([*labels, *labels, *map(dict, labels)])
    found = [pod.uid for pod in pods_alike.Alike(all_pods).selected(selector)]
    assert sorted(found) == sorted(pod.uid for pod in all_pods if selector.matches(pod.labels))


@given(labels=LABELS, selectors=st.lists(SELECTORS, max_size=5))
def test_no_selector_that_matches_is_missed_or_named_twice(labels, selectors):
    known = pods_alike.BySelector()
    for number, selector in enumerate(selectors):
        known.add(selector, number)
    candidates = list(known.candidates(labels))
    assert len(candidates) == len(set(candidates))
    matching = {i for i, one in enumerate(selectors) if one.matches(labels)}
    assert matching <= set(candidates)


@pytest.mark.parametrize(
    ("count", "asked"), [(10, 1), (1000, 1)], ids=["ten templates", "a thousand"]
)
def test_only_selectors_that_ask_for_a_label_of_the_pod_are_compared(count, asked):
    known = pods_alike.BySelector()
    for number in range(count):
        known.add(terms.Selector(terms.equalities({"app": str(number)})), number)
    assert len(list(known.candidates({"app": "7"}))) == asked
