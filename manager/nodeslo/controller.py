"""Keeps one NodeSLO per node."""

import dataclasses
from collections.abc import Callable

from api import resources
from kube.controllers import controller
from kube.informers import store
from manager.cluster_settings import effective
from manager.model import projections
from manager.nodeslo import plan as node_slo
from manager.reconcile import apply, node_objects


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSLOs:
    """What reconciling the NodeSLO of a node needs to see."""

    nodes: store.Store[projections.Node]
    slos: store.Store[node_objects.Present]
    settings: Callable[[], effective.ClusterSettings | None]
    writer: apply.Writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the NodeSLO of one node about."""
        # Other than lending, this does not wait for readable colocation settings.
        settings = self.settings()
        if settings is None:
            return apply.WAITS
        unseen = self.writer.unseen(resources.NODE_SLOS, name, self.slos)
        if unseen is not None:
            return unseen
        node = self.nodes.get(name)
        there = node_objects.at_version(self.slos.get(name), self.slos.version_of(name))
        if node is None:
            return await self.writer.carry_out(
                node_objects.orphaned(resources.NODE_SLOS, name, there)
            )
        parts = settings.parts(node.labels)
        return await self.writer.carry_out(node_slo.planned(name, there, parts, node.annotations))
