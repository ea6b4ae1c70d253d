"""Recorded admissions that we answer differently on purpose, and why."""

from collections.abc import Mapping
from typing import Any, Final

from tests.reference import cases

_WITH_VALUES: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def _has_illegal_selector(case: cases.Case) -> bool:
    return any(
        _WITH_VALUES.get(item["operator"]) is not bool(item.get("values"))
        for profile in case.given["profiles"] or ()
        for selector in ("selector", "namespaceSelector")
        for item in (profile["spec"].get(selector) or {}).get("matchExpressions") or ()
    )


def _has_illegal_probability(case: cases.Case) -> bool:
    return any(
        _is_illegal(profile["spec"].get("probability", 100))
        for profile in case.given["profiles"] or ()
    )


def _is_illegal(written: Any) -> bool:
    return isinstance(written, str) and not (
        written.endswith("%") and written.removesuffix("%").isdigit()
    )


MUTATION: Final[Mapping[str, cases.Difference]] = {
    "selector": cases.Difference(
        "a profile with an illegal selector is left out and reported; there it matches every pod",
        _has_illegal_selector,
    ),
    "probability": cases.Difference(
        "a profile with an illegal probability is left out; there it refuses every pod",
        _has_illegal_probability,
    ),
}
VALIDATION: Final[Mapping[str, cases.Difference]] = {}
