"""The rules answer recorded admissions as the reference implementation did."""

import collections
import re
from typing import Any

from api import colocation
from tests.reference import differences_webhook
from webhook import registry, review
from webhook.rules import extended_spec, pod_resources, profile


def _picture(given: dict[str, Any]) -> review.Picture:
    labels = given["namespaceLabels"]
    namespace = given["pod"]["metadata"]["namespace"]
    return review.Picture(
        profiles=[colocation.read_profile(raw) for raw in given["profiles"] or ()],
        namespaces={} if labels is None else {namespace: labels},
        priority_classes={
            raw["name"]: review.PriorityClass(
                raw["name"], raw["value"], raw.get("preemptionPolicy", "")
            )
            for raw in given["priorityClasses"]
        },
        draw=lambda _: int(given["random100"]),
    )


def _mutated(given: dict[str, Any]) -> review.Pod | review.Refusal:
    pod = given["pod"]
    if given["operation"] != "CREATE":
        return pod
    asked = review.Review("CREATE", pod["metadata"]["namespace"], pod)
    outcome = profile.apply(asked, _picture(given))
    if isinstance(outcome, review.Refusal):
        return outcome
    changed = pod_resources.rewrite(outcome.pod) if outcome.rewrite else outcome.pod
    return changed if isinstance(changed, review.Refusal) else extended_spec.record(changed)


def _tidy(pod: Any) -> Any:
    """Drop the empty maps that the recording leaves out."""
    metadata = {k: v for k, v in pod["metadata"].items() if v not in ({}, None)}
    spec = dict(pod["spec"])
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [
                {k: v for k, v in c.items() if k != "resources" or v} for c in spec[group]
            ]
    return {"metadata": metadata, "spec": spec}


def test_mutations(mutations: list[dict[str, Any]]) -> None:
    checked: collections.Counter[str] = collections.Counter()
    for number, line in enumerate(mutations):
        given, expected = line["in"], line["out"]
        different = differences_webhook.of_mutation(given)
        checked[different] += 1
        if different:
            continue
        found = _mutated(given)
        if "error" in expected:
            assert isinstance(found, review.Refusal), (number, expected, found)
            continue
        assert not isinstance(found, review.Refusal), (number, expected, found)
        wanted = expected["pod"] if expected["mutated"] else given["pod"]
        assert _tidy(found) == _tidy(wanted), number
    assert checked[""] > 350, checked


def _parts(reason: str) -> list[str]:
    """Split a recorded reason into its faults, each of which begins with a field."""
    inner = reason[1:-1] if reason.startswith("[") else reason
    return re.split(r", (?=[A-Za-z./*\[\]]+: [A-Z])", inner)


def test_validations(validations: list[dict[str, Any]]) -> None:
    checked: collections.Counter[str] = collections.Counter()
    for number, line in enumerate(validations):
        given, expected = line["in"], line["out"]
        different = differences_webhook.of_validation(expected)
        checked[different] += 1
        if different:
            continue
        pod = given["pod"]
        asked = review.Review(
            given["operation"], pod["metadata"]["namespace"], pod, given.get("oldPod")
        )
        gates = frozenset(name for name, on in given.get("featureGates", {}).items() if on)
        picture = review.Picture((), {}, {}, lambda _: 0, gates)
        refusal = registry.validate_pod(asked, picture).refusal
        if expected["allowed"]:
            assert refusal is None, (number, refusal)
            continue
        assert refusal is not None, (number, expected)
        assert refusal.group == expected["group"], (number, refusal)
        fields = [reason.split(": ")[0] for reason in refusal.reasons]
        assert [part.split(": ")[0] for part in _parts(expected["reason"])] == fields, number
    assert checked[""] > 400, checked
