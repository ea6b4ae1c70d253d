"""The part that tells how this node is built; loaded only where its gate is on."""

from collections.abc import Callable
from typing import Final

from agent.model import state
from agent.report import node_resource_topology, object_writer
from kube.client import client
from process.runtime import clock as clocks

SECONDS: Final = 3.0
"""Time between two comparisons with what was told; nothing is written unless it differs."""


def own(
    kube: client.Client,
    clock: clocks.Clock,
    name: str,
    look: Callable[[], state.NodeState | None],
    tick_seconds: float,
) -> object_writer.Own:
    """Return who keeps the NodeResourceTopology of this node; nothing changes between two looks."""
    place = object_writer.Place(node_resource_topology.RESOURCE, name, max(SECONDS, tick_seconds))
    return object_writer.Own(kube, clock, place, Wanted(look))


class Wanted:
    """The object as it should be, put together again only when the picture has changed."""

    def __init__(self, look: Callable[[], state.NodeState | None]) -> None:
        self._look = look
        self._from: tuple[object, ...] | None = None
        self._report: node_resource_topology.Report | None = None

    def __call__(self, current: object_writer.Object | None) -> object_writer.Object | None:
        """Return the object; None while a part of what it says is unknown."""
        picture = self._look()
        if picture is None:
            return None
        whence = _whence(picture)
        if whence != self._from:
            self._from, self._report = whence, node_resource_topology.report(picture)
        return (
            None if self._report is None else node_resource_topology.merged(self._report, current)
        )


def _whence(picture: state.NodeState) -> tuple[object, ...]:
    """Return everything that the object follows from."""
    node = picture.node
    about = None
    if node is not None:
        about = node.metadata, node.status.capacity, node.status.allocatable
    bound = tuple((pod.qos, pod.cpus) for pod in picture.pods if pod.cpus)
    return (
        about,
        bound,
        picture.processors,
        picture.numa,
        picture.processor_info,
        picture.kubelet,
        picture.reserved,
        picture.pods_known,
    )
