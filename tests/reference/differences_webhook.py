"""Recorded admissions that we answer differently on purpose, and why."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from api import names
from tests.reference import cases

_WITH_VALUES: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


def _has_illegal_selector(profile: Mapping[str, Any]) -> bool:
    return any(
        _WITH_VALUES.get(item["operator"]) is not bool(item.get("values"))
        for selector in ("selector", "namespaceSelector")
        for item in (profile["spec"].get(selector) or {}).get("matchExpressions") or ()
    )


def _has_illegal_probability(profile: Mapping[str, Any]) -> bool:
    written = profile["spec"].get("probability", 100)
    return isinstance(written, str) and not (
        written.endswith("%") and written.removesuffix("%").isdigit()
    )


def _left_out(
    answer: Callable[[cases.Case], Any], illegal: Callable[[Mapping[str, Any]], bool]
) -> Callable[[cases.Case, Any], Any]:
    """What is answered where the illegal profiles do not exist.

    That both answer alike without such profiles is what all other cases show.
    """

    def stated(case: cases.Case, _wanted: Any) -> Any:
        profiles = case.given["profiles"] or []
        legal = [
            one
            for one in profiles
            if not (_has_illegal_selector(one) or _has_illegal_probability(one))
        ]
        if not any(map(illegal, profiles)):
            return cases.UNSTATED
        given = {**case.given, "profiles": legal}
        return answer(cases.Case(case.name, given, case.expected, case.quirk))

    return stated


def _overwritten(answer: Callable[[cases.Case], Any]) -> Callable[[cases.Case, Any], Any]:
    """What is answered where the record of the author is JSON, and empty."""
    key = names.ANNOTATION_EXTENDED_RESOURCE_SPEC

    def stated(case: cases.Case, wanted: Any) -> Any:
        pod = case.given["pod"]
        annotations = pod["metadata"].get("annotations") or {}
        try:
            json.loads(annotations.get(key, "{}"))
        except ValueError:
            metadata = {**pod["metadata"], "annotations": {**annotations, key: "{}"}}
            given = {**case.given, "pod": {**pod, "metadata": metadata}}
            empty = answer(cases.Case(case.name, given, case.expected, case.quirk))
            return empty if wanted == "refused" else cases.UNSTATED
        return cases.UNSTATED

    return stated


def _with_its_overhead(case: cases.Case, wanted: Any) -> Any:
    written = case.given["pod"]["spec"].get("overhead")
    if not written or wanted == "refused":
        return cases.UNSTATED
    return {**wanted, "spec": {**wanted["spec"], "overhead": written}}


def _not_chosen(answer: Callable[[cases.Case], Any]) -> Callable[[cases.Case, Any], Any]:
    """What is answered without profiles, where those that are chosen do not select the pod."""

    def stated(case: cases.Case, _wanted: Any) -> Any:
        profiles = case.given["profiles"] or []
        if any(map(_has_illegal_probability, profiles)):
            return cases.UNSTATED
        chosen = [one for one in profiles if _is_chosen(one, int(case.given["random100"]))]
        if len(chosen) == len(profiles):
            return cases.UNSTATED
        some, none = (
            answer(
                cases.Case(case.name, {**case.given, "profiles": kept}, case.expected, case.quirk)
            )
            for kept in (chosen, [])
        )
        return none if some == none else cases.UNSTATED

    return stated


def _is_chosen(profile: Mapping[str, Any], lot: int) -> bool:
    written = str(profile["spec"].get("probability", 100)).removesuffix("%")
    return lot <= int(written) if 0 < int(written) < 100 else int(written) > 0


def mutation(answer: Callable[[cases.Case], Any]) -> Mapping[str, cases.Difference]:
    """Return the differences of what becomes of a pod, given who answers a case."""
    return {
        "selector": cases.Difference(
            "a profile with an illegal selector is left out and reported; there it matches every "
            "pod",
            _left_out(answer, _has_illegal_selector),
        ),
        "probability": cases.Difference(
            "a profile with an illegal probability is left out; there it refuses every pod",
            _left_out(answer, _has_illegal_probability),
        ),
        "record": cases.Difference(
            "the record of batch resources is overwritten unread; there one that is no JSON is "
            "refused",
            _overwritten(answer),
        ),
        "overhead": cases.Difference(
            "the overhead stays what the RuntimeClass says; there it moves to lent resources, and "
            "the API server refuses the pod",
            _with_its_overhead,
        ),
        "lot": cases.Difference(
            "a pod that the probability of no profile chose stays as it is; there its resources "
            "are rewritten all the same",
            _not_chosen(answer),
        ),
    }


VALIDATION: Final[Mapping[str, cases.Difference]] = {}
