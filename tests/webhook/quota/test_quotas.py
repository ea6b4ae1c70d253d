"""What becomes of ElasticQuotas of the three groups: completed, checked, kept while in use."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names, resources
from domain.quota.tree import quota_trees
from tests.webhook.quota import test_quota_vectors as vectors
from webhook import gates, quotas, registry, review

WEIGHT, PARENT = names.ANNOTATION_QUOTA_WEIGHT, names.LABEL_QUOTA_PARENT
TREE, IS_PARENT = names.LABEL_QUOTA_TREE, names.LABEL_QUOTA_IS_PARENT
NAMESPACES, FORCE = names.ANNOTATION_QUOTA_NAMESPACES, names.LABEL_QUOTA_FORCE_UPDATE
PLAIN, LONG, SHORT = resources.QUOTA_RESOURCES
GROUPS = pytest.mark.parametrize("kind", resources.QUOTA_RESOURCES, ids=lambda one: one.group)


def quota(kind=PLAIN, name="x", namespace="default", labels=None, notes=None, **spec):
    """Return a quota of a group as it is written."""
    metadata = {"name": name, "namespace": namespace}
    parts = {"labels": labels, "annotations": notes}
    metadata |= {part: found for part, found in parts.items() if found is not None}
    return {
        "apiVersion": kind.api_version,
        "kind": "ElasticQuota",
        "metadata": metadata,
        "spec": spec,
    }


def holder(name="org", **more):
    """Return a quota that holds others."""
    labels = {IS_PARENT: "true", **more.pop("labels", {})}
    more = {"min": {"cpu": "10"}, "max": {"cpu": "20"}, **more}
    return quota(name=name, labels=labels, **more)


def picture(*stored, on=()):
    trees = quota_trees.trees(map(quota_trees.member, stored), [])
    return review.Picture((), {}, {}, lambda _: 0, gates=frozenset(on), trees=trees)


def asked(body, old=None, operation=None, **more):
    group = body["apiVersion"].partition("/")[0]
    metadata = body["metadata"]
    return review.Review(
        operation or ("UPDATE" if old else "CREATE"), metadata["namespace"], body, old,
        name=metadata["name"], resource=(group, "elasticquotas"), **more,
    )  # fmt: skip


def judged(body, *stored, old=None, on=(), **more):
    return quotas.validate(asked(body, old, **more), picture(*stored, on=on))


def causes(decision):
    return () if decision.refusal is None else decision.refusal.causes


REFUSED = {
    "min above max": ({"min": {"cpu": "3"}, "max": {"cpu": "2"}}, "spec.min[cpu]"),
    "min without max": ({"min": {"cpu": "3"}, "max": {}}, "spec.min[cpu]"),
    "negative max": ({"max": {"cpu": "-1"}}, "spec.max[cpu]"),
    "negative min": ({"min": {"cpu": "-1"}, "max": {"cpu": "1"}}, "spec.min[cpu]"),
    "no quantity": ({"max": {"cpu": "much"}}, "spec.max"),
    "negative weight": ({"notes": {WEIGHT: '{"cpu": "-1"}'}}, WEIGHT),
    "weight is no JSON": ({"notes": {WEIGHT: "{"}}, WEIGHT),
    "admission is no JSON": ({"notes": {names.ANNOTATION_QUOTA_ADMISSION: "{"}}, "admission"),
    "strict keys are no JSON": (
        {"notes": {names.ANNOTATION_QUOTA_STRICT_KEYS: "{"}}, "max-strict-check-resource-keys",
    ),
    "its own parent": ({"labels": {PARENT: "x", IS_PARENT: "true"}}, PARENT),
    "no such parent": ({"labels": {PARENT: "gone"}}, "create it first"),
    "name taken in another namespace": (
        {"name": "taken"}, 'Duplicate value: "taken": ElasticQuota elsewhere/taken',
    ),
    "namespace taken": ({"notes": {NAMESPACES: '["a", "b"]'}}, '"b": bound to ElasticQuota'),
}  # fmt: skip


@GROUPS
@pytest.mark.parametrize(("case", "field"), REFUSED.values(), ids=REFUSED)
def test_a_quota_of_any_group_is_checked(kind, case, field):
    taken = quota(name="taken", namespace="elsewhere", notes={NAMESPACES: '["b"]'})
    refusal = judged(quota(kind, **case), taken).refusal
    assert refusal is not None
    assert (refusal.group, refusal.code) == ("quota", 400)
    assert field in refusal.message


@pytest.mark.parametrize("kind", [LONG, SHORT], ids=lambda one: one.group)
def test_hard_is_an_upper_limit_as_well(kind):
    body = quota(kind, min={"cpu": "3"}, max={"cpu": "4"}, hard={"cpu": "2"})
    refusal = judged(body).refusal
    assert refusal is not None
    assert "spec.min[cpu]" in refusal.message
    told = judged(quota(kind, max={"cpu": "3"}, hard={"cpu": "2"})).warnings
    assert any("the quota stops at spec.hard" in text for text in told)


@pytest.mark.parametrize("other", [LONG, SHORT], ids=lambda one: one.group)
def test_a_name_is_taken_over_all_groups(other):
    refusal = judged(quota(other), quota()).refusal
    assert refusal is not None
    assert (refusal.causes, refusal.code) == ((quotas.DUPLICATE,), 400)


def test_what_exists_is_said_to_exist():
    """Who creates what may be there already, expects this answer of an API server."""
    refusal = judged(quota(), quota()).refusal
    assert refusal is not None
    assert (refusal.causes, refusal.code) == ((quotas.EXISTS,), 409)


def test_what_was_read_for_a_review_is_newer_than_what_is_known():
    """A quota that was deleted just now is no duplicate, one that was created just now is."""
    known, body = quota(namespace="elsewhere"), quota()
    question = asked(body, quotas={"x": ()})
    assert quotas.validate(question, picture(known)).refusal is None
    parent = quota_trees.member(holder())
    child = quota(name="y", labels={PARENT: "org"}, min={"cpu": "1"}, max={"cpu": "20"})
    for read, expected in (({}, ("parent-unknown",)), ({"org": (parent,)}, ())):
        question = asked(child, quotas=read)
        assert causes(quotas.validate(question, picture())) == expected
        made = quotas.mutate(question, picture())
        assert causes(made) == expected
    unread = asked(body, quotas={})
    assert causes(quotas.validate(unread, picture(known))) == (quotas.DUPLICATE,)


def test_only_what_is_not_known_is_read():
    child = quota(labels={PARENT: "org"}, max={"cpu": "20"})
    assert quotas.validation_needs(asked(child), picture()).quotas == ("x", "org")
    assert quotas.validation_needs(asked(child), picture(holder())).quotas == ("x",)
    assert quotas.mutation_needs(asked(child), picture(holder())) == review.NO_NEEDS
    figures = quota(labels={PARENT: "org"}, notes={names.ANNOTATION_QUOTA_RUNTIME: "{}"},
                    max={"cpu": "20"})  # fmt: skip
    assert quotas.validation_needs(asked(figures, child), picture()) == review.NO_NEEDS


def child(name="team", kind=PLAIN, **more):
    labels = {PARENT: "org", **more.pop("labels", {})}
    more = {"min": {"cpu": "4"}, "max": {"cpu": "20"}, **more}
    return quota(kind, name, labels=labels, **more)


TOPOLOGY = {
    "fits": (child("y"), ()),
    "a parent that is a leaf": (child("y", labels={PARENT: "team"}), ("parent-is-leaf",)),
    "another tree": (child("y", labels={TREE: "t"}), ("tree-differs",)),
    "other resources": (child("y", max={"cpu": "20", "memory": "1"}), ("max-keys",)),
    "a minimum that the parent lacks": (
        child("y", min={"memory": "1"}, max={"cpu": "20", "memory": "1"}),
        ("max-keys", "min-keys", "min-sum-parent"),
    ),
    "more than the parent has left": (child("y", min={"cpu": "7"}), ("min-sum-parent",)),
    "more, and forced": (child("y", min={"cpu": "7"}, labels={FORCE: "true"}), ()),
    "more, but the root of a tree": (
        child("y", min={"cpu": "7"}, labels={names.LABEL_QUOTA_IS_ROOT: "true"}), (),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), TOPOLOGY.values(), ids=TOPOLOGY)
def test_a_quota_fits_into_its_tree(body, expected):
    assert causes(judged(body, holder(), child())) == expected


def test_children_of_every_group_share_one_parent():
    body = child("y", LONG, min={"cpu": "7"}, hard={"cpu": "20"})
    assert causes(judged(body, holder(), child())) == ("min-sum-parent",)


CHANGED = {
    "less than below it": (holder(min={"cpu": "3"}), ("min-sum-children",)),
    "a leaf with children": (holder(labels={IS_PARENT: "false"}), ("has-children",)),
    "another tree": (holder(labels={TREE: "t"}), ("tree-changed",)),
    "below its child": (holder(labels={PARENT: "team", FORCE: "true"}), ("parent-below",)),
}


@pytest.mark.parametrize(("body", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_quota_with_others_below_it_is_changed_with_care(body, expected):
    below = child(labels={IS_PARENT: "true"})
    assert causes(judged(body, holder(), below, old=holder())) == expected


def test_a_quota_with_pods_becomes_no_parent():
    question = asked(holder(), holder(labels={IS_PARENT: "false"}))
    needs = quotas.validation_needs(question, picture())
    named, unnamed = f"{names.LABEL_QUOTA_NAME}=org", f"!{names.LABEL_QUOTA_NAME}"
    assert needs.pods == (review.PodQuery(named), review.PodQuery(unnamed, "org"))
    assert quotas.validate(question, picture()).refusal is None
    found = dataclasses.replace(question, pods=("a/p", "a/q", "a/r"))
    refusal = quotas.validate(found, picture()).refusal
    assert refusal is not None
    assert "charged for pods, such as a/p, a/q, and" in refusal.message


def test_the_pods_of_bound_namespaces_count_as_well():
    body, leaf = holder("org"), quota(LONG, "org", "team-a", max={"cpu": "20"})
    body = {**body, "apiVersion": LONG.api_version}
    needs = quotas.validation_needs(asked(body, leaf), picture())
    assert {query.namespace for query in needs.pods} == {"", "org", "team-a"}


def test_not_thousands_of_namespaces_are_read_for_one_quota():
    named = {names.ANNOTATION_QUOTA_NAMESPACES: json.dumps([f"n{at}" for at in range(3000)])}
    body, leaf = holder("org"), quota(PLAIN, "org", "team-a", notes=named, max={"cpu": "20"})
    needs = quotas.validation_needs(asked(body, leaf), picture())
    assert 10 < len(needs.pods) < 100


@pytest.mark.parametrize("name", sorted(names.RESERVED_QUOTAS))
def test_quotas_of_the_system_stay(name):
    body = quota(name=name, max={"cpu": "1"})
    assert causes(judged(body, body, operation="DELETE")) == ("reserved",)
    changed = judged(quota(name=name, max={"cpu": "2"}), body, old=body)
    assert causes(changed) == (() if name == names.DEFAULT_QUOTA else ("reserved",))
    figures = quota(name=name, notes={names.ANNOTATION_QUOTA_RUNTIME: "{}"}, max={"cpu": "1"})
    assert judged(figures, body, old=body) == review.Decision()


@GROUPS
def test_a_quota_in_use_is_not_deleted(kind):
    body = quota(kind)
    assert judged(body, body, operation="DELETE").refusal is None
    used = judged(body, body, operation="DELETE", pods=("a/p", "a/q", "a/r"))
    assert causes(used) == ("has-pods",)
    assert "charged for pods, such as a/p, a/q; delete" in used.refusal.message
    below = child("y", labels={PARENT: "x"})
    assert causes(judged(body, body, below, operation="DELETE")) == ("has-children",)
    emptied = judged(body, body, below, operation="DELETE", pods=("a/p",),
                     user="system:serviceaccount:kube-system:namespace-controller")  # fmt: skip
    assert emptied.refusal is None, "a namespace that goes takes its quotas with it"


def test_of_two_quotas_of_a_name_the_younger_one_may_go():
    older = quota(namespace="a")
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    younger = quota(LONG, namespace="b")
    younger["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    below = child("y", labels={PARENT: "x"})
    gone = judged(younger, younger, older, below, operation="DELETE")
    assert gone.refusal is None
    assert causes(judged(older, younger, older, below, operation="DELETE")) == ("has-children",)


def test_a_minimum_is_guaranteed_by_the_quotas_above():
    def tree(guaranteed):
        notes = {names.ANNOTATION_QUOTA_GUARANTEED: f'{{"cpu":"{guaranteed}"}}'}
        return holder(labels={TREE: "t"}, notes=notes)

    body = child("y", labels={TREE: "t"})
    on = {gates.GUARANTEE}
    assert causes(judged(body, tree(4), on=on)) == ("not-guaranteed",)
    assert judged(body, tree(10), on=on).refusal is None
    assert judged(body, tree(4)).refusal is None


def test_fewer_resources_than_the_parent_are_a_gate():
    parent = holder(max={"cpu": "20", "memory": "1Gi"})
    assert causes(judged(child(), parent)) == ("max-keys",)
    assert judged(child(), parent, on={gates.CHILD_KEYS}).refusal is None


def test_a_namespace_that_has_a_quota_keeps_it():
    """The short groups mean their own namespace: that is no fault where another has it."""
    other = quota(name="other", notes={NAMESPACES: '["team-a"]'})
    decision = judged(quota(LONG, namespace="team-a"), other)
    assert decision.refusal is None
    assert "namespace team-a keeps its quota" in decision.warnings[0]


def test_statuses_and_departures_are_let_pass():
    body = quota(max={"cpu": "-1"})
    assert judged({**body, "status": {"used": {"cpu": "1"}}}, old=body) == review.Decision()
    gone = {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert judged(gone) == review.Decision()
    odd = {**quota(max={"cpu": "1"}), "status": {"used": "all"}}
    assert judged(odd).refusal is None


def test_a_quota_is_not_cut_below_what_must_stay():
    body = quota(notes={names.ANNOTATION_QUOTA_STRICT_KEYS: '["cpu"]'}, max={"cpu": "2"})
    refusal = judged({**body, "status": {"used": {"cpu": "3"}}}).refusal
    assert refusal is not None
    assert "spec.max[cpu]: Forbidden: 3 are used" in refusal.message


def complete(body, *stored):
    decision = registry.ROUTES["/mutate-elasticquota"].decide(asked(body), picture(*stored))
    made = (decision.object or body)["metadata"]
    return made.get("labels"), made.get("annotations")


def test_a_quota_is_completed_and_nothing_that_is_there_changes():
    labels, notes = complete(quota(max={"cpu": "2", "memory": "1Gi"}))
    assert labels == {PARENT: names.ROOT_QUOTA}
    assert notes == {WEIGHT: '{"cpu":"2","memory":"1Gi"}'}
    written = {PARENT: "org", TREE: "t"}, {WEIGHT: '{"cpu":7,"gpu":1}'}
    assert complete(quota(labels=written[0], notes=written[1], max={"cpu": "2"})) == written
    _, notes = complete(quota(notes={WEIGHT: '{"cpu":7}'}, max={"cpu": "2", "memory": "1Gi"}))
    assert notes == {WEIGHT: '{"cpu":7,"memory":"1Gi"}'}


@GROUPS
def test_a_child_gets_the_tree_of_its_parent(kind):
    parent = holder(labels={TREE: "t"})
    labels, notes = complete(child("y", kind), parent)
    assert labels == {PARENT: "org", TREE: "t"}
    assert (notes is not None) is (kind is PLAIN), "the short groups get no weights"


def test_a_quota_that_cannot_be_completed_is_refused_or_left():
    def made(body):
        return registry.ROUTES["/mutate-elasticquota"].decide(asked(body), picture())

    assert causes(made(quota(notes={WEIGHT: "{"}, max={"cpu": "1"}))) == ("weight-unreadable",)
    assert made(quota(name=names.ROOT_QUOTA)) == review.Decision()
    assert made(quota(max="all")) == review.Decision()
    assert causes(made(quota(labels={PARENT: "gone"}))) == ("parent-unknown",)


STEPS = [
    step["quota"]
    for case in vectors.cases.read("quota_admission")
    for step in case.given["steps"]
    if step["op"] == "create"
]


@given(body=st.sampled_from(STEPS), kind=st.sampled_from(resources.QUOTA_RESOURCES))
def test_completion_adds_only_and_once(body, kind):
    body = {"apiVersion": kind.api_version, **body}
    known = picture(holder("q0", labels={TREE: "t1"}), holder("q1"))
    once = quotas.mutate(asked(body), known)
    if once.object is None:
        return
    for part in ("labels", "annotations"):
        written = body["metadata"].get(part) or {}
        kept = {key: once.object["metadata"].get(part, {}).get(key) for key in written}
        kept.pop(WEIGHT, None)
        empty = {key for key, value in written.items() if not value}
        assert {k: v for k, v in kept.items() if k not in empty} == {
            k: v for k, v in written.items() if k != WEIGHT and k not in empty
        }
    assert once.object["spec"] == body["spec"]
    assert quotas.mutate(asked(once.object), known).object in (None, once.object)
