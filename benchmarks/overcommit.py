"""What a full recompute of all that is lent costs, all nodes at once and one by one.

python -m benchmarks.overcommit [--nodes 5000] [--pods 150000] [--rounds 7]

The stores are filled as watches fill them. Then the settings change, as they do when an
administrator edits the ConfigMap: `columns` looks at all nodes at once and says which of them to
write, `nodes` makes the same plan node by node. Both are measured by the processor time of this
process, in turns within one run, and have to come to the same result.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

from api import names
from api.koordinator.metadata import qos
from benchmarks import figures
from domain.devices.requests import accelerators
from domain.lending import colocation
from kube.informers import store
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.model import projections
from manager.overcommit import calculation, inventory, sweep, zones_plan
from manager.overcommit import controller as controllers
from manager.overcommit import plan as node_resource
from manager.reconcile import actions, node_objects
from process.runtime import clock as clocks

_NOW = 1_800_000_000.0
_GIB = 1 << 30
_GOAL_MS = 50
_BANDS = (qos.Band.PROD, qos.Band.PROD, qos.Band.MID, qos.Band.BATCH)
_PRESENT = node_objects.present({"metadata": {"name": "n"}})
_ZONES = 2


class Fleet:
    """A cluster in the stores of a manager."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.nodes: store.Store[projections.Node] = store.Store()
        self.metrics: store.Store[projections.Metric] = store.Store()
        self.pods: store.Store[projections.Pod] = store.Store()
        self.topologies: store.Store[inventory.Topology] = store.Store()
        devices: store.Store[accelerators.Inventory] = store.Store()
        seen = sweep.Sources(self.nodes, self.metrics, self.pods, self.topologies, devices)
        self.stores = controllers.Stores(seen, slices=False)
        self._rng = random.Random(8)
        started = time.process_time()
        for number in range(nodes):
            self._node(f"node-{number:05}", pods // nodes)
        self.filled_seconds = time.process_time() - started
        self.clock = clocks.ManualClock(_NOW)

    def _some(self, cpu: int, gib: int) -> colocation.Amount:
        return colocation.Amount(self._rng.randrange(cpu), self._rng.randrange(gib * _GIB))

    def _node(self, name: str, pods: int) -> None:
        usage: dict[str, tuple[colocation.Amount, qos.Band]] = {}
        for number in range(pods):
            key = f"team-{number % 7}/{name}-{number}"
            band = self._rng.choice(_BANDS)
            zones = (number % _ZONES,) if number % 10 == 0 else ()
            request = self._some(2_000, 4)
            pod = projections.Pod(name, band, request, number % 20 == 0, zones)
            self.pods.put(store.Meta(key, key, 1), pod)
            usage[key] = (self._some(1_000, 2), band)
        report = projections.Report(
            _NOW, self._some(3_000, 8), usage, usage=self._some(40_000, 128),
            reclaimable=self._some(20_000, 32),
        )  # fmt: skip
        self.metrics.put(store.Meta(name, name, 1), projections.Metric(_PRESENT, report))
        self.topologies.put(store.Meta(name, name, 1), _TOPOLOGY)
        self.nodes.put(store.Meta(name, name, 1), _node(name))

    def all_at_once(self, settings: effective.ClusterSettings) -> set[str]:
        """Return the nodes to write, found by looking at all of them at once."""
        return set(self._observer(settings).stores.sweep.look(settings, _NOW, _written).now)

    def one_by_one(self, settings: effective.ClusterSettings) -> set[str]:
        """Return the nodes to write, found by planning each of them."""
        observer = self._observer(settings)
        found = set()
        for node in self.nodes.values():
            seen = observer.seen(settings, node)
            steps = (*node_resource.planned(seen).steps, *self._zones(seen).steps)
            if any(isinstance(step, actions.PatchStatus | actions.Merge) for step in steps):
                found.add(node.name)
        return found

    def _zones(self, seen: calculation.Seen) -> actions.Plan:
        name = seen.node.name
        held = self.stores.demands.held(name)
        return zones_plan.planned(seen, self.topologies.get(name), held, 1)

    def _observer(self, settings: effective.ClusterSettings) -> controllers.Observer:
        return controllers.Observer(self.stores, lambda: settings, self.clock)


def _written(_name: str) -> float:
    return 1.0


def _node(name: str) -> projections.Node:
    return projections.Node(
        name=name,
        uid=name,
        labels={names.LABEL_HOSTNAME: name, "pool": "general"},
        annotations={names.ANNOTATION_CPU_NORMALIZATION: "1.00"},
        capacity=colocation.Amount(64_000, 256 * _GIB),
        allocatable=colocation.Amount(62_000, 248 * _GIB),
        reserved=colocation.Amount(2_000, 8 * _GIB),
        published=({}, {}),
    )


def _zone(number: int) -> dict[str, Any]:
    listed = [
        {"name": "cpu", **dict.fromkeys(inventory.SIDES, "32")},
        {"name": "memory", **dict.fromkeys(inventory.SIDES, "128Gi")},
    ]
    return {"name": f"node-{number}", "type": "Node", "resources": listed}


_TOPOLOGY = inventory.read_topology(
    {"metadata": {"name": "n"}, "zones": [_zone(number) for number in range(_ZONES)]}
)


def _settings(reclaim: int) -> effective.ClusterSettings:
    """Return settings as they were just written."""
    text = json.dumps({"enable": True, "cpuReclaimThresholdPercent": reclaim})
    return cluster_settings.read(None, {"colocation-config": text}).settings


def _milliseconds(
    work: Callable[[effective.ClusterSettings], object], settings: effective.ClusterSettings
) -> float:
    started = time.process_time()
    work(settings)
    return (time.process_time() - started) * 1000


def main() -> None:
    """Measure both ways in turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    fleet = Fleet(arguments.nodes, arguments.pods)
    size = f"{arguments.nodes} nodes, {len(fleet.pods)} pods"
    print(f"filled with {size} in {fleet.filled_seconds:.1f} s of processor time")
    if fleet.all_at_once(_settings(60)) != fleet.one_by_one(_settings(60)):
        raise SystemExit("the two ways disagree about which nodes to write")
    columns, nodes = [], []
    for number in range(arguments.rounds):
        given = _settings(61 + number)
        columns.append(_milliseconds(fleet.all_at_once, given))
        nodes.append(_milliseconds(fleet.one_by_one, given))
    what = f"full recompute, {size}, 2 zones per node, processor time"
    figures.show(
        figures.plain("F8", what, "ms", columns, f"<= {_GOAL_MS}"),
        figures.paired("F8.ratio", what, "ms", columns, nodes, "the same plans node by node"),
    )


if __name__ == "__main__":
    main()
