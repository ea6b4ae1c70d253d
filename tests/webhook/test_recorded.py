"""The rules answer recorded admissions as the reference implementation did."""

import re
from typing import Any

import pytest

from api import names
from api.koordinator import colocation
from tests.reference import cases, differences_webhook
from webhook import pods, review

pytestmark = pytest.mark.vectors

OURS = {names.ANNOTATION_PROFILES, names.ANNOTATION_CHANGES}


def _profiles(given: dict[str, Any]) -> list[colocation.ClusterColocationProfile]:
    """Read the profiles as the running webhook does: one that cannot be read is left out."""
    read = []
    for raw in given["profiles"] or ():
        try:
            read.append(colocation.read_profile(raw))
        except ValueError:
            continue
    return read


def _picture(given: dict[str, Any]) -> review.Picture:
    labels = given["namespaceLabels"]
    namespace = given["pod"]["metadata"]["namespace"]
    return review.Picture(
        profiles=_profiles(given),
        namespaces={} if labels is None else {namespace: labels},
        priority_classes={
            raw["name"]: review.PriorityClass(
                raw["name"], raw["value"], raw.get("preemptionPolicy", "")
            )
            for raw in given["priorityClasses"]
        },
        draw=lambda _: int(given["random100"]),
    )


def _mutated(case: cases.Case) -> Any:
    given, pod = case.given, case.given["pod"]
    asked = review.Review(given["operation"], pod["metadata"]["namespace"], pod)
    if given["operation"] != "CREATE":
        decision = pods.mutate(asked, _picture(given))
        changed = pod if decision.object is None else decision.object
        return "refused" if decision.refusal else _tidy(changed)
    made = pods.completed(asked, _picture(given))
    return "refused" if isinstance(made, review.Refusal) else _tidy(made.pod)


def _expected(case: cases.Case) -> Any:
    if "error" in case.expected:
        return "refused"
    return _tidy(case.expected["pod"] if case.expected["mutated"] else case.given["pod"])


def _tidy(pod: Any) -> Any:
    """Drop what only we write, and the empty maps that the recording leaves out."""
    metadata = dict(pod["metadata"])
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {k: v for k, v in annotations.items() if k not in OURS}
    metadata = {k: v for k, v in metadata.items() if v not in ({}, None)}
    spec = dict(pod["spec"])
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [
                {k: v for k, v in c.items() if k != "resources" or v} for c in spec[group]
            ]
    return {"metadata": metadata, "spec": spec}


def test_mutations() -> None:
    counted = cases.check(
        "pod_mutation", _mutated, _expected, differences_webhook.mutation(_mutated)
    )
    assert counted[""] > 0.9 * sum(counted.values()), counted


def _parts(reason: str) -> list[str]:
    """Split a recorded reason into its faults, each of which begins with a field."""
    inner = reason[1:-1] if reason.startswith("[") else reason
    return re.split(r", (?=[A-Za-z./*\[\]]+: [A-Z])", inner)


def _answer(group: str, reasons: list[str]) -> Any:
    """Keep of every fault the field and what is wrong with it, of devices the value; each once."""
    faults = [tuple(text.split(": ")[: _told(group, text)]) for text in reasons]
    return group, list(dict.fromkeys(faults))


def _told(group: str, text: str) -> int:
    return 3 if group == "device" and ": Invalid value: " in text else 2


def _checked(case: cases.Case) -> Any:
    pod = case.given["pod"]
    asked = review.Review(
        case.given["operation"], pod["metadata"]["namespace"], pod, case.given.get("oldPod")
    )
    gates = frozenset(name for name, on in (case.given.get("featureGates") or {}).items() if on)
    refusal = pods.validate(asked, review.Picture((), {}, {}, lambda _: 0, gates)).refusal
    return "allowed" if refusal is None else _answer(refusal.group, list(refusal.reasons))


def _recorded(case: cases.Case) -> Any:
    if case.expected["allowed"]:
        return "allowed"
    return _answer(case.expected["group"], _parts(case.expected["reason"]))


def test_validations() -> None:
    counted = cases.check("pod_validation", _checked, _recorded, differences_webhook.VALIDATION)
    assert counted[""] > 0.9 * sum(counted.values()), counted
