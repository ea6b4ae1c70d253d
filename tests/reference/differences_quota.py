"""Recorded admissions of quotas that we answer differently on purpose, and why.

A case is a list of steps; each difference states the answers to the steps that it is about.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from api import names
from tests.reference import cases

Step = Mapping[str, Any]
Stored = Mapping[str, Mapping[str, Any]]
"""The quotas by name that the recorded answers before a step have led to."""


def _walk(case: cases.Case) -> Iterator[tuple[Step, Step, Stored]]:
    stored: dict[str, Mapping[str, Any]] = {}
    for step, out in zip(case.given["steps"], case.expected["steps"], strict=True):
        yield step, out, dict(stored)
        if not out["allowed"]:
            continue
        if step["op"] == "delete":
            stored.pop(step["name"], None)
        elif step["op"] != "pod":
            metadata = step["quota"]["metadata"]
            labels = out.get("labels", metadata.get("labels") or {})
            notes = out.get("annotations", metadata.get("annotations") or {})
            whole = {**metadata, "labels": labels, "annotations": notes}
            stored[metadata["name"]] = {**step["quota"], "metadata": whole}


def _stepwise(
    answer: Callable[[cases.Case, Step, Step, Stored], Any],
) -> Callable[[cases.Case, Any], Any]:
    """Replace the answers to the steps about which something is stated."""

    def stated(case: cases.Case, wanted: Any) -> Any:
        due = list(wanted["steps"])
        for number, (step, out, stored) in enumerate(_walk(case)):
            instead = answer(case, step, out, stored)
            if instead is not cases.UNSTATED:
                due[number] = instead
        return cases.UNSTATED if due == wanted["steps"] else {**wanted, "steps": due}

    return stated


def _refused(cause: str) -> Mapping[str, str]:
    return {"stage": "validating", "cause": cause}


def _unknown_deleted(case: cases.Case, step: Step, _out: Step, stored: Stored) -> Any:
    if step["op"] != "delete" or step["name"] in stored or step["name"] in names.RESERVED_QUOTAS:
        return cases.UNSTATED
    labels = [pod["metadata"].get("labels") or {} for pod in case.given["existingPods"]]
    used = any(one.get(names.LABEL_QUOTA_NAME) == step["name"] for one in labels)
    return _refused("has-pods") if used else {}


def _extra_weights(_case: cases.Case, step: Step, out: Step, _stored: Stored) -> Any:
    if step["op"] != "create" or not out["allowed"]:
        return cases.UNSTATED
    key = names.ANNOTATION_QUOTA_WEIGHT
    written = (step["quota"]["metadata"].get("annotations") or {}).get(key)
    if not written:
        return cases.UNSTATED
    recorded = json.loads(out["annotations"][key])
    notes = {**out["annotations"], key: {**json.loads(written), **recorded}}
    return {"labels": out["labels"], "annotations": notes}


def _bad_weights(_case: cases.Case, step: Step, out: Step, stored: Stored) -> Any:
    """Refuse weights that are changed to nonsense, where nothing else was changed."""
    if step["op"] != "update" or not out["allowed"]:
        return cases.UNSTATED
    quota, key = step["quota"], names.ANNOTATION_QUOTA_WEIGHT
    text, before = (
        (one["metadata"].get("annotations") or {}).get(key)
        for one in (quota, stored[quota["metadata"]["name"]])
    )
    if not text or text == before:
        return cases.UNSTATED
    try:
        weights = json.loads(text)
    except ValueError:
        return _refused("weight-unreadable")
    negative = any(str(value).startswith("-") for value in weights.values())
    return _refused("weight-negative") if negative else cases.UNSTATED


def _said(quota: Mapping[str, Any]) -> Any:
    metadata = quota["metadata"]
    labels, notes = (metadata.get(part) or {} for part in ("labels", "annotations"))
    return (
        quota.get("spec"),
        [labels.get(f"{_PREFIX}/{key}") or "" for key in ("parent", "is-parent", "tree-id")],
        [notes.get(f"{_PREFIX}/{key}") or "" for key in ("namespaces", "shared-weight")],
    )


_PREFIX: Final = "quota.scheduling.koordinator.sh"


def _circle(_case: cases.Case, step: Step, out: Step, stored: Stored) -> Any:
    """Refuse a quota that would be above itself."""
    if step["op"] not in ("create", "update") or not out["allowed"]:
        return cases.UNSTATED
    metadata = step["quota"]["metadata"]
    above = {
        name: (one["metadata"].get("labels") or {}).get(names.LABEL_QUOTA_PARENT)
        for name, one in stored.items()
    }
    old, new = stored.get(metadata["name"]), (metadata.get("labels") or {})
    if old is not None and _said(old) == _said(step["quota"]):
        return cases.UNSTATED  # Nothing is checked where nothing changed.
    above[metadata["name"]] = new.get(names.LABEL_QUOTA_PARENT)
    name, seen = above[metadata["name"]], set[str]()
    while name and name not in seen:
        if name == metadata["name"] != names.ROOT_QUOTA:
            return _refused("parent-below")
        seen.add(name)
        name = above.get(name)
    return cases.UNSTATED


def _unmoved_pod(_case: cases.Case, step: Step, out: Step, _stored: Stored) -> Any:
    if step["op"] != "pod" or "oldPod" not in step or out["allowed"]:
        return cases.UNSTATED
    now, before = (step[part]["metadata"].get("labels") or {} for part in ("pod", "oldPod"))
    return {} if now == before else cases.UNSTATED


ADMISSION: Final[Mapping[str, cases.Difference]] = {
    "unknown": cases.Difference(
        "a quota that is not known may be deleted unless pods name it: the API server asks about "
        "stored objects only, and one that no reader understands must not stay for ever",
        _stepwise(_unknown_deleted),
    ),
    "extra weights": cases.Difference(
        "weights of resources that max lacks stay as they are written; there they are taken out",
        _stepwise(_extra_weights),
    ),
    "bad weights": cases.Difference(
        "weights are checked whenever they change; there an update of annotations alone is not",
        _stepwise(_bad_weights),
    ),
    "circle": cases.Difference(
        "a quota that is moved below itself is refused; there it leaves the tree with all below it",
        _stepwise(_circle),
    ),
    "unmoved pod": cases.Difference(
        "a pod that keeps its quota may change although that quota has become a parent; there it "
        "can lose neither a finalizer nor a label",
        _stepwise(_unmoved_pod),
    ),
}


def _resources_of_others(case: cases.Case, wanted: Any) -> Any:
    """What becomes of pods whose quota names a single resource, in whole units, of somebody else.

    Counted here a second time, in the plainest way.
    """
    name = "example.com/x"
    quota = case.given["quota"]
    if set(quota["spec"]["max"]) != {name}:
        return cases.UNSTATED
    notes = quota["metadata"].get("annotations") or {}
    limits = json.loads(notes.get(f"{_PREFIX}/admission") or "{}") or quota["spec"]["max"]
    used, due = 0, []
    for batch, out in zip(case.given["batches"], wanted, strict=True):
        results: list[str | bool] = []
        for pod in batch:
            asked = _asked(pod, name)
            if asked and name in limits and used + asked > int(limits[name]):
                before = f"{name}={used}" if used else ""
                results.append(
                    f"exceeded quota: ns/q, requested: {name}={asked}, used: {before}, "
                    f"limited: {name}={limits[name]}"
                )
            else:
                results.append(False)
                used += asked
        added = {**(out["used"] or {}), name: used} if used else out["used"]
        due.append({"results": results, "used": added})
    return due


def _asked(pod: Mapping[str, Any], name: str) -> int:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    running, starting = (
        [int((one["resources"].get("requests") or {}).get(name, 0)) for one in pod["spec"][part]]
        if part in pod["spec"]
        else []
        for part in ("containers", "initContainers")
    )
    return max(sum(running), *starting, 0)


EVALUATION: Final[Mapping[str, cases.Difference]] = {
    "resources of others": cases.Difference(
        "a quota of resources that Kubernetes and the reference do not know is enforced like any; "
        "there its pods are let in unseen",
        _resources_of_others,
    )
}
