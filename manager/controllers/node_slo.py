"""Keeps one NodeSLO per node."""

from collections.abc import Callable

from api import resources
from kube import controller, store
from manager import apply, cluster, owned, views
from manager.plans import node_slo

_WAITS = controller.Outcome("waits for readable cluster settings", changed=False)


class NodeSLOs:
    """What reconciling the NodeSLO of a node needs to see."""

    def __init__(
        self,
        nodes: store.Store[views.Node],
        slos: store.Store[owned.Present],
        settings: Callable[[], cluster.ClusterSettings | None],
        writer: apply.Writer,
    ) -> None:
        self._nodes = nodes
        self._slos = slos
        self._settings = settings
        self._writer = writer

    async def reconcile(self, name: str) -> controller.Outcome:
        """Bring the NodeSLO of one node about."""
        settings = self._settings()
        if settings is None or not settings.available:
            return _WAITS
        unseen = self._writer.unseen(resources.NODE_SLOS, name, self._slos)
        if unseen is not None:
            return unseen
        node, there = self._nodes.get(name), self._slos.get(name)
        if node is None:
            return await self._writer.carry_out(owned.orphaned(resources.NODE_SLOS, name, there))
        parts = settings.parts(node.labels)
        return await self._writer.carry_out(node_slo.planned(name, there, parts, node.annotations))
