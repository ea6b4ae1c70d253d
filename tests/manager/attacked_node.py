"""A manager's stores of which one node is attacked, and what is decided about the others."""

import gc
import json
import time
from collections.abc import Iterator
from typing import Any

from api import names
from kube.client import wire
from kube.informers import reflector, store
from manager import term
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from manager.overcommit import calculation, fleet_metrics
from manager.overcommit import controller as controllers
from manager.overcommit import plan as node_resource
from process.runtime import clock as clocks
from process.runtime import metrics

NOW = 1_800_000_000.0
REPORTED = "2027-01-15T08:00:00Z"
VICTIM = "victim"
DUTIES = term.Duties("koordinator-system", "slo-controller-config", (), 1, slices=True)
SETTINGS = {
    "colocation-config": {"enable": True},
    "cpu-normalization-config": {"enable": True, "defaultRatio": 1.2},
    "resource-amplification-config": {
        "enable": True,
        "resourceAmplificationRatio": {"cpu": 1.5},
    },
}


class Members:
    """Collects what a manager watches, and fills the stores as its reflectors do."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.seconds = 0.0
        """Of this thread, for the last object."""
        self._readers: dict[str, tuple[wire.Reader[Any], store.Store[Any]]] = {}

    def add(
        self, projection: reflector.Projection[Any], into: store.Store[Any] | None = None
    ) -> store.Store[Any]:
        found: store.Store[Any] = store.Store() if into is None else into
        found.faults = lambda key, error: self.faults.append(f"{key}: {error!r}")
        reader = wire.Reader(projection.type, projection.project)
        self._readers[projection.resource.kind] = reader, found
        return found

    def tell(self, kind: str, body: Any, version: int) -> wire.Item[Any]:
        reader, found = self._readers[kind]
        raw = json.loads(json.dumps(body))
        raw["metadata"] = {**raw["metadata"], "resourceVersion": str(version), "uid": "u"}
        line = json.dumps({"type": "MODIFIED", "object": raw}).encode()
        # What the interpreter collects meanwhile belongs to the test.
        gc.disable()
        started = time.thread_time()
        told = reader.event(line)
        assert isinstance(told, wire.Event)
        found.put(told.item.meta, told.item.value)
        self.seconds = time.thread_time() - started
        gc.enable()
        return told.item


class World:
    """A manager's stores with so many nodes, two pods on each."""

    def __init__(self, nodes: int) -> None:
        self.members = Members()
        self.watched = term.Watched(self.members, DUTIES, lambda _: ())  # type: ignore[arg-type]
        self.version = 0
        self.names = [f"n{number}" for number in range(nodes)]
        data = {key: json.dumps(value) for key, value in SETTINGS.items()}
        self.settings: effective.ClusterSettings = cluster_settings.read(None, data).settings
        self.clock = clocks.ManualClock(NOW)
        self.observer = controllers.Observer(
            self.watched.lending, lambda: self.settings, self.clock
        )
        self.fleet = fleet_metrics.Fleet(self.watched.nodes, self.watched.metrics, self.clock)
        for number, name in enumerate((*self.names, VICTIM)):
            for kind, body in objects(name, number):
                assert self.tell(kind, body).flaw == ""

    def tell(self, kind: str, body: Any) -> wire.Item[Any]:
        self.version += 1
        return self.members.tell(kind, body, self.version)

    def decided(self) -> dict[str, Any]:
        """Return all that is decided about the nodes that nobody attacks."""
        picture = self.watched.lending.sweep.picture(self.settings, NOW)
        looks = self.observer.look()
        assert looks is not None
        later = dict(looks.later)
        found: dict[str, Any] = {}
        for at, node in enumerate(picture.nodes):
            if node.name == VICTIM:
                continue
            found[node.name] = (
                bool(picture.lends[at]),
                picture.offered[:, at].tolist(),
                node.name in looks.now,
                later.get(node.name),
                node_resource.planned(self.seen(node.name)),
            )
        self.fleet.show(metrics.Registry())
        return found

    def seen(self, name: str) -> calculation.Seen:
        node = self.watched.nodes.get(name)
        assert node is not None
        return self.observer.seen(self.settings, node)

    def attacked(self) -> None:
        """Decide about the node of the attack as well; that may say anything, but says it."""
        node = self.watched.nodes.get(VICTIM)
        if node is not None:
            node_resource.planned(self.observer.seen(self.settings, node))


def objects(name: str, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield everything of one node, by kind."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    usage = {"cpu": f"{number % 7 + 1}", "memory": f"{number % 9 + 1}Gi"}
    yield (
        "Node",
        {
            "metadata": {"name": name, "labels": {"a": "b"}, "annotations": {}},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
    )
    for pod in range(2):
        yield "Pod", pod_body(f"{name}-{pod}", name)
    yield (
        "NodeMetric",
        {
            "metadata": {"name": name},
            "spec": {},
            "status": {
                "updateTime": REPORTED,
                "nodeMetric": {
                    "nodeUsage": {"resources": usage},
                    "systemUsage": {"resources": usage},
                },
                "podsMetric": [
                    {"name": f"{name}-0", "namespace": "d", "podUsage": {"resources": {"cpu": "1"}}}
                ],
            },
        },
    )
    zone = {"type": "Node", "name": "node-0"}
    sides = {"capacity": "64", "allocatable": "64", "available": "64"}
    yield (
        "NodeResourceTopology",
        {
            "metadata": {
                "name": name,
                "annotations": {names.ANNOTATION_CPU_BASIC_INFO: '{"cpuModel":"fast"}'},
            },
            "zones": [{**zone, "resources": [{"name": "cpu", **sides}]}],
        },
    )
    yield (
        "Device",
        {
            "metadata": {"name": name},
            "spec": {"devices": [{"type": "gpu", "minor": 0, "health": True, "id": "g"}]},
        },
    )


def pod_body(name: str, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "d", "labels": {}, "annotations": {}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Running"},
    }


def placed(body: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return a copy with a value at a path."""
    copy: dict[str, Any] = json.loads(json.dumps(body))
    at: Any = copy
    for step in path[:-1]:
        at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
    at[path[-1]] = value
    return copy
