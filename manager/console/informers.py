"""What the console watches, and what it takes from other capabilities of the manager."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from api import resources
from api.kubernetes import core
from domain.quota.tree import forest as forests
from kube.informers import informer_set, reflector, shared_store, store
from manager.console.views import devices, gangs, migrations, pods, reservations
from manager.model import projections

Raw = Mapping[str, Any]


def _nothing() -> tuple[()]:
    return ()


def _no_network() -> tuple[tuple[str, ...], Any]:
    return (), None


@dataclasses.dataclass(frozen=True, slots=True)
class Shared:
    """What other capabilities keep already; of those that are off there is nothing."""

    nodes: store.Store[projections.Node]
    metrics: store.Store[projections.Metric]
    pods: shared_store.SharedStore[core.Pod]
    lending: Callable[[str], Raw | None]
    """Why the node of a name lends what it lends; None while that is not known."""
    forest: Callable[[], forests.Forest]
    """All quotas."""
    devices: Callable[[], devices.Found]
    """Devices by node."""
    pod_groups: Callable[[], Iterable[gangs.Group]] = _nothing
    reservations: shared_store.SharedStore[Raw] | None = None
    network: Callable[[], tuple[tuple[str, ...], Any]] = _no_network
    """Names of the layers of the network's topology, and the domains in its status."""


class Watched:
    """The stores of the console."""

    def __init__(self, members: informer_set.InformerSet, shared: Shared) -> None:
        self.members = members
        self.shared = shared
        self.index = pods.PodIndex()
        shared.pods.view(pods.Reader().pod).listen(self.index.changed)
        self.reservations: store.Store[reservations.Reservation] = (
            store.Store()
            if shared.reservations is None
            else shared.reservations.view(reservations.projected)
        )
        self.migrations = members.add(
            reflector.Projection(resources.POD_MIGRATION_JOBS, dict, migrations.projected)
        )

    def report(self, node: str) -> projections.Report | None:
        """Return what the agent of a node measured last."""
        found = self.shared.metrics.get(node)
        return None if found is None else found.report
