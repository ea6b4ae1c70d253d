"""The two shapes of events: both groups show one set of objects, stored in the core shape."""

from collections.abc import Mapping
from typing import Any

from simulator.apiserver.registry import kinds

Object = dict[str, Any]

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK = {new: old for old, new in _NAMES.items()}


def is_view(kind: kinds.Kind) -> bool:
    """Tell whether a kind is the newer view of events."""
    return (kind.group, kind.plural) == ("events.k8s.io", "events")


def stored(body: Mapping[str, Any]) -> Object:
    """Return an event of the newer shape as it is stored."""
    return {_BACK.get(key, key): value for key, value in body.items()}


def shown(body: Mapping[str, Any]) -> Object:
    """Return a stored event in the newer shape."""
    return {_NAMES.get(key, key): value for key, value in body.items()}
