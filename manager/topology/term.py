"""The ClusterNetworkTopology during one term of leadership: what is watched, who writes it."""

from typing import Any

from api import resources
from kube.controllers import controller, workqueue
from kube.informers import informer_set, reflector, store
from manager.model import projections
from manager.reconcile import apply
from manager.topology import controller as topology
from manager.topology import network_object
from process.runtime import clock as clocks
from process.runtime import metrics, supervise


class Networks:
    """The informer of network topologies, on every replica; overcommit does not wait for it."""

    def __init__(
        self,
        members: informer_set.InformerSet,
        nodes: store.Store[projections.Node],
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self.members = members
        self._nodes = nodes
        self._clock = clock
        self._registry = registry
        self._seen = members.add(
            reflector.Projection(
                resources.CLUSTER_NETWORK_TOPOLOGIES,
                dict,
                network_object.projected,
                fields=f"metadata.name={topology.KEY}",
            )
        )

    def told(self) -> tuple[tuple[str, ...], Any]:
        """Return the names of the layers, and the domains that the status names."""
        found = self._seen.get(topology.KEY)
        if found is None:
            return (), None
        return found.layers.names if found.layers is not None else (), found.written

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled; nodes are listed before."""
        await self.members.synced()
        queue = workqueue.Queue(self._clock)
        status = topology.TopologyStatus(self._seen, writer, self._clock)
        keeping = controller.Controller(
            topology.NAME, status.reconcile, queue, self._clock, registry=self._registry
        )

        def follow(change: store.Change[projections.Node]) -> None:
            if status.moved(change):
                queue.add(topology.KEY)

        stops = [self._nodes.listen(follow), keeping.watch(self._seen)]
        try:
            async with supervise.Supervisor("topology") as supervisor:
                keeping.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()
