"""Over which running pods a Reservation with preAllocation is placed, and what is asked beside."""

import json

import msgspec
import pytest

from api import names
from api.kubernetes import core
from manager.reservations import pre_allocation, priorities, stand_in
from tests import builders
from tests.manager.reservations import reserved

TERMS = pre_allocation.Terms()
MINE = {"job": "batch"}
NODES = {"n1": {}, "n2": {}}
GIB = 1 << 30


def found(policy=None, labels=None, template=None, **spec):
    spec = {"preAllocation": True, **spec}
    if policy:
        spec["preAllocationPolicy"] = policy
    return reserved.read(spec=spec, template=template, labels=labels or {})


def pod(name, cpu="4", *, node="n1", labels=None, notes=None, terms=TERMS):
    raw = builders.a_pod(
        name, node=node, requests={"cpu": cpu}, labels=MINE if labels is None else labels,
        annotations=notes or {},
    )  # fmt: skip
    raw["metadata"]["uid"] = name
    return pre_allocation.running(msgspec.convert(raw, core.Pod), terms)


def ranked(one, *pods, taken=()):
    chosen = pre_allocation.candidates(one, pods, frozenset(taken), NODES)
    return [each.owner.name for each in chosen]


def affinity(**wants):
    return {names.ANNOTATION_RESERVATION_AFFINITY: json.dumps(wants)}


CANDIDATES = {
    "an owner": (pod("a"), ["a"]),
    "no owner": (pod("a", labels={}), []),
    "larger than what is reserved": (pod("a", "5"), []),
    "one on a node that is not known": (pod("a", node="n9"), []),
    "one that uses a Reservation": (
        pod("a", notes={names.ANNOTATION_RESERVATION_ALLOCATED: "{}"}),
        [],
    ),
    "a stand-in": (pod("a", labels={**MINE, names.LABEL_STAND_IN: "r"}), []),
    "one confined to another Reservation": (pod("a", notes=affinity(name="other")), []),
    "one confined to this one": (pod("a", notes=affinity(name="r")), ["a"]),
    "one that requests nothing of it": (pod("a", "0"), []),
}


@pytest.mark.parametrize(("running", "expected"), CANDIDATES.values(), ids=CANDIDATES)
def test_pods_that_could_use_it_are_those_over_which_it_is_placed(running, expected):
    assert ranked(found(), running) == expected


def test_the_pod_that_fills_it_most_comes_first_and_one_that_is_taken_not_at_all():
    pods = [pod("small", "1"), pod("large", "4"), pod("gone", "4")]
    assert ranked(found(), *pods, taken=["gone"]) == ["large", "small"]


def test_mode_cluster_takes_pods_by_label_and_priority_whoever_owns_them():
    terms = TERMS._replace(cluster_mode=True)
    key = names.ANNOTATION_PRE_ALLOCATABLE_PRIORITY
    pods = [
        pod(name, labels={names.LABEL_PRE_ALLOCATABLE: "true"}, notes={key: text}, terms=terms)
        for name, text in (("low", "-5"), ("bad", "high"), ("high", "9"))
    ]
    one = found({"mode": "Cluster"})
    assert ranked(one, *pods) == ["high", "bad", "low"]
    assert pre_allocation.queries(one, terms) == (f"{names.LABEL_PRE_ALLOCATABLE}=true",)
    assert pre_allocation.refusal(one, terms) == ""
    assert pre_allocation.CLUSTER_DISABLED in pre_allocation.refusal(one, TERMS)


def test_pods_are_looked_for_by_the_selectors_of_the_owners():
    expressions = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "zone", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    owners = [
        {"labelSelector": {"matchLabels": MINE, "matchExpressions": expressions}},
        {"object": {"name": "p"}},
    ]
    assert pre_allocation.queries(found(owners=owners), TERMS) == (
        "job=batch,tier in (a,b),zone,!old",
    )


FREE = {
    "one pod and nothing free": ({}, ["4"], {}, (["p0"], {"cpu": 0, "memory": 8 * GIB}), 8 * GIB),
    "too little beside every pod": ({}, ["3", "2"], {}, None, 8 * GIB),
    "the second pod": ({}, ["1", "3"], {"cpu": 1000}, (["p1"], {"cpu": 1000, "memory": 8 * GIB}),
                       8 * GIB),
    "several pods": ({"enableMultiple": True}, ["2", "1", "1"], {"cpu": 1000},
                     (["p0", "p1"], {"cpu": 1000, "memory": 8 * GIB}), 8 * GIB),
    "several, not more than is reserved": ({"enableMultiple": True}, ["3", "3", "1"], {},
                                           (["p0", "p2"], {"cpu": 0, "memory": 8 * GIB}), 8 * GIB),
    "no memory": ({"enableMultiple": True}, ["4"], {}, None, GIB),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "cpus", "free", "expected", "memory"), FREE.values(), ids=FREE)
def test_as_few_pods_are_taken_as_it_needs_on_a_node(policy, cpus, free, expected, memory):
    pods = [pod(f"p{n}", cpu) for n, cpu in enumerate(cpus)]
    choice = pre_allocation.chosen(found(policy), pods, {"memory": memory, **free})
    if expected is None:
        assert choice is None
        return
    assert choice == pre_allocation.Choice("n1", tuple(expected[0]), expected[1])


def test_what_is_free_is_what_neither_pods_nor_reservations_hold():
    free = pre_allocation.free({"cpu": 8000, "memory": GIB}, [pod("a", "4")], [{"cpu": 5000}])
    assert (free["cpu"], free["memory"]) == (-1000, GIB)


def a_template(requests=None, **metadata):
    container = {"name": "c", "resources": {"requests": requests or {"cpu": "1"}}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


REFUSED = {
    "Aligned": ({"allocatePolicy": "Aligned"}, None, "allocatePolicy: use Restricted"),
    "exclusive CPUs": ({}, a_template(labels={names.LABEL_QOS: "LSR"}), "CPUs"),
    "devices": ({}, a_template({"nvidia.com/gpu": "1"}), "nvidia.com/gpu"),
    "owners without labels": ({"owners": [{"object": {"name": "p"}}]}, None, "labelSelector"),
}


@pytest.mark.parametrize(("spec", "template", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_placed_over_pods_says_what_to_change(spec, template, expected):
    refusal = pre_allocation.refusal(found(template=template, **spec), TERMS)
    assert pre_allocation.UNSUPPORTED in refusal
    assert expected in refusal


def test_the_stand_in_asks_for_the_rest_on_the_node_of_the_pods():
    template = a_template({"cpu": "4"})
    template["spec"] |= {
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "9"}}}],
        "overhead": {"cpu": "1"},
    }
    one = found(template=template)
    over = pre_allocation.Choice("n1", ("u1", "u2"), {"cpu": 500, "memory": 0})
    place = stand_in.Place("default", "koord-scheduler", priorities.Priority(1, False), 3, over)
    made = stand_in.body(one, place)
    assert made["metadata"]["annotations"][names.ANNOTATION_STAND_IN_PODS] == "u1,u2"
    (container,) = made["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "500m", "memory": "0"}}
    assert not {"initContainers", "overhead"} & made["spec"].keys()
    required = made["spec"]["affinity"]["nodeAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["n1"]
