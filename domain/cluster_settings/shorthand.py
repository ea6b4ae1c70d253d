"""What a person has set in shorthand, as the published fields that the manager then gives up."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator.settings import slo
from api.wire import base
from domain import field_ownership

_THRESHOLDS: Final = "resourceThresholdStrategy"
_INTERVAL: Final[field_ownership.Path] = ("metricCollectPolicy", "reportIntervalSeconds")


def in_node_slo(spec: Mapping[str, Any]) -> frozenset[field_ownership.Path]:
    """Return the published fields that the shorthand in a NodeSLO sets."""
    short = dict(_shorthand(spec))
    if not short:
        return frozenset()
    try:
        folded = slo.read_node_slo({"spec": short}).spec.wire()
    except base.ReadError:
        return frozenset()  # What cannot be parsed says nothing.
    folded.pop(_THRESHOLDS, None)
    return frozenset(
        path
        for path, value in field_ownership.leaves(folded)
        if value != {} and slo.BLOCK_IO_SHORTHAND not in path
    )


def _shorthand(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if spec.get(_THRESHOLDS):
        yield _THRESHOLDS, spec[_THRESHOLDS]
    classes = {
        name: {slo.BLOCK_IO_SHORTHAND: settings[slo.BLOCK_IO_SHORTHAND]}
        for name, settings in (spec.get("resourceQOSStrategy") or {}).items()
        if isinstance(settings, Mapping) and slo.BLOCK_IO_SHORTHAND in settings
    }
    if classes:
        yield "resourceQOSStrategy", classes


def in_node_metric(spec: Mapping[str, Any]) -> frozenset[field_ownership.Path]:
    """Return the published fields that the shorthand in a NodeMetric sets."""
    set_there = spec.get("collectionIntervalSeconds") is not None
    return frozenset({_INTERVAL}) if set_there else frozenset()


def without_withdrawn(
    spec: Mapping[str, Any], managed_fields: Any, stated: frozenset[field_ownership.Path]
) -> Mapping[str, Any]:
    """Return a spec as it is once the manager has given up the fields that are stated.

    It gives up what it alone has set.
    """
    ours = field_ownership.owned(managed_fields, field_ownership.is_ours)
    others = field_ownership.owned(managed_fields, lambda one: not field_ownership.is_ours(one))
    for path in stated:
        if field_ownership.covers(ours, path) and not field_ownership.covers(others, path):
            spec = field_ownership.removed(spec, path)
    return spec
