"""Recorded admissions that we answer differently on purpose, and why."""

from typing import Any

DEVICES = "device requests are normalised and checked once shared devices can be placed"
SELECTOR = "a profile with an illegal selector is left out and reported; there it matches every pod"
PROBABILITY = "a profile with an illegal probability is left out; there it refuses every pod"

DEVICE_NAMES = ("koordinator.sh/gpu",)
WITH_VALUES = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def of_mutation(given: dict[str, Any]) -> str:
    """Return why the recorded answer to a mutation does not apply, or nothing."""
    resources = [c.get("resources", {}) for c in given["pod"]["spec"]["containers"]]
    asked = {name for part in resources for amounts in part.values() for name in amounts}
    if any(name.startswith(DEVICE_NAMES) for name in asked):
        return DEVICES
    for profile in given["profiles"] or ():
        probability = str(profile["spec"].get("probability", "100%"))
        if not probability.removesuffix("%").isdigit():
            return PROBABILITY
        for selector in ("selector", "namespaceSelector"):
            for item in (profile["spec"].get(selector) or {}).get("matchExpressions") or ():
                if WITH_VALUES.get(item["operator"]) is not bool(item.get("values")):
                    return SELECTOR
    return ""


def of_validation(answered: dict[str, Any]) -> str:
    """Return why the recorded answer to a validation does not apply, or nothing."""
    return DEVICES if answered.get("group") == "device" else ""
