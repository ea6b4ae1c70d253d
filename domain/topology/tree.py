"""The tree of network domains: a frozen value that follows nodes and layers. Pure.

A domain is known by its path, so that two of one layer may have the same name below different
parents; `shared_names` lists them, because other components identify a domain by layer and name.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from domain import persistent
from domain.topology import layers as chains

Path = chains.Path
MOST_NAMED: Final = 8


class Tree(msgspec.Struct, frozen=True):
    """Nodes by their place in the network; equal to any other with the same layers and nodes."""

    layers: chains.Layers | None = None
    """None: there is no ClusterNetworkTopology."""
    labels: persistent.Map[str, Mapping[str, str]] = persistent.Map()
    """By node name: its labels."""
    paths: persistent.Map[str, Path] = persistent.Map()
    """By node name: the domains around it; nodes outside the tree are left out."""

    @classmethod
    def of(
        cls, layers: chains.Layers | None, nodes: Iterable[tuple[str, Mapping[str, str]]]
    ) -> "Tree":
        """Return the tree of some nodes, as (name, labels)."""
        return cls(labels=persistent.Map(nodes)).with_layers(layers)

    def with_layers(self, layers: chains.Layers | None) -> "Tree":
        """Return the tree of the same nodes by other layers."""
        if layers == self.layers:
            return self
        paths: persistent.Map[str, Path] = persistent.Map()
        if layers is not None:
            found = ((node, layers.path(node, labels)) for node, labels in self.labels.items())
            kept = [(node, path) for node, path in found if path is not None]
            paths = persistent.Map(kept, _parts(len(kept)))
        return msgspec.structs.replace(self, layers=layers, paths=paths)

    def with_node(self, name: str, labels: Mapping[str, str] | None) -> "Tree":
        """Return the tree after a node came, changed or went (None)."""
        if self.labels.get(name) == labels:
            return self
        changed = msgspec.structs.replace(self, labels=self.labels.replaced(name, labels))
        path = None
        if self.layers is not None and labels is not None:
            path = self.layers.path(name, labels)
        if path == self.paths.get(name):
            return changed
        return msgspec.structs.replace(changed, paths=self.paths.replaced(name, path))

    def outside(self) -> list[str]:
        """Return the nodes that lack a label of some layer, sorted."""
        return sorted(self.labels.keys() - self.paths.keys()) if self.layers else []

    def domains(self) -> dict[Path, int]:
        """Return how many nodes each domain holds, by path; the cluster's is empty."""
        counts: dict[Path, int] = {(): 0} if self.layers is not None else {}
        for path in self.paths.values():
            for level in range(len(path) + 1):
                counts[path[:level]] = counts.get(path[:level], 0) + 1
        return counts

    def shared_names(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield (layer, name, names of the parents) of domains that share a name in their layer."""
        if self.layers is None:
            return
        parents: dict[tuple[int, str], set[Path]] = {}
        for path in self.domains():
            if path:
                parents.setdefault((len(path), path[-1]), set()).add(path[:-1])
        for (level, name), above in sorted(parents.items()):
            if len(above) > 1:
                yield (
                    self.layers.names[level],
                    name,
                    tuple("/".join(path) for path in sorted(above)[:MOST_NAMED]),
                )


def _parts(count: int) -> int:
    """Return how many parts a map of so many values gets: a power of two."""
    return 1 << max(0, (count // 16).bit_length())
