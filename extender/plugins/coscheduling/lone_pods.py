"""Pods that no plan places: by their selector they are brought close to others in the network."""

from domain.gangs import table as tables
from domain.topology import selector as selectors
from domain.topology import tree as trees
from extender.framework import verdicts, views
from extender.plugins.coscheduling import asked, selected_pods, tracker


class Ranker:
    """Puts nodes in order for a pod with a network-topology-selector."""

    def __init__(self) -> None:
        self._order = selectors.Order(trees.Tree())
        """Kept as long as nodes stay where they are: it saves work and changes no answer."""

    def rank(
        self, prepared: asked.Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score | None:
        """Bring a pod close to those with its selector, else to where few nodes are left."""
        del now
        gangs = tracker.gangs(view)
        if prepared.near is None or gangs.network is None:
            return None
        if self._order.paths is not gangs.network.paths:
            self._order = selectors.Order(gangs.network)
        candidates = [view.names[row] for row in rows.tolist()]
        existing = selected_pods.existing(gangs.selected, prepared.near)
        places = self._order.positions(candidates, existing)
        return verdicts.Score(places, more_is_better=False, scale=True)


def near(pod: views.PodInfo, gangs: tracker.Gangs) -> selected_pods.Key | None:
    """Return which pods a pod without a place in a plan is brought close to, if any."""
    selector = pod.requirements.network_selector
    if not selector or gangs.network is None or gangs.network.layers is None:
        return None
    return pod.namespace, selector


def is_topology_free(group: tables.Group) -> bool:
    """Whether no gang of a group asks for a place in the network."""
    return all(entry.gang.topology is None for entry in group.gangs)
