"""Pages and gauges about gangs, for people."""

from collections.abc import Mapping
from typing import Any

from extender.framework import protocols, views
from extender.plugins.coscheduling import summaries, tracker

Pods = protocols.Pods


class Pages:
    """What the pages of Koordinator's tools and the gauge of gangs show."""

    page = tracker.NAME
    collection, item, namespaced = "gangs", "gang", True
    gauge = ("koord_extender_gangs", "Gangs by how far they have come.", "phase", summaries.PHASES)

    def measured(self, view: views.View) -> Mapping[str, float]:
        """Return how many gangs there are in each phase."""
        return summaries.phases(tracker.gangs(view))

    def listed(self, view: views.View, query: Mapping[str, str], pods: Pods) -> dict[str, Any]:
        """Return all gangs by id."""
        del query, pods
        return summaries.listed(tracker.gangs(view))

    def named(
        self, name: str, view: views.View, query: Mapping[str, str], pods: Pods
    ) -> dict[str, Any] | None:
        """Return one gang by its id, namespace/name."""
        del query, pods
        return summaries.summary(tracker.gangs(view), name)
