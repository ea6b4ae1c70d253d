"""Where the manager deliberately answers otherwise than the recorded reference, and why.

Per file, each difference by a short name; a case is known by what it says. Whole fields of an
answer that are not compared are named as ``batch_resource.zones``.
"""

import json
from collections.abc import Mapping

from tests.reference import cases

FIELDS: Mapping[str, str] = {
    "batch_resource.message": (
        "the text is the reference's log line; ours is a sentence in cores and GiB for events"
    ),
    "mid_resource.message": "the same",
}


def _promised(case: cases.Case) -> bool:
    """Whether the network requests of classes decide a review of the configuration map."""
    text = case.given["data"].get("resource-qos-config") or ""
    if "error" not in case.expected or '%"' in text:
        return False
    document = json.loads(text)
    parts = [document.get("clusterStrategy"), *(document.get("nodeStrategies") or ())]
    networks = [
        (part.get(name) or {}).get("networkQOS") or {}
        for part in parts
        if part
        for name in ("lsrClass", "lsClass", "beClass")
    ]
    return any(
        network.get(f"{way}Request") for network in networks for way in ("ingress", "egress")
    )


DIFFERENCES: Mapping[str, Mapping[str, cases.Difference]] = {
    "configmap_validation": {
        "network amounts": cases.Difference(
            "the reference adds percentages and absolute amounts alike and holds both against 100 "
            "and against the bandwidth, so that no real amount passes; we hold percentages "
            "against 100 and amounts against the bandwidth",
            _promised,
            committed=False,
        ),
    },
}


def of(file: str) -> Mapping[str, cases.Difference]:
    """Return the differences of one file by name."""
    return DIFFERENCES.get(file, {})
