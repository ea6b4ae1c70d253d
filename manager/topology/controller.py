"""Keeps the status of the ClusterNetworkTopology named default equal to what nodes form."""

from typing import Final

from api import names, resources
from domain.topology import tree as trees
from kube.controllers import controller
from kube.informers import store
from manager.model import projections
from manager.reconcile import apply
from manager.topology import network_object, status_plan
from process.runtime import clock as clocks

NAME: Final = "topologystatus"
KEY: Final = names.DEFAULT_NETWORK_TOPOLOGY
REST_SECONDS: Final = 10.0
"""Pause between two writes; nodes that come or change meanwhile go into one write."""


class TopologyStatus:
    """The status of one ClusterNetworkTopology during one term of leadership."""

    def __init__(
        self,
        seen: store.Store[network_object.NetworkObject],
        writer: apply.Writer,
        clock: clocks.Clock,
    ) -> None:
        self._seen = seen
        self._writer = writer
        self._clock = clock
        self._tree = trees.Tree()
        self._next_at = 0.0

    def moved(self, change: store.Change[projections.Node]) -> bool:
        """Take in a node that came, changed or went; return whether the tree changes by it."""
        before = self._tree
        new = change.new
        self._tree = before.with_node(change.key, None if new is None else new.labels)
        if self._tree.paths is not before.paths:
            return True
        return (change.old is None) is not (new is None)

    async def reconcile(self, name: str) -> controller.Outcome:
        """Write the domains that there are, where the status says something else."""
        found = self._seen.get(name)
        if found is None:
            self._tree = self._tree.with_layers(None)
            return controller.Outcome("there is no ClusterNetworkTopology", changed=False)
        if found.layers is not None:
            self._tree = self._tree.with_layers(found.layers)
        unseen = self._writer.unseen(resources.CLUSTER_NETWORK_TOPOLOGIES, name, self._seen)
        if unseen is not None:
            return unseen
        rest = self._next_at - self._clock.monotonic()
        if rest > 0:
            return controller.Outcome("written just now", requeue_after=rest, changed=False)
        plan = status_plan.planned(found, self._tree, self._clock.now())
        outcome = await self._writer.carry_out(plan)
        if outcome.changed:
            self._next_at = self._clock.monotonic() + REST_SECONDS
        return outcome
