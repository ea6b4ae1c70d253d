"""The story of a gang: members, places, what it waits for, how it would fit, how it ended."""

import pytest

from api import names
from cli.explain import gang_story, gang_trial, stories
from cli.explain.pod import pod_facts, scheduling_layer
from tests import builders
from tests.cli.gangs.test_cluster import (
    a_member,
    a_pod_group,
    in_group,
    listing,
    planned,
    recent,
    told,
)
from tests.cli.placement import clusters

NODES = [builders.a_node("n1", cpu="8"), builders.a_node("n2", cpu="8")]


def story(*objects, name="default/g", events=()):
    facts = gang_trial.facts(clusters.snapshot(*objects), name)
    if events:
        facts = gang_story.dataclasses.replace(facts, events=events)
    return gang_story.told(facts)


def chapter(found, name):
    return "\n".join(one for each in found.chapters if each.name == name for one in each.sentences)


@pytest.mark.parametrize(
    ("objects", "verdict"),
    [
        pytest.param([a_member("a")], "Gang default/g waits for 1 of 2 members.", id="incomplete"),
        pytest.param(
            [a_member("a"), told(a_member("b"), "there is room for 1 of 2 members")],
            "Gang default/g waits: there is room for 1 of 2 members.",
            id="no room",
        ),
        pytest.param(
            [recent("a"), recent("b")],
            "Gang default/g is planned and being bound; its pods have no gates, so each shows its "
            "place once bound.",
            id="planned without gates",
        ),
        pytest.param(
            [recent("a"), listing("b", "a")],
            "Gang default/g has a plan: 1 member has a place, 1 of 2 members is bound (minimum 2).",
            id="a Binding lists the other",
        ),
        pytest.param(
            [planned("a"), planned("b")],
            "Gang default/g has a plan: 2 members have a place, 0 of 2 members are bound "
            "(minimum 2).",
            id="planned",
        ),
        pytest.param(
            [a_member("a", node="n1", phase="Running"), a_member("b", node="n2")],
            "Gang default/g is bound: 2 of 2 members are bound (minimum 2).",
            id="bound",
        ),
        pytest.param(
            [a_member("a", node="n1", phase="Running"), a_member("b", phase="Failed")],
            "Gang default/g is below its minimum of 2: 1 of 1 member is bound.",
            id="below",
        ),
        pytest.param(
            [a_member("a", phase="Succeeded"), a_member("b", phase="Failed")],
            "Gang default/g has ended: 1 member has succeeded, 1 has failed.",
            id="ended",
        ),
        pytest.param(
            [a_pod_group()],
            "Gang default/g has a PodGroup with a minimum of 2 and no pods yet.",
            id="empty",
        ),
    ],
)
def test_the_verdict_says_how_it_is_doing(objects, verdict):
    found = story(*NODES, *objects)
    assert found.found
    assert found.verdict == verdict


def test_a_gang_that_does_not_exist_names_those_that_are_near():
    found = story(a_member("a", gang="train"), name="default/trai")
    assert not found.found
    assert found.verdict == "There is no gang default/trai among 1; there are default/train."


def test_members_that_wait_and_the_tightest_of_them():
    members = [a_member(f"m{i}", "5") for i in range(5)]
    found = story(*NODES, *members)
    assert "5 wait: default/m0, default/m1" in chapter(found, "members")
    waits = chapter(found, "what it waits for")
    assert "No gang is before it in line." in waits
    assert "Its first waiting member was created at 2026-07-01T11:58:30Z, 1m30s ago." in waits
    tried = chapter(found, "as things are now")
    assert "does not fit: 4 of 5 members find a node on 2 nodes, 5 have to." in tried
    assert "The tightest member is default/m4:\n  2 nodes by kube-scheduler: Insufficient cpu" in (
        tried
    )
    assert found.helps[0] == "a minimum of 4 members of gang default/g instead of 5"
    assert any("more node" in one for one in found.helps)


def test_a_gang_behind_others_in_line_that_would_fit():
    first = a_member("a", "1", gang="first")
    first["spec"]["priority"] = 9
    found = story(*NODES, first, a_member("b"), a_member("c"))
    waits = chapter(found, "what it waits for")
    assert "It is complete and has place 2 of 2 in line." in waits
    assert "Before it in line: default/first." in waits
    assert "Gang default/g fits: 2 of 2 members" in chapter(found, "as things are now")


def test_the_nodes_of_a_plan_and_how_long_they_are_kept():
    found = story(*NODES, planned("a"), planned("b"))
    assert "2 have a place: default/a on n7, default/b on n7." in chapter(found, "members")
    assert "By node: n7 (2)." in chapter(found, "members")
    assert "The places of its plan are kept for 1m0s more." in chapter(found, "what it waits for")
    assert chapter(found, "as things are now") == ""


def test_how_it_is_declared_and_with_whom_it_starts():
    both = '["default/g", "default/h", "default/none"]'
    notes = {
        names.ANNOTATION_GANG_GROUPS: both, names.ANNOTATION_GANG_MODE: "NonStrict",
        names.ANNOTATION_GANG_REPAIR: "restart",
        names.ANNOTATION_GANG_NETWORK_TOPOLOGY:
            '{"gatherStrategy": [{"layer": "Spine", "strategy": "MustGather"}]}',
    }  # fmt: skip
    found = story(
        *NODES, a_pod_group(**notes), a_pod_group("h", **notes), in_group("a"), in_group("b"),
        in_group("c", gang="h"),
    )  # fmt: skip
    declared = chapter(found, "how it is declared")
    for text in (
        "from its PodGroup: at least 2 members start together.",
        "Match policy once-satisfied: once",
        "Mode NonStrict: when one member finds no node, the others keep",
        "waits 10m0s for the others",
        "Repair restart: when members are lost, the others are evicted",
        "In the network: within one Spine.",
        "Its PodGroup has phase Scheduling.",
    ):
        assert text in declared
    group = chapter(found, "its group")
    assert "Gang default/h starts together with it: Waiting, 1 member, at least 2." in group
    assert "It waits for gang default/none, which does not exist." in group


def test_events_conditions_and_problems():
    group = a_pod_group()
    group["status"]["conditions"] = [
        {"type": "Quorum", "status": "False", "reason": "BelowMinimum", "message": "1 of 2 pods"}
    ]
    event = {"type": "Warning", "reason": "GangBelowQuorum", "message": "gang lost pods"}
    found = story(
        group, in_group("a", node="n1", phase="Running"), *NODES, events=[event],
    )  # fmt: skip
    happened = chapter(found, "what happened")
    assert "Condition Quorum of its PodGroup is False: BelowMinimum: 1 of 2 pods." in happened
    assert "Event GangBelowQuorum: gang lost pods." in happened
    assert "Gang default/g ran and has 1 of 2 members left." in chapter(found, "problems")


def test_a_gang_that_cannot_be_tried_says_why():
    found = story(*NODES, a_member("a", "9999"), a_member("b", "9999"))
    assert "koord simulate gang default/g tries whether it would fit." in chapter(
        found, "as things are now"
    )
    found = story(*NODES, in_group("a"))
    assert "It cannot be tried: gang default/g states no minimum" in chapter(
        found, "as things are now"
    )


def test_lines_and_document():
    found = story(*NODES, a_member("a"), a_member("b"))
    assert next(iter(stories.lines(found))).startswith("Gang default/g is complete and has place 1")
    document = stories.document(found)
    assert document["subject"] == "gang default/g"
    (tried,) = [one for one in document["chapters"] if one["name"] == "as things are now"]
    assert tried["figures"]["fits"]


@pytest.mark.parametrize(
    ("event", "concerns"),
    [
        pytest.param({"involvedObject": {"kind": "PodGroup", "name": "g"}}, True, id="its object"),
        pytest.param({"involvedObject": {"kind": "PodGroup", "name": "h"}}, False, id="another"),
        pytest.param({"regarding": {"kind": "Pod", "name": "a"}}, True, id="a member"),
        pytest.param({"involvedObject": {"kind": "Pod", "name": "x"}}, False, id="another pod"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_which_events_are_about_a_gang(event, concerns):
    assert gang_trial.concerns(event, "g", {"a"}) is concerns


def test_the_story_of_a_member_says_what_its_gang_waits_for():
    member = told(a_member("a"), "is complete and has place 3 of 4 in line")
    member["spec"]["schedulingGates"] = [{"name": names.GATE_GANG}]
    facts = pod_facts.Facts("default/a", member)
    sentences = scheduling_layer.told(facts, pod_facts.read(facts)).sentences
    assert sentences == (
        "Its gates keep every scheduler from trying it: koord.sh/gang.",
        "Its gang default/g says: is complete and has place 3 of 4 in line.",
        "koord explain gang default/g tells the story of its gang.",
    )
