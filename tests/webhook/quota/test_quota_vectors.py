"""Quota admission gives the recorded answers, step by step, from the recorded state."""

import dataclasses
import json
import re

from api import names, resources
from api.koordinator import quota
from domain.quota.tree import quota_trees
from tests.reference import cases, differences_quota
from webhook import pods, quotas, review

Q = resources.ELASTIC_QUOTAS
CAUSES = (
    (r"fill quota \S+ failed, parent not exist|not find parentInfo|but not find", "parent-unknown"),
    (r"fillDefaultQuotaInfo unmarshal sharedWeight failed|^invalid character", "weight-unreadable"),
    (r"quota already exist", "duplicate"),
    (r"is already bound to quota", "namespace-bound"),
    (r"Spec.Max's value < 0", "max-negative"),
    (r"Spec.Min's value < 0", "min-negative"),
    (r"shared-weight\]'s value < 0", "weight-negative"),
    (r"min \S+ > max", "min-above-max"),
    (r"included in min, which is not included in max", "min-not-in-max"),
    (r"max-strict-check-resource-keys\]'s value is invalid", "strict-unreadable"),
    (r"max \S+ < used|but should check max >= used", "max-below-used"),
    (r"^invalid quota koordinator|can not delete quotaGroup", "reserved"),
    (r"tree id changed", "tree-changed"),
    (r"tree id is different", "tree-differs"),
    (r"isParent is forbidden to modify as false|has \d+ child quotas", "has-children"),
    (r"isParent is forbidden to modify as true|has \d+ child pods", "has-pods"),
    (r"IsParent is false", "parent-is-leaf"),
    (r"max keys are not", "max-keys"),
    (r"min keys are not", "min-keys"),
    (r"all brothers' MinQuota", "min-sum-parent"),
    (r"all children's MinQuota", "min-sum-children"),
    (r"can't guarantee for min", "not-guaranteed"),
    (r"can not be linked to a parentQuotaGroup", "pod-of-parent"),
    (r"Preemptible label is forbidden", "pod-preemptible"),
    (r"not found quota", "not-found"),
)


def cause(error):
    """Return our constant word for the sentence of the reference."""
    found = [word for pattern, word in CAUSES if re.search(pattern, error)]
    assert len(found) == 1, (error, found)
    return found[0]


def recorded(case):
    pairs = zip(case.given["steps"], case.expected["steps"], strict=True)
    topology = case.expected["topology"]
    index = {
        name: (
            one["isParent"],
            quota.amounts(one["min"] or {}),
            quota.amounts(one["max"] or {}),
            _below(name, topology["quotaHierarchyInfo"].get(name, [])),
        )
        for name, one in topology["quotaInfoMap"].items()
    }
    return {"steps": [_recorded(step, out) for step, out in pairs], "index": index}


def _below(name, found):
    """Leave out what is below the root of all quotas, for which nobody asks."""
    return [] if name == names.ROOT_QUOTA else found


def _recorded(step, out):
    if not out["allowed"]:
        return {"stage": out["stage"], "cause": cause(out["error"])}
    if step["op"] != "create":
        return {}
    return {"labels": out["labels"], "annotations": _parsed(out["annotations"])}


def _parsed(notes):
    weight = notes.get(names.ANNOTATION_QUOTA_WEIGHT)
    return {**notes, names.ANNOTATION_QUOTA_WEIGHT: json.loads(weight)} if weight else dict(notes)


def answer(case):
    """Answer every step from the state that the recorded answers before it have led to.

    The index of quotas is what they are checked against: who is below whom, with which amounts.
    """
    on = frozenset(name for name, is_on in (case.given.get("featureGates") or {}).items() if is_on)
    stored, answers = {}, []
    for step, out in zip(case.given["steps"], case.expected["steps"], strict=True):
        picture = review.Picture((), {}, {}, lambda _: 0, gates=on, trees=_trees(stored))
        answers.append(ANSWERS[step["op"]](step, picture, case.given["existingPods"], stored))
        if out["allowed"]:
            _store(stored, step, out)
    trees = _trees(stored)
    index = {
        name: (
            one.is_parent,
            one.minimum,
            one.cap,
            _below(name, [child.name for child in trees.children.get(name, ())]),
        )
        for name, one in trees.by_name.items()
    }
    return {"steps": answers, "index": index}


def _trees(stored):
    return quota_trees.trees(map(quota_trees.member, stored.values()), [])


def _store(stored, step, out):
    if step["op"] == "delete":
        stored.pop(step["name"], None)
    elif step["op"] in ("create", "update"):
        body = step["quota"]
        parts = {name: out[name] for name in ("labels", "annotations") if name in out}
        stored[body["metadata"]["name"]] = {**body, "metadata": {**body["metadata"], **parts}}


def _create(step, picture, existing, _stored):
    asked = _asked("CREATE", step["quota"])
    made = quotas.mutate(asked, picture)
    if made.refusal is not None:
        return {"stage": "mutating", "cause": made.refusal.causes[0]}
    body = made.object or step["quota"]
    refused = _validated(_asked("CREATE", body), picture, existing)
    if refused:
        return refused
    metadata = body["metadata"]
    return {
        "labels": metadata.get("labels") or {},
        "annotations": _parsed(metadata.get("annotations") or {}),
    }


def _update(step, picture, existing, stored):
    body = step["quota"]
    old = stored[body["metadata"]["name"]]
    return _validated(_asked("UPDATE", body, old), picture, existing)


def _delete(step, picture, existing, stored):
    body = stored.get(step["name"]) or {"metadata": {"name": step["name"], "namespace": "gone"}}
    return _validated(_asked("DELETE", body, body), picture, existing)


def _pod(step, picture, _existing, _stored):
    pod, old = step["pod"], step.get("oldPod")
    asked = review.Review("UPDATE" if old else "CREATE", pod["metadata"]["namespace"], pod, old)
    refusal = pods.validate(asked, picture).refusal
    return {} if refusal is None else {"stage": "validating", "cause": refusal.causes[0]}


ANSWERS = {"create": _create, "update": _update, "delete": _delete, "pod": _pod}


def _asked(operation, body, old=None):
    metadata = body["metadata"]
    return review.Review(
        operation, metadata["namespace"], body, old,
        name=metadata["name"], resource=(Q.group, Q.plural),
    )  # fmt: skip


def _validated(asked, picture, existing):
    needs = quotas.validation_needs(asked, picture)
    found = tuple(pod for query in needs.pods for pod in _selected(query, existing))
    refusal = quotas.validate(dataclasses.replace(asked, pods=found), picture).refusal
    if refusal is None:
        return {}
    word = {"exists": "duplicate"}.get(refusal.causes[0], refusal.causes[0])
    return {"stage": "validating", "cause": word}


def _selected(query, existing):
    """Select pods the way an API server does."""
    for pod in existing:
        metadata = pod["metadata"]
        labels = metadata.get("labels") or {}
        key, equals, value = query.labels.partition("=")
        matches = labels.get(key) == value if equals else key.removeprefix("!") not in labels
        if matches and query.namespace in ("", metadata["namespace"]):
            yield f"{metadata['namespace']}/{metadata['name']}"


def test_quotas_are_admitted_as_recorded():
    cases.check("quota_admission", answer, recorded, differences_quota.ADMISSION)
