"""The metrics of reflectors, by resource."""

import logging

from process.runtime import metrics

logger = logging.getLogger(__name__)


class Figures:
    """What one reflector counts."""

    def __init__(self, registry: metrics.Registry, resource: str) -> None:
        labels = ("resource",)
        self._resource = resource
        self.events = registry.counter(
            "koord_kube_watch_events_total", "Objects told by watches.", labels
        ).labels(resource)
        self.lists = registry.counter(
            "koord_kube_lists_total", "Complete lists taken in by reflectors.", labels
        ).labels(resource)
        self.failures = registry.counter(
            "koord_kube_watch_failures_total", "Lists and watches that failed.", labels
        ).labels(resource)
        self.unreadable = registry.counter(
            "koord_kube_unreadable_objects_total", "Objects of an unexpected shape.", labels
        ).labels(resource)
        self.faults = registry.counter(
            "koord_kube_failed_objects_total",
            "Objects left out because a reader of ours failed on them: a fault of ours.",
            labels,
        ).labels(resource)
        self.age = registry.gauge(
            "koord_kube_contact_age_seconds",
            "Since when nothing was heard from the API server; bookmarks come every minute.",
            labels,
        ).labels(resource)
        self.missing = registry.gauge(
            "koord_kube_missing_resources",
            "1 while the API server does not know the resource: its CRD is not installed.",
            labels,
        ).labels(resource)
        self.objects = registry.gauge(
            "koord_kube_store_objects", "Objects kept in the store.", labels
        ).labels(resource)

    def left_out(self, key: str, reason: str) -> None:
        """Note an object that cannot be read and is left out."""
        self.unreadable.inc()
        note = "object is unreadable and left out resource=%s key=%s reason=%s"
        logger.warning(note, self._resource, key, reason)

    def failed(self, key: str, error: Exception) -> None:
        """Note that a listener of the store failed on one object, which is left out."""
        self.faults.inc()
        note = "object is left out since a follower failed on it resource=%s key=%s"
        logger.error(note, self._resource, key, exc_info=error)
