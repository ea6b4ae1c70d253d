"""Recorded reviews of the configuration map."""

import json
import re

import pytest

from domain.cluster_settings import configmap_review
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
    found = configmap_review.review(
        configmap_review.Question(given["data"] or {}, given.get("oldData") or {}, lambda: nodes)
    )
    if found is None:
        return {"allowed": True}
    said: dict = {"allowed": False, "reason": str(found.reason)}
    if found.entries:
        said["conflict"] = (found.key, list(found.entries))
    elif found.reason is configmap_review.Reason.INVALID:
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
    elif "error" in out:
        # The reference names the amount at the beginning of a sentence.
        said["places"] = [where(out["error"].partition(":")[0])]
    elif said["reason"] == "ConfigParamInvalid":
        said["places"] = [unselected(case.given)]
    return said


def unselected(given: dict) -> tuple[str, ...]:
    """Find the first entry that selects every node, which the reference refuses without a word."""
    for key in KEYS.values():
        text = (given["data"] or {}).get(key)
        if not text or text == (given.get("oldData") or {}).get(key):
            continue
        document = json.loads(text)
        entries = document.get("nodeStrategies") or document.get("nodeConfigs") or ()
        for at, entry in enumerate(entries):
            if not entry.get("nodeSelector"):
                return key, str(at), "", "nodeselector"
    raise AssertionError("every entry selects some nodes")


@pytest.mark.vectors
def test_reviews_of_the_reference() -> None:
    file = "configmap_validation"
    cases.check(file, answer, expected, differences.of(file))
