"""A cluster in the form in which the extender keeps it: amounts in columns, the rest in indexes."""

import msgspec
import numpy as np

from domain.scoring import columns, objects, pod, profile, releases, requests, totals
from domain.scoring.indexes import cluster, workloads

Object = dict[str, object]


def read_pod(written: Object) -> objects.Pod:
    """Return a pod as it is decoded from the API server."""
    return msgspec.json.decode(msgspec.json.encode(written), type=objects.Pod)


def read_node(written: Object) -> objects.Node:
    """Return a node as it is decoded from the API server."""
    return msgspec.json.decode(msgspec.json.encode(written), type=objects.Node)


class Cluster:
    """Nodes in the order of their rows, pods on them, and controllers and Services."""

    def __init__(self, settings: profile.ScoringProfile) -> None:
        self.settings, self.release = settings, settings.release
        self.names: list[str] = []
        self.indexes = cluster.ClusterIndexes()
        self.workloads = workloads.WorkloadIndex()
        self._resources = {name: place for place, name in enumerate(settings.resources)}
        self._shape = (len(self._resources), 256)
        self._allocatable = np.zeros(self._shape, dtype=np.int64)
        self._requested = np.zeros(self._shape, dtype=np.int64)
        self._nonzero = np.zeros((2, self._shape[1]), dtype=np.int64)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.names)

    def add_node(self, node: objects.Node) -> None:
        """Give a node the next row."""
        row = self.size
        self.names.append(node.metadata.name)
        self.indexes.set_node(row, node)
        offered = requests.offered(node.status.allocatable)
        for name, place in self._resources.items():
            self._allocatable[place, row] = offered.get(name, 0)

    def add_workload(self, written: Object) -> None:
        """Note a Service or a controller."""
        metadata, spec = written["metadata"], written["spec"]
        assert isinstance(metadata, dict)
        assert isinstance(spec, dict)
        place = (metadata["namespace"], metadata["name"])
        if written["kind"] == "Service":
            self.workloads.set_service(*place, spec.get("selector"))
        else:
            self.workloads.set_controller(str(written["kind"]), *place, spec.get("selector"))

    def place(self, placed: objects.Pod, node: str) -> None:
        """Put a pod on a node."""
        row = self.names.index(node)
        plain = requests.plain(placed, self.release)
        for name, place in self._resources.items():
            self._requested[place, row] += plain.get(name, 0)
        self._nonzero[:, row] += requests.nonzero_placed(placed, self.release)
        self.indexes.pods.add(row, placed.metadata.namespace, placed.metadata.labels)

    def nodes(self) -> columns.NodeColumns:
        """Return the amounts."""
        return columns.NodeColumns(
            self._resources, self._allocatable, self._requested, self._nonzero
        )

    def scores(self, pending: objects.Pod, candidates: list[str]) -> totals.Scores:
        """Score a pod on these nodes."""
        scored = pod.read(pending, self.release, self.workloads.selector(pending.metadata))
        rows = np.array([self.names.index(name) for name in candidates], dtype=np.int64)
        compared = self.indexes.columns(scored, self.size)
        return totals.score(self.settings, scored, self.nodes(), compared, rows)


def minor_of(version: str) -> int:
    """Return the minor version of a release."""
    return int(version.split(".")[1])


__all__ = ["Cluster", "Object", "minor_of", "read_node", "read_pod", "releases"]
