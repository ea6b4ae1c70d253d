"""The story of a pod from what was read about it, whatever is missing."""

import json

import pytest

from api import names
from cli.explain import stories
from cli.explain.pod import pod_facts, pod_story
from tests import builders

BATCH = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
CHANGES = {
    "profiles": {"night": {"labels": {names.LABEL_QOS: [None, "BE"]}}},
    "resources": [names.BATCH_CPU],
    "renamed": {"kubernetes.io/gpu": "koordinator.sh/gpu"},
    "tree": "east",
}
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
GROUP = {
    "plugin": "LoadAware",
    "reason": "node cpu usage exceeds the load-aware threshold",
    "count": 7,
    "nodes": [f"n{number}" for number in range(7)],
    "nearest": {"node": "n3", "figures": "cpu: 1 of 2", "wouldHelp": ["one", "two"]},
}
PAGE = {"present": {"asked": 7, "passed": 0, "groups": [GROUP]}}


def pod(message="", **more):
    raw = builders.a_pod("p", **more)
    if message:
        raw["status"]["conditions"] = [REFUSED | {"message": message}]
    return raw


def event(reason, message, kind="Pod", name="p"):
    return {
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "name": name},
    }


def told(raw=None, **facts):
    found = pod_story.told(pod_facts.Facts("default/p", raw, **facts))
    return found, "\n".join(stories.lines(found))


def test_who_changed_it_and_how():
    notes = {names.ANNOTATION_PROFILES: "night,day", names.ANNOTATION_CHANGES: json.dumps(CHANGES)}
    _, text = told(pod(labels=BATCH, annotations=notes, requests={names.BATCH_CPU: "2k"}))
    assert (
        "ClusterColocationProfile night matched it and changed it: labels[koordinator.sh/qosClass] "
        "from nothing to BE." in text
    )
    assert "ClusterColocationProfile day matched it and changed it." in text
    assert f"was turned into {names.BATCH_CPU}, which nodes lend." in text
    assert (
        "Retired names of resources were replaced: kubernetes.io/gpu by koordinator.sh/gpu." in text
    )
    assert "pinned to the nodes of quota tree east." in text
    assert "It counts as BE in band koord-batch and asks for 2 batch cores." in text


@pytest.mark.parametrize("text", ["{", "[]", '{"profiles": 7, "resources": "x", "renamed": []}'])
def test_a_record_that_cannot_be_read_is_left_out(text):
    notes = {names.ANNOTATION_PROFILES: "night", names.ANNOTATION_CHANGES: text}
    _, story = told(pod(annotations=notes))
    assert "ClusterColocationProfile night matched it and changed it." in story


def test_what_slipped_past_admission_or_contradicts_itself():
    raw = pod(labels={names.LABEL_QOS: "LSR"}, requests={"cpu": "1500m"}, priority=9500)
    _, text = told(raw, events=[event("AdmissionMissed", "schedulerName is not 's'")])
    assert "Admission has not seen it as it should have: schedulerName is not 's'." in text
    assert '"1500m": LSR binds CPUs: request a whole number of them.' in text


def test_a_priority_above_all_bands_protects_nothing_without_requests():
    _, text = told(pod(requests={}, priority=100_000))
    assert "Its priority of 100000 makes it the last to be evicted; without requests" in text


def test_a_quota_that_cannot_be_looked_up_is_named():
    labels = {names.LABEL_QUOTA_NAME: "team-a"}
    found, text = told(pod(labels=labels, gates=[names.GATE_QUOTA]))
    assert found.verdict == f"Pod default/p waits behind {names.GATE_QUOTA}."
    assert "It names quota team-a; quotas could not be read." in text
    assert f"Its gates keep every scheduler from trying it: {names.GATE_QUOTA}." in text


def test_refusals_are_grouped_with_the_nearest_miss_and_its_remedies():
    found, text = told(pod("0/9 nodes are available: 9 x. preemption: none"), page=PAGE)
    assert found.verdict == "Pod default/p waits: all 7 nodes that were asked refuse it."
    assert "Scheduler default-scheduler says: 0/9 nodes are available: 9 x." in text
    assert f"7 refused: {GROUP['reason']} (n0, n1, n2, n3, n4 and 2 more)." in text
    assert "The nearest miss is n3: cpu: 1 of 2." in text
    assert found.helps == ("one", "two")
    assert pod_facts.nearest(pod_facts.Facts("default/p", pod(), page=PAGE)) == "n3"


def test_a_pod_that_fits_by_now_is_said_to_be_woken():
    page = {"present": {"asked": 7, "passed": 2, "groups": [GROUP]}}
    _, text = told(pod("0/9"), page=page)
    assert "2 of 7 would take it now; it is woken soon." in text


PLANNED = {
    "planned": True, "node": "n1", "leaving": [], "violatedBudgets": 0, "sentence": "",
    "victims": ["a/x", "b/y"], "priorities": [5, 1],
}  # fmt: skip
PREEMPTIONS = {
    "whom it would evict": (
        PLANNED, "The extender would evict a/x (priority 5), b/y (priority 1) for it, for node n1.",
    ),
    "whom it would wait for": (
        PLANNED | {"victims": [], "priorities": [], "leaving": ["a/x"]},
        "The extender would wait for a/x to end for it, for node n1.",
    ),
    "a budget forbids": (
        PLANNED | {"violatedBudgets": 1}, "though disruption budgets refuse some of that now.",
    ),
    "many": (
        PLANNED | {"victims": [f"a/{n}" for n in range(7)], "priorities": [0] * 7},
        "a/4 (priority 0) and 2 more for it",
    ),
    "why nobody": (
        {"planned": False, "victims": [], "sentence": "no victims would help: GPUs"},
        "The extender would evict no pod for it: no victims would help: GPUs.",
    ),
    "who is leaving": (
        PLANNED | {"underWay": {"node": "n2", "victims": 2, "until": "12:00",
                                "victimsHaveLeft": False}},
        "It waits for 2 pods to leave. Its place on n2 is kept until 12:00.",
    ),
    "who has left": (
        PLANNED | {"underWay": {"node": "n2", "victims": 1, "until": "12:00",
                                "victimsHaveLeft": True}},
        "Its victims have left n2, where its place is kept until 12:00.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), PREEMPTIONS.values(), ids=PREEMPTIONS)
def test_who_leaves_for_it_or_would(found, expected):
    _, text = told(pod("0/9"), page=PAGE | {"preemption": found})
    assert expected in text


def test_without_the_extender_its_last_event_speaks():
    found, text = told(pod("0/9"), events=[event("NodesRefused", "a: too hot")])
    assert found.verdict == "Pod default/p waits: no node takes it."
    assert "The extender said: a: too hot." in text


def test_nobody_has_tried_it_yet():
    found, text = told(pod())
    assert found.verdict == "Pod default/p waits for a node."
    assert "Scheduler default-scheduler has not said anything about it yet." in text


@pytest.mark.parametrize(
    ("placement", "sentence"),
    [
        ("", "default-scheduler or another scheduler placed it; the extender did not."),
        ("{", "default-scheduler or another scheduler placed it; the extender did not."),
        (
            '{"at": "now", "reasons": ["BatchFit: passed"], "granted": {"BatchFit": {"cpu": "2"}}}',
            "The extender bound it at now: BatchFit: passed.",
        ),
    ],
)
def test_where_it_is_and_by_whom(placement, sentence):
    notes = {names.PLACEMENT: placement} if placement else {}
    raw = pod(node="n1", annotations=notes)
    lending = {"node": "n1", "sentence": "lends 2 cores"}
    found, text = told(raw, lending=lending)
    assert found.verdict == "Pod default/p is on node n1."
    assert sentence in text
    assert "Node n1 lends 2 cores." in text
    assert pod_facts.nearest(pod_facts.Facts("default/p", raw)) == "n1"


def total(node, fit, points):
    plugins = [
        {"plugin": "NodeResourcesFit", "points": fit},
        {"plugin": "Extender", "points": points},
    ]
    return {"node": node, "total": fit + points, "plugins": plugins}


DECISIONS = {
    "the runner-up is told": (
        {"chosen": total("n1", 700, 50), "runnerUp": total("n2", 600, 0), "ties": 1},
        (
            "Filter chose it among 3 nodes by the total of 750 points (NodeResourcesFit 700,"
            " Extender 50). The runner-up, n2, had 600 points (NodeResourcesFit 600, Extender 0)."
        ),
    ),
    "equals are told": (
        {"chosen": total("n1", 700, 0), "runnerUp": total("n2", 700, 0), "ties": 2},
        "2 nodes had it, among them n2; one was drawn.",
    ),
    "what was left is told": (
        {"leftToScheduler": "the pod has resource claims"},
        "The extender left the choice among nodes to kube-scheduler: the pod has resource claims.",
    ),
}


@pytest.mark.parametrize(("decision", "sentence"), DECISIONS.values(), ids=DECISIONS)
def test_how_the_total_came_about(decision, sentence):
    raw = pod(node="n1", annotations={names.PLACEMENT: '{"at": "now"}'})
    page = {"decision": {"candidates": 3} | decision}
    found, text = told(raw, page=page)
    assert sentence in " ".join(text.split())
    assert found.chapters


def test_an_ended_pod_is_said_to_have_ended():
    found, _ = told(pod(node="n1", phase="Succeeded"))
    assert found.verdict == "Pod default/p has ended (Succeeded)."


def test_a_pod_that_its_owner_could_not_create():
    message = (
        'Error creating: admission webhook "vpod.koordinator.sh" denied the request: '
        "cpu: request a whole number"
    )
    creations = [
        event("FailedCreate", message, "ReplicaSet", "web"),
        event("FailedCreate", "quota is full", "ReplicaSet", "other"),
    ]
    found = pod_story.told(pod_facts.Facts("default/web-x7", creations=creations))
    text = "\n".join(stories.lines(found))
    assert found.verdict == "There is no pod default/web-x7: it could not be created."
    assert not found.found
    assert "ReplicaSet web could not create it:" in text
    assert "Webhook vpod.koordinator.sh refused it: cpu: request a whole number." in text
    assert "quota is full" not in text


def test_a_pod_that_admission_refused_lately():
    answers = [
        {"at": "then", "result": "changed", "reasons": []},
        {"at": "now", "result": "refused", "reasons": ["cpu: no", "memory: no"]},
        {"at": "later", "result": "refused", "reasons": ["cpu: no"], "dryRun": True},
    ]
    found, text = told(reviews={"answers": answers})
    assert found.verdict == "There is no pod default/p: it could not be created."
    assert "refused it at now when it was to be created: cpu: no; memory: no." in text
    assert "refused it at later when it was tried: cpu: no." in text
    assert found.helps[0].startswith("the change that the message names, in the pod")


def test_a_pod_that_was_only_tried():
    found, text = told(trial="no such class")
    assert found.verdict == "Pod default/p would be refused at admission."
    assert "no such class." in text
    found, _ = told(pod(), trial="")
    assert found.verdict == "Pod default/p would be accepted; it was only tried."


def test_sources_are_told_with_what_could_not_be_reached():
    reached = stories.Source("events", True)
    missed = stories.Source("manager", False, "timed out")
    made = stories.Story("s", "v", sources=(reached, missed))
    assert list(stories.lines(made)) == [
        "v", "", "Read", "  events", "", "Not reached", "  manager: timed out",
    ]  # fmt: skip
    assert stories.document(made)["sources"][1]["note"] == "timed out"
