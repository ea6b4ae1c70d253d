"""The status of a ClusterNetworkTopology: which domains nodes form, and what is missing. Pure."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from api import resources
from api.koordinator import event_reasons
from domain.topology import layers as chains
from domain.topology import tree as trees
from manager.reconcile import actions
from manager.topology import network_object

MOST_DOMAINS: Final = 2048
"""Domains that a status names; with the longest names there are they take 700 KB."""
_MOST_NAMED: Final = 5
_RESOURCE: Final = resources.CLUSTER_NETWORK_TOPOLOGIES

Details = list[dict[str, Any]]


def details(tree: trees.Tree) -> Details:
    """Return what the status says of each domain: depth first, in the order of names.

    Of more domains than a status can name, those of the lower layers are left out.
    """
    layers = tree.layers
    if layers is None:
        return []
    counts = tree.domains()
    kept = sorted(counts)
    if len(kept) > MOST_DOMAINS:
        kept = sorted(sorted(kept, key=lambda path: (len(path), path))[:MOST_DOMAINS])
    children: dict[trees.Path, list[str]] = {}
    for path in kept:
        if path:
            children.setdefault(path[:-1], []).append(path[-1])
    return [_detail(layers, path, counts[path], children.get(path, [])) for path in kept]


def _detail(
    layers: chains.Layers, path: trees.Path, nodes: int, children: list[str]
) -> dict[str, Any]:
    names = layers.names
    found: dict[str, Any] = {
        "topologyInfo": {
            "topologyLayer": names[len(path)],
            "topologyName": path[-1] if path else "",
        },
        "childTopologyLayer": names[len(path) + 1],
        "nodeNum": nodes,
    }
    if path:
        found["parentTopologyInfo"] = {
            "topologyLayer": names[len(path) - 1],
            "topologyName": path[-2] if len(path) > 1 else "",
        }
    if children:
        found["childTopologyNames"] = children
    return found


def planned(found: network_object.NetworkObject, tree: trees.Tree) -> actions.Plan:
    """Plan the write that makes the status say what there is, and what people should know."""
    if found.layers is None:
        told = _tell(found, "InvalidLayers", f"{found.fault}. The layers before stay in force")
        return actions.Plan("the layers form no chain, and the status stays", (told,))
    steps: list[actions.Step] = []
    wanted = details(tree)
    if found.written != wanted:
        body = {"metadata": {"uid": found.uid}, "status": {"detailStatus": wanted}}
        steps.append(actions.PatchStatus(_RESOURCE, found.name, body))
    steps += _doubts(found, tree, len(wanted))
    nodes = len(tree.paths)
    return actions.Plan(f"status names {len(wanted)} domains of {nodes} nodes", tuple(steps))


def _doubts(
    found: network_object.NetworkObject, tree: trees.Tree, named: int
) -> Iterator[actions.Step]:
    if outside := tree.outside():
        yield _tell(
            found,
            "NodesOutside",
            f"{len(outside)} nodes lack a label of some layer and take no gang that asks for a "
            f"topology: {_listed(outside)}. Label them as the layers say",
        )
    shared = [
        f"{layer} {name} below {' and '.join(above)}"
        for layer, name, above in itertools.islice(tree.shared_names(), _MOST_NAMED + 1)
    ]
    if shared:
        yield _tell(
            found,
            "SharedNames",
            f"domains of one layer have the same name and count as several: {_listed(shared)}. "
            "Give them names that are unique in their layer",
        )
    if left := len(tree.domains()) - named:
        yield _tell(found, "TooManyDomains", f"the status leaves {left} domains out")


def _tell(
    found: network_object.NetworkObject, reason: event_reasons.Reason, note: str
) -> actions.Tell:
    return actions.Tell(_RESOURCE, found.name, found.uid, reason, note, warning=True)


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = ", …" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
