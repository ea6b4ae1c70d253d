"""The picture that admission decides on, rebuilt when a watch brings a change."""

import logging
import random
from typing import Any

from api import base, colocation, core, resources
from kube import caches, reflector
from kube import store as stores
from webhook import review

logger = logging.getLogger(__name__)


class Pictures:
    """Watches profiles, namespaces and priority classes; hands out one frozen picture."""

    def __init__(self, watched: caches.Caches, gates: frozenset[str], rng: random.Random) -> None:
        self._profiles = watched.add(
            reflector.Projection(resources.COLOCATION_PROFILES, dict, _profile)
        )
        self._namespaces = watched.add(
            reflector.Projection(
                resources.NAMESPACES, core.Namespace, lambda found: found.metadata.labels
            )
        )
        self._classes = watched.add(
            reflector.Projection(resources.PRIORITY_CLASSES, core.PriorityClass, _class)
        )
        self._gates = gates
        self._rng = rng
        self._picture: review.Picture | None = None
        for store in (self._profiles, self._namespaces, self._classes):
            store.listen(self._changed)

    def _changed(self, _change: stores.Change[Any]) -> None:
        self._picture = None

    def present(self) -> review.Picture | None:
        """Return the present picture, None until every list is complete."""
        if not (self._profiles.synced and self._namespaces.synced and self._classes.synced):
            return None
        if self._picture is None:
            self._picture = review.Picture(
                profiles=tuple(self._profiles.values()),
                namespaces=dict(self._namespaces.items()),
                priority_classes=dict(self._classes.items()),
                draw=lambda _: self._rng.randrange(100),
                gates=self._gates,
            )
        return self._picture


def _profile(raw: dict[str, Any]) -> colocation.ClusterColocationProfile | None:
    """Read a profile; one that cannot be read changes no pod, and its author is told in the log."""
    try:
        read = colocation.review_profile(raw)
    except base.ReadError as wrong:
        logger.error("profile left out reason=%s", wrong)
        return None
    for warning in read.warnings:
        logger.warning("profile=%s warning=%s", read.value.name, warning)
    return read.value


def _class(found: core.PriorityClass) -> review.PriorityClass:
    return review.PriorityClass(found.metadata.name, found.value, found.preemption_policy)
