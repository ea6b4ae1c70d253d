"""What a ScheduleExplanation asks and what is written into it can be read by its own model."""

import pytest

from api import names
from api.koordinator import explanation
from extender.explain import explanation_status, refusals


def _read(status, **more):
    raw = {"metadata": {"name": "p", "namespace": "d"}, **more, **status}
    return explanation.read_schedule_explanation(raw).status


def _group(plugin="LoadAware", reason="busy", nearest="n1", shortage=0.5, **more):
    return refusals.Group(
        plugin=plugin,
        reason=reason,
        preemption_helps=False,
        count=2,
        nodes=("n1", "n2"),
        nearest=nearest,
        shortage=shortage,
        figures="1 of 2",
        helps=("less load",),
        **more,
    )


def test_a_refusal_by_all_is_told_with_its_groups():
    account = refusals.Account(4, 0, (_group(), _group("BatchFit", "nothing left")))
    read = _read(explanation_status.refused(account, 1782907200.6))
    assert not read.schedulable
    assert read.failed_message == account.sentence()
    assert read.last_update_time == 1782907200
    (domain,) = read.detailed_explanation
    details = domain.schedule_explanation.node_failed_details
    assert [(d.failed_plugin, d.reason, d.failed_nodes) for d in details] == [
        ("BatchFit", "nothing left", ("n1", "n2")),
        ("LoadAware", "busy", ("n1", "n2")),
    ]


def test_a_placed_pod_is_told_where():
    read = _read(explanation_status.placed("d/p", "u", "n7", 1782907200.0))
    assert read.schedulable
    (domain,) = read.detailed_explanation
    (found,) = domain.schedule_explanation.feasible_scheduling_result
    assert (found.namespace, found.name, found.uid, found.node_name) == ("d", "p", "u", "n7")


@pytest.mark.parametrize(
    ("labels", "made_here"), [({names.LABEL_CREATED_BY: "koord-extender"}, True), ({}, False)]
)
def test_questions_are_known_by_what_they_ask(labels, made_here):
    raw = explanation_status.asked("d/p", 3600.0)
    assert raw["spec"]["ttl"] == "1h0m0s"
    raw["metadata"]["labels"] = labels
    found = explanation_status.question(raw)
    assert (found.key, found.pod, found.made_here) == ("d/p", "d/p", made_here)
    assert found.place is None
    assert (found.namespace, found.name) == ("d", "p")


@pytest.mark.parametrize(
    ("status", "place"),
    [
        (explanation_status.placed("d/p", "u", "n7", 0.0), ("u", "n7")),
        ({"status": {"schedulable": True, "detailedExplanation": [{}]}}, ("", "")),
        (explanation_status.displaced(0.0), None),
    ],
    ids=["as it is written here", "written by others", "without a place"],
)
def test_the_place_that_was_told_is_read_again(status, place):
    found = explanation_status.question(explanation_status.asked("d/p", 60.0) | status)
    assert found.place == (place and explanation_status.Place(*place))


def test_what_cannot_be_read_asks_nothing():
    assert explanation_status.question({"metadata": {"name": "x"}, "spec": {"ttl": "soon"}}) is None
