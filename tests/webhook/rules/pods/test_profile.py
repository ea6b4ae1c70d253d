"""Which profiles apply to a pod, in which order, and what they refuse."""

from typing import Any

import pytest

from api import names
from api.koordinator import colocation
from tests import builders
from webhook import review
from webhook.rules.pods import profile

CLASSES = {"koord-batch": review.PriorityClass("koord-batch", 5000, "Never")}


def _picture(*profiles: dict[str, Any], draw: int = 0, **more: Any) -> review.Picture:
    return review.Picture(
        profiles=tuple(colocation.read_profile(raw) for raw in profiles),
        namespaces=more.get("namespaces", {"default": {"team": "a"}}),
        priority_classes=CLASSES,
        draw=lambda _: draw,
    )


def _apply(picture: review.Picture, **labels: str) -> profile.Outcome | review.Refusal:
    pod = builders.a_pod(labels=labels)
    return profile.apply(review.Review("CREATE", "default", pod), picture)


def _applied(picture: review.Picture, **labels: str) -> tuple[str, ...]:
    outcome = _apply(picture, **labels)
    assert isinstance(outcome, profile.Outcome)
    return outcome.applied


SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("spec", "labels", "matches"),
    [
        ({}, {}, True),
        ({"selector": SELECTOR}, {"app": "web"}, True),
        ({"selector": SELECTOR}, {"app": "db"}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, {}, False),
        (
            {"namespaceSelector": {"matchLabels": {"team": "a"}}, "selector": SELECTOR},
            {"app": "db"},
            False,
        ),
    ],
    ids=["no selector", "pod", "other pod", "namespace", "other namespace", "one of two"],
)
def test_both_selectors_must_match(
    spec: dict[str, Any], labels: dict[str, str], matches: bool
) -> None:
    found = _applied(_picture(builders.a_profile("p", **spec)), **labels)
    assert found == (("p",) if matches else ())


@pytest.mark.parametrize(
    ("probability", "draw", "applies"),
    [
        (0, 0, False),
        ("0%", 0, False),
        (100, 99, True),
        (None, 99, True),
        ("30%", 30, True),
        ("30%", 31, False),
        (30, 0, True),
        pytest.param(f"{'9' * 5000}%", 99, True, id="more digits than are read"),
    ],
)
def test_lots_are_drawn(probability: int | str | None, draw: int, applies: bool) -> None:
    spec = {} if probability is None else {"probability": probability}
    picture = _picture(builders.a_profile("p", **spec), draw=draw)
    assert _applied(picture) == (("p",) if applies else ())


def test_resources_stay_where_no_profile_is_applied() -> None:
    off = builders.a_profile("p", probability=0)
    outcome = _apply(_picture(off))
    assert isinstance(outcome, profile.Outcome)
    assert (outcome.applied, outcome.rewrite) == ((), False)
    drawn = _apply(_picture(off, builders.a_profile("q", probability="30%"), draw=30))
    assert isinstance(drawn, profile.Outcome)
    assert (drawn.applied, drawn.rewrite) == (("q",), True)
    left = _apply(_picture(builders.a_profile("q", probability="30%"), draw=31))
    assert isinstance(left, profile.Outcome)
    assert (left.applied, left.rewrite) == ((), False)


def test_profiles_apply_by_name_and_later_ones_see_earlier_ones() -> None:
    first = builders.a_profile("a", qosClass="LS")
    first["spec"]["labels"] = {"tier": "x"}
    picture = _picture(builders.a_profile("b", labelSuffixes={"tier": "-b"}), first)
    outcome = _apply(picture, tier="old")
    assert isinstance(outcome, profile.Outcome)
    assert outcome.applied == ("a", "b")
    labels = outcome.pod["metadata"]["labels"]
    assert labels["tier"] == "x-b"
    assert labels[names.LABEL_QOS] == "LS"


def test_the_priority_class_brings_its_value_and_preemption() -> None:
    outcome = _apply(_picture(builders.a_profile("p", priorityClassName="koord-batch")))
    assert isinstance(outcome, profile.Outcome)
    spec = outcome.pod["spec"]
    assert spec["priorityClassName"] == "koord-batch"
    assert (spec["priority"], spec["preemptionPolicy"]) == (5000, "Never")


def test_a_missing_class_refuses_and_names_the_profile() -> None:
    refusal = _apply(_picture(builders.a_profile("p", priorityClassName="nobody")))
    assert isinstance(refusal, review.Refusal)
    assert refusal.message.startswith("ClusterColocationProfile p: spec.priorityClassName")


def test_one_profile_may_keep_resources_as_they_are() -> None:
    keep = builders.a_profile(
        "keep", annotations={names.ANNOTATION_SKIP_UPDATE_RESOURCES: "true"}, probability=0
    )
    outcome = _apply(_picture(keep, builders.a_profile("other")))
    assert isinstance(outcome, profile.Outcome)
    assert not outcome.rewrite


def test_an_unknown_namespace_counts_as_a_match() -> None:
    spec = {"namespaceSelector": {"matchLabels": {"team": "b"}}}
    picture = _picture(builders.a_profile("p", **spec), namespaces={})
    assert _applied(picture) == ("p",)


def test_the_pod_that_was_sent_does_not_change() -> None:
    pod = builders.a_pod(labels={"app": "web"})
    before = repr(pod)
    spec = {"labelSuffixes": {"app": "-x"}, "patch": {"spec": {"schedulerName": "s"}}}
    profile.apply(
        review.Review("CREATE", "default", pod), _picture(builders.a_profile("p", **spec))
    )
    assert repr(pod) == before
