"""Pods of quotas: pinned to the nodes of their tree, and refused where a quota takes none."""

import pytest

from api import names
from tests import builders
from tests.webhook.pods.reviewed_pods import PICTURE, asking, mutated, refused
from webhook import gates, pods

PINNED = [
    {"key": "pool", "operator": "In", "values": ["t"]},
    {"key": "zone", "operator": "Exists"},
]
OTHER = {"key": "disk", "operator": "In", "values": ["ssd"]}


def terms(pod):
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]


def affine(*found):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*found]}}
    return {"affinity": {"nodeAffinity": required}}


PLACES = {
    "by label": ({names.LABEL_QUOTA_NAME: "team"}, "default", {}, [PINNED]),
    "by namespace": ({}, "bound", {}, [PINNED]),
    "every alternative": (
        {names.LABEL_QUOTA_NAME: "team"},
        "default",
        affine({"matchExpressions": [OTHER]}, {"matchFields": []}),
        [[OTHER, *PINNED], PINNED],
    ),
    "already there": (
        {names.LABEL_QUOTA_NAME: "team"},
        "default",
        affine({"matchExpressions": PINNED}),
        [PINNED],
    ),
}


@pytest.mark.parametrize(("labels", "namespace", "spec", "wanted"), PLACES.values(), ids=PLACES)
def test_a_pod_is_pinned_to_the_nodes_of_its_tree(labels, namespace, spec, wanted):
    picture = PICTURE.but(gates=frozenset({gates.QUOTA_TREES}))
    made = mutated(builders.a_pod(labels=labels, spec=spec), picture, namespace)
    assert [term["matchExpressions"] for term in terms(made)] == wanted


@pytest.mark.parametrize(
    ("labels", "namespace", "on"),
    [
        ({names.LABEL_QUOTA_NAME: "team"}, "default", ()),
        ({names.LABEL_QUOTA_NAME: "all"}, "default", (gates.QUOTA_TREES,)),
        ({names.LABEL_QUOTA_NAME: "gone"}, "bound", (gates.QUOTA_TREES,)),
        ({}, "default", (gates.QUOTA_TREES,)),
        ({}, "bound", (gates.QUOTA_TREES, gates.NO_DEFAULT_QUOTA)),
    ],
    ids=["gate off", "no tree", "unknown quota", "no quota", "no label"],
)
def test_all_others_go_anywhere(labels, namespace, on):
    made = mutated(builders.a_pod(labels=labels), PICTURE.but(gates=frozenset(on)), namespace)
    assert "affinity" not in made["spec"]


MEMBERS = {
    "parent by label": ({names.LABEL_QUOTA_NAME: "all"}, "default", (), True),
    "parent by namespace": ({}, "parent", (), True),
    "leaf": ({names.LABEL_QUOTA_NAME: "team"}, "default", (), False),
    "unknown": ({names.LABEL_QUOTA_NAME: "gone"}, "default", (), False),
    "allowed": ({names.LABEL_QUOTA_NAME: "all"}, "default", (gates.ANY_QUOTA,), False),
    "no default": ({}, "parent", (gates.NO_DEFAULT_QUOTA,), False),
}


@pytest.mark.parametrize(("labels", "namespace", "on", "denied"), MEMBERS.values(), ids=MEMBERS)
def test_quotas_that_hold_quotas_take_no_pods(labels, namespace, on, denied):
    pod = builders.a_pod(labels=labels)
    found = refused(pod, PICTURE.but(gates=frozenset(on)), namespace=namespace)
    assert (found is not None) is denied
    assert not denied or found[0] == "quota"


ODD_AFFINITY = {
    "text": "x",
    "list": [],
    "terms are a text": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": "x"}
        }
    },
    "expressions are a text": affine({"matchExpressions": "x"})["affinity"],
}


@pytest.mark.parametrize("affinity", ODD_AFFINITY.values(), ids=ODD_AFFINITY)
def test_an_affinity_that_the_api_server_refuses_is_left_to_it(affinity):
    labels = {names.LABEL_QUOTA_NAME: "team"}
    pod = builders.a_pod(labels=labels, spec={"affinity": affinity})
    picture = PICTURE.but(gates=frozenset({gates.QUOTA_TREES}))
    decision = pods.mutate(asking(pod), picture)
    assert decision.refusal is not None or decision.object["spec"]["affinity"] == affinity


@pytest.mark.parametrize(
    "affinity", [{}, {"nodeAffinity": {}}, {"podAffinity": {}}], ids=["empty", "node", "pods"]
)
def test_an_affinity_that_demands_no_node_gets_one_term(affinity):
    labels = {names.LABEL_QUOTA_NAME: "team"}
    pod = builders.a_pod(labels=labels, spec={"affinity": affinity})
    made = mutated(pod, PICTURE.but(gates=frozenset({gates.QUOTA_TREES})))
    assert terms(made) == [{"matchExpressions": PINNED}]
