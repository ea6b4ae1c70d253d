"""Recorded reviews of the configuration map."""

import re

import pytest

from domain import settings_review
from tests.reference import cases, differences

KEYS = {
    "ColocationCfg": "colocation-config",
    "ResourceThresholdCfg": "resource-threshold-config",
    "ResourceQOSCfg": "resource-qos-config",
    "CPUBurstCfg": "cpu-burst-config",
    "SystemCfg": "system-config",
}
CLASS = re.compile(r"(lsr|ls|be|system)Class|cgroupRoot", re.IGNORECASE)
INDEX = re.compile(r"\[(\d+)\]")


def where(path: str) -> tuple[str, ...]:
    """Reduce a path to what both spellings share: key, entry, class and field."""
    first, *_ = path.split(".")
    index, group = INDEX.search(path), CLASS.search(path)
    return (
        KEYS.get(first, first),
        index[1] if index else "",
        group[0].casefold() if group else "",
        path.rpartition(".")[2].casefold(),
    )


def answer(case: cases.Case) -> dict:
    given = case.given
    nodes = {
        node["metadata"]["name"]: node["metadata"].get("labels") or {}
        for node in given["nodes"] or ()
    }
    found = settings_review.review(
        settings_review.Question(given["data"] or {}, given.get("oldData") or {}, lambda: nodes)
    )
    if found is None:
        return {"allowed": True}
    said: dict = {"allowed": False, "reason": str(found.reason)}
    if found.entries:
        said["conflict"] = (found.key, list(found.entries))
    elif found.reason is settings_review.Reason.INVALID:
        said["places"] = sorted(where(fault.path) for fault in found.faults)
    return said


def expected(case: cases.Case) -> dict:
    out = case.expected
    if out["allowed"]:
        return {"allowed": True}
    said: dict = {"allowed": False, "reason": out.get("reason", "ConfigParamInvalid")}
    if "conflict" in out:
        said["conflict"] = (out["conflict"]["config"], out["conflict"]["strategies"])
    elif "fields" in out:
        said["places"] = sorted(map(where, out["fields"]))
    elif said["reason"] == "ConfigParamInvalid":
        # The reference tells in prose only which selector or amount it is.
        said["places"] = answer(case).get("places")
    return said


@pytest.mark.vectors
def test_reviews_of_the_reference() -> None:
    file = "configmap_validation"
    cases.check(file, answer, expected, differences.of(file))
