"""NodeResourceTopologies during one term of leadership: whether their zones count is written."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import resources
from kube.client import errors
from kube.controllers import controller, workqueue
from kube.informers import shared_store, store
from manager.model import projections
from manager.reconcile import apply
from manager.topology import node_topology_plan
from process.runtime import clock as clocks
from process.runtime import metrics, supervise, token_bucket

NAME: Final = "nodetopology"
_PER_SECOND: Final = 20.0
_BURST: Final = 100
"""Writes; there is one when a node comes, and when what it says becomes wrong or right."""


class NodeTopologies:
    """The informer of NodeResourceTopologies, on every replica."""

    def __init__(
        self,
        written: shared_store.SharedStore[Mapping[str, Any]],
        nodes: store.Store[projections.Node],
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._seen: store.Store[node_topology_plan.NodeTopology] = written.view(
            node_topology_plan.projected
        )
        self._nodes = nodes
        self._clock = clock
        self._registry = registry
        self._bucket = token_bucket.ClockedBucket(clock, _PER_SECOND, _BURST)

    async def run(self, writer: apply.Writer) -> None:
        """Work until cancelled; nodes and topologies are listed before."""

        async def reconcile(name: str) -> controller.Outcome:
            return await self._reconcile(writer, name)

        queue = workqueue.Queue(self._clock)
        keeping = controller.Controller(
            NAME, reconcile, queue, self._clock, registry=self._registry
        )
        stops = [keeping.watch(self._seen), keeping.watch(self._nodes, self._came_or_went)]
        try:
            async with supervise.Supervisor(NAME) as supervisor:
                keeping.start(supervisor)
                await supervisor.stopped()
        finally:
            for stop in stops:
                stop()

    async def _reconcile(self, writer: apply.Writer, name: str) -> controller.Outcome:
        found = self._seen.get(name)
        if found is None:
            return controller.Outcome("there is no NodeResourceTopology", changed=False)
        unseen = writer.unseen(resources.NODE_RESOURCE_TOPOLOGIES, name, self._seen)
        if unseen is not None:
            return unseen
        plan = node_topology_plan.planned(
            found, has_node=name in self._nodes, now=self._clock.now()
        )
        if plan.steps:
            await self._bucket.wait()
        try:
            return await writer.carry_out(plan)
        except errors.NotFound:
            return controller.Outcome("it is gone", changed=False)

    def _came_or_went(self, change: store.Change[projections.Node]) -> Iterator[str]:
        if (change.old is None) is not (change.new is None) and change.key in self._seen:
            yield change.key
