"""Where the manager deliberately answers otherwise than the recorded reference, and why.

Per file, each difference by a short name, with the answer that it states. Whole fields of an
answer that are not compared are named as ``batch_resource.zones``.
"""

import json
from collections.abc import Mapping
from typing import Any

from api.wire import quantity
from tests.reference import cases

FIELDS: Mapping[str, str] = {
    "batch_resource.message": (
        "the text is the reference's log line; ours is a sentence in cores and GiB for events"
    ),
    "mid_resource.message": "the same",
}


def _network(case: cases.Case, wanted: Any) -> Any:
    """What adds up of the network that classes request: percentages to 100, amounts to the node's.

    The reference ends such a review in an error of its own, not in the name of a field.
    """
    text = case.given["data"].get("resource-qos-config") or ""
    if "error" not in case.expected or '%"' in text:
        return cases.UNSTATED
    document = json.loads(text)
    system = json.loads(case.given["data"].get("system-config") or "{}")
    cluster, entries = document.get("clusterStrategy"), document.get("nodeStrategies") or []
    bandwidth = (system.get("clusterStrategy") or {}).get(_BANDWIDTH, 0)
    found = _places("", cluster or {}, bandwidth)
    for at, entry in enumerate(entries):
        same = [
            one.get(_BANDWIDTH, 0)
            for one in system.get("nodeStrategies") or ()
            if one.get("nodeSelector") == entry.get("nodeSelector")
        ]
        of_nodes = (same or [0])[0] if system.get("nodeStrategies") else bandwidth
        found += _places(str(at), entry, of_nodes)
    if not any(_requests(one) for one in (cluster or {}, *entries)):
        return cases.UNSTATED
    if not found:
        return {"allowed": True}
    return {"allowed": False, "reason": wanted["reason"], "places": sorted(found)}


_BANDWIDTH = "totalNetworkBandwidth"
_WAYS = ("ingressRequest", "egressRequest")
Place = tuple[str, str, str, str]


def _requests(values: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    networks = {
        name: (values.get(name) or {}).get("networkQOS") or {}
        for name in ("lsrClass", "lsClass", "beClass")
    }
    return [
        (name, way, part[way])
        for name, part in networks.items()
        for way in _WAYS
        if part.get(way) is not None
    ]


def _places(index: str, values: Mapping[str, Any], bandwidth: Any) -> list[Place]:
    found = _requests(values)
    amounts = [(name, way) for name, way, value in found if isinstance(value, str)]
    if amounts and len(amounts) < len(found):
        name, way = amounts[0]
        return [("resource-qos-config", index, name.casefold(), way.casefold())]
    too_much = []
    for way in _WAYS:
        total = sum(quantity.whole(value) for _, one, value in found if one == way)
        most = quantity.whole(bandwidth) if amounts else 100
        if most and total > most:
            too_much.append(("resource-qos-config", index, "", way.casefold()))
    return too_much


DIFFERENCES: Mapping[str, Mapping[str, cases.Difference]] = {
    "configmap_validation": {
        "network amounts": cases.Difference(
            "the reference adds percentages and absolute amounts alike and holds both against 100 "
            "and against the bandwidth, so that no real amount passes; we hold percentages "
            "against 100 and amounts against the bandwidth",
            _network,
            committed=False,
        ),
    },
}


def of(file: str) -> Mapping[str, cases.Difference]:
    """Return the differences of one file by name."""
    return DIFFERENCES.get(file, {})
