"""The preempt verb: whose proposed victims are confirmed, and who leaves besides."""

import json

import pytest

from extender.explain import explanations
from extender.preemption import in_flight, preemption_record
from extender.state import claims
from extender.verbs import request_codec, verbs
from process.configuration import switches
from tests.extender.preemption.victims.slots_stage import NOW, PROTECTED, Stage
from tests.extender.sample_plugin import allocation

SLOTS = allocation.RESOURCE


class Calls(Stage):
    """A cluster that is asked by preempt and filter."""

    def __init__(self, **more):
        super().__init__(**more)
        self.preemptions = in_flight.Preemptions(self.index)
        self.switches = switches.Switches("extender")
        self.verbs = verbs.Verbs(
            self.state,
            self.pipeline,
            self.projector,
            self.switches,
            explanations.Explanations(),
            lambda refused: None,
            request_codec.Reader(self.projector),
            preemptions=self.preemptions,
        )

    def pod(self, name="high", slots=2, priority=100, team="red"):
        requests = {"requests": {SLOTS: str(slots)}}
        return {
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "labels": {allocation.TEAM: team}
            },
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": requests}]},
        }  # fmt: skip

    def preempt(self, proposed, pod=None, violations=0):
        meta = {
            node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
            for node, uids in proposed.items()
        }
        body = {"Pod": pod or self.pod(), "NodeNameToMetaVictims": meta}
        answer = json.loads(self.verbs.preempt(json.dumps(body).encode(), NOW))
        return {
            node: [one["UID"] for one in found["Pods"]]
            for node, found in answer["NodeNameToMetaVictims"].items()
        }

    def filter(self, *names, pod=None):
        body = {"Pod": pod or self.pod(), "Nodes": None, "NodeNames": list(names)}
        return json.loads(self.verbs.filter(json.dumps(body).encode(), NOW))


def test_what_we_do_not_count_is_confirmed_as_proposed():
    calls = Calls(cap=64)
    calls.place("low", 1, team="")
    assert calls.preempt({"n1": ["low"]}) == {"n1": ["low"]}


REFUSED = {
    "marked as not preemptible": {"requirements": {"inputs": PROTECTED}},
    "protected by a guard": {"barrier": "gang/2"},
    "only assumed": {"kind": claims.ClaimKind.ASSUMED},
    "not on that node": {"node": "n2"},
    "of equal priority": {"priority": 100},
}


@pytest.mark.parametrize("more", REFUSED.values(), ids=REFUSED)
def test_a_node_is_dropped_whose_victims_must_not_leave(more):
    calls = Calls(cap=64, nodes=("n1", "n2"))
    calls.place("one", 1, **{"priority": 10} | more)
    calls.place("other", 1, node="n2")
    assert calls.preempt({"n1": ["one"], "n2": ["other"]}) == {"n2": ["other"]}
    assert calls.preempt({"n1": ["nobody"], "unknown": ["other"]}) == {}


BEHIND = {
    "only assumed": ({"kind": claims.ClaimKind.ASSUMED}, ["one"], 2),
    "not known yet": ({}, ["one", "another"], 2),
    "of equal priority": ({"priority": 100}, ["one"], 0),
}


@pytest.mark.parametrize(("more", "uids", "tries"), BEHIND.values(), ids=BEHIND)
def test_where_the_watch_may_be_behind_the_pod_is_tried_again_but_not_for_ever(more, uids, tries):
    """kube-scheduler has already seen where its victims run, and would not try the pod again."""
    calls, again = Calls(cap=64, nodes=("n1", "n2")), []
    calls.place("one", 1, **{"priority": 10} | more)
    calls.place("other", 1, node="n2")
    calls.preemptions.requeue = again.append
    for _ in range(3):
        assert calls.preempt({"n1": uids}) == {}
    assert again == ["default/high"] * tries
    assert calls.preempt({"n1": uids, "n2": ["other"]}) == {"n2": ["other"]}
    assert again == ["default/high"] * tries, "it has another place"


def test_who_has_to_leave_for_the_quota_is_added_on_the_same_node():
    calls = Calls(cap=4, nodes=("n1", "n2"))
    calls.place("other-team", 1, team="blue", priority=5)
    calls.place("young", 2, priority=20, at=9.0)
    calls.place("old", 2, priority=20, at=1.0)
    calls.place("elsewhere", 1, node="n2", team="blue")
    proposed = {"n1": ["other-team"], "n2": ["elsewhere"]}
    assert calls.preempt(proposed) == {"n1": ["other-team", "young"]}, "n2 has none of the quota"


def test_proposed_victims_of_the_quota_are_enough():
    calls = Calls(cap=4)
    calls.place("first", 2, priority=20)
    calls.place("second", 2, priority=10)
    assert calls.preempt({"n1": ["first"]}) == {"n1": ["first"]}


def test_what_is_observed_is_confirmed():
    calls = Calls(cap=2)
    calls.place("kept", 2, priority=500)
    calls.switches.take({"extender": "observe"})
    assert calls.preempt({"n1": ["kept"]}) == {"n1": ["kept"]}
    calls.switches.take({})
    assert calls.preempt({"n1": ["kept"]}) == {}


def test_full_pods_are_read_as_well():
    calls = Calls(cap=64)
    calls.place("low", 1)
    pods = [calls.pod("low", 1, priority=0)]
    body = {"Pod": calls.pod(), "NodeNameToVictims": {"n1": {"Pods": pods}, "n2": {"Pods": []}}}
    answer = json.loads(calls.verbs.preempt(json.dumps(body).encode(), NOW))
    assert answer["NodeNameToMetaVictims"] == {
        "n1": {"Pods": [{"UID": "low"}], "NumPDBViolations": 0}
    }
    assert "Error" in json.loads(calls.verbs.preempt(b"{", NOW))


def awaiting(calls, node="n1", **more):
    record = preemption_record.Record("attempt", node, ("low",), NOW, NOW + 60)
    one = in_flight.Preemption("default/high", "high", record, NOW, own=True, **more)
    calls.preemptions.put(one)


def test_a_pod_is_sent_to_the_place_that_was_kept_for_it():
    """Other nodes pass as well, and may have the higher score, but what it takes is kept there."""
    calls = Calls(cap=100, nodes=("n1", "n2", "n3"))
    assert len(calls.filter("n1", "n2", "n3")["NodeNames"]) == 3
    awaiting(calls, node="n2", freed_at=NOW)
    assert calls.filter("n1", "n2", "n3")["NodeNames"] == ["n2"]
    assert calls.filter("n1", "n3")["NodeNames"] == ["n1", "n3"]
    assert len(calls.filter("n1", "n2", pod=calls.pod("other"))["NodeNames"]) == 2
    calls.switches.take({"extender": "observe"})
    assert calls.filter("n1", "n2")["NodeNames"] == ["n1", "n2"]


def test_while_victims_leave_the_scheduler_evicts_nobody_else():
    calls = Calls(cap=2, nodes=("n1", "n2"))
    calls.place("low", 2, priority=10)
    calls.place("innocent", 1, node="n2", team="blue")
    before = calls.filter("n1", "n2")
    assert set(before["FailedAndUnresolvableNodes"]) == {"n1", "n2"}
    awaiting(calls)
    answer = calls.filter("n1", "n2")
    assert answer["FailedNodes"] == {"n1": in_flight.AWAITED.reason}
    assert set(answer["FailedAndUnresolvableNodes"]) == {"n2"}
    assert calls.preempt({"n2": ["innocent"]}) == {}
    assert calls.preempt({"n2": ["innocent"]}, calls.pod("other", team="blue")) != {}
    awaiting(calls, freed_at=NOW)
    assert calls.preempt({"n2": ["innocent"]}) == {}, "of an attempt before the last one left"
    awaiting(calls, freed_at=NOW - 1)
    assert set(calls.filter("n1", "n2")["FailedAndUnresolvableNodes"]) == {"n1", "n2"}
    assert not calls.preemptions.stands("high", NOW), "tried since, and refused again"


def nominated(calls, node="n1"):
    """kube-scheduler has evicted pods for a pod, and nominated it."""
    held = calls.record("high", 2, node=node, priority=100)
    kind, ident = claims.ClaimKind.NOMINATED, claims.nominated("high")
    calls.change(None, claims.Claim(ident, kind, node, held, usable_by="high", evidence="status"))
    return calls.pod() | {"status": {"nominatedNodeName": node}}


LEAVING = {
    "it leaves": ({"leaves_at": NOW + 9}, True),
    "it stays": ({}, False),
    "it leaves and is no less important": ({"leaves_at": NOW + 9, "priority": 100}, False),
    "it leaves and that is not enough": ({"leaves_at": NOW + 9, "count": 1}, False),
}


@pytest.mark.parametrize(("more", "awaited"), LEAVING.values(), ids=LEAVING)
def test_while_victims_of_kube_scheduler_leave_it_evicts_nobody_else(more, awaited):
    """It stands down only where the nominated node may still take the pod."""
    calls, again = Calls(cap=4, nodes=("n1", "n2")), []
    calls.preemptions.requeue = again.append
    count = (more := {"priority": 10, **more}).pop("count", 2)
    calls.place("low", count, **more)
    if count < 2:
        calls.place("stays", 1, priority=10)
    calls.place("innocent", 2, node="n2", priority=10)
    pod = nominated(calls)
    answer = calls.filter("n1", "n2", pod=pod)
    assert answer["FailedNodes"] == ({"n1": in_flight.AWAITED.reason} if awaited else {})
    assert set(answer["FailedAndUnresolvableNodes"]) == {"n1", "n2"} - set(answer["FailedNodes"])
    answers = [calls.preempt({"n2": ["innocent"]}, pod) for _ in range(3)]
    assert (answers[:2] == [{}, {}]) is awaited
    assert again == ["default/high"] * (2 if awaited else 0)


def test_no_innocent_leaves_where_the_nominated_node_takes_the_pod_by_now():
    """It was refused by a view that still counted a victim."""
    calls, again = Calls(cap=4, nodes=("n1", "n2")), []
    calls.preemptions.requeue = again.append
    calls.place("low", 2, priority=10)
    calls.place("innocent", 2, node="n2", priority=10)
    pod = nominated(calls)
    assert calls.filter("n1", "n2", pod=pod)["NodeNames"] == []
    calls.leave("low")
    answers = [calls.preempt({"n2": ["innocent"]}, pod) for _ in range(3)]
    assert answers == [{}, {}, {"n2": ["innocent"]}]
    assert again == ["default/high"] * 2


@pytest.mark.parametrize(
    ("asked", "leaves"),
    [
        pytest.param(["n2"], [], id="kube-scheduler still counts the place as taken"),
        pytest.param(["n1", "n2"], ["innocent"], id="it has looked at the place"),
    ],
)
def test_no_innocent_leaves_while_the_freed_place_has_not_been_looked_at(asked, leaves):
    calls = Calls(cap=2, nodes=("n1", "n2"))
    calls.place("low", 2, priority=10)
    calls.place("innocent", 1, node="n2", team="blue")
    awaiting(calls, freed_at=NOW - 1)
    assert calls.filter(*asked)["NodeNames"] == []
    calls.leave("low")
    found = calls.preempt({"n2": ["innocent"]})
    assert [uid for uids in found.values() for uid in uids] == leaves


@pytest.mark.parametrize(
    ("asked", "free", "put_off"),
    [
        pytest.param(100, 1, True, id="a node outside the sample takes it"),
        pytest.param(100, 0, False, id="no other node takes it"),
        pytest.param(99, 1, False, id="all feasible nodes were asked about"),
    ],
)
def test_a_sampled_refusal_evicts_no_innocents(asked, free, put_off):
    names = [f"n{number}" for number in range(120)]
    calls = Calls(cap=10_000, nodes=(), slots=0)
    requeued = []
    calls.preemptions.requeue = requeued.append
    for number, name in enumerate(names):
        calls.node(name, 4 if number == 110 and free else 1)
    calls.place("victim", 1, node="n5", team="blue")
    assert not calls.filter(*names[:asked])["NodeNames"]
    answers = [calls.preempt({"n5": ["victim"]}) for _ in range(3)]
    assert requeued == (["default/high"] * 2 if put_off else [])
    assert answers[:2] == [{}, {}], "its own slots are too few in any case"


def test_it_is_put_off_twice_and_not_for_ever():
    calls = Calls(cap=10_000, nodes=())
    for number in range(120):
        calls.node(f"n{number}", 4 if number == 110 else 2)
    for number in range(110):
        calls.place(f"v{number}", 2, node=f"n{number}", priority=1)
    names = [f"n{number}" for number in range(105)]
    assert not calls.filter(*names)["NodeNames"]
    answers = [calls.preempt({"n5": ["v5"]}) for _ in range(3)]
    assert answers == [{}, {}, {"n5": ["v5"]}]


def test_answering_changes_nothing():
    calls = Calls(cap=4, nodes=("n1", "n2"))
    for number in range(4):
        calls.place(f"p{number}", 1, node=f"n{number % 2 + 1}", priority=number)
    before = calls.state.fingerprint()
    calls.preempt({"n1": ["p0"], "n2": ["p1"]})
    assert calls.state.fingerprint() == before


def test_a_claim_that_waits_for_its_victims_is_forgotten_with_its_pod():
    calls = Calls(cap=2)
    calls.place("low", 2, priority=10)
    awaiting(calls)
    assert [one.key for one in calls.preemptions.of_victim("low")] == ["default/high"]
    assert calls.preemptions.drop("high").uid == "high"
    assert calls.preemptions.of_victim("low") == []
    assert calls.preemptions.awaited("high") == ""
