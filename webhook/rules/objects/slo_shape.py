"""Check NodeSLOs and NodeMetrics: values out of range, and settings that contradict each other."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from api.koordinator.metrics import nodemetric
from api.koordinator.settings import configuration, slo
from api.wire import base
from domain import field_ownership
from domain.cluster_settings import conflicts, shorthand, value_limits
from webhook import review

_THRESHOLDS: Final = "resourceUsedThresholdWithBE"
_CLASSES_OF: Final = "resourceQOSStrategy"
_HOSTS: Final = "hostApplications"


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at values and their limits, and at bounds that belong together."""
    read = slo.review_node_slo(_settled(asked.object, shorthand.in_node_slo))
    warnings = (*read.warnings, *conflicts.of(read.value.spec))
    return review.Findings(tuple(_faults(asked.object)), warnings)


def check_metric(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Report where the two shapes of a NodeMetric disagree."""
    settled = _settled(asked.object, shorthand.in_node_metric)
    return review.Findings((), nodemetric.review_node_metric(settled).warnings)


def _settled(
    body: review.Pod, stated: Callable[[Mapping[str, Any]], frozenset[field_ownership.Path]]
) -> review.Pod:
    """Return an object as it will be once the manager has given up what the shorthand sets.

    A warning that the manager's value is used would be wrong a moment later.
    """
    spec = review.section(body, "spec")
    managed = review.section(body, "metadata").get("managedFields")
    return {**body, "spec": shorthand.without_withdrawn(spec, managed, stated(spec))}


def _faults(body: review.Pod) -> Iterator[str]:
    """Yield the values that are not allowed, but for those that a manager alone has set.

    They come from the cluster settings, where they are refused or reported. Refused here, they
    would keep every other setting from the node.
    """
    # What plug-ins write has any depth, and is not looked at.
    spec = base.read(slo.NodeSLO, body).spec.but(extensions={})
    hosts = tuple(one.but(strategy=None) for one in spec.host_applications)
    written = spec.but(host_applications=hosts).wire()
    said = _without_managers(written, review.section(body, "metadata").get("managedFields"))
    thresholds = ((f"spec.{_THRESHOLDS}", said.get(_THRESHOLDS) or {}),)
    quality = said.get(_CLASSES_OF) or {}
    faults = itertools.chain(
        value_limits.faults(configuration.RESOURCE_THRESHOLD, thresholds, pairs=False),
        value_limits.unknown_words(configuration.RESOURCE_QOS, f"spec.{_CLASSES_OF}", quality),
        value_limits.unknown_host_words(f"spec.{_HOSTS}", said.get(_HOSTS) or ()),
    )
    return (str(fault) for fault in faults)


def _without_managers(written: Mapping[str, Any], managed_fields: Any) -> dict[str, Any]:
    managers = field_ownership.owned(managed_fields, field_ownership.is_managers)
    others = field_ownership.owned(
        managed_fields, lambda entry: not field_ownership.is_managers(entry)
    )
    kept: dict[str, Any] = {}
    for path, value in field_ownership.leaves(written):
        if field_ownership.covers(others, path) or not field_ownership.covers(managers, path):
            field_ownership.place(kept, path, value)
    return kept
