"""The status of a ClusterNetworkTopology: which domains nodes form, and what is missing. Pure."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from api import resources
from domain import conditions, wording
from domain.topology import layers as chains
from domain.topology import tree as trees
from manager.reconcile import actions, outcomes
from manager.topology import network_object

MOST_DOMAINS: Final = 2048
"""Domains that a status names; with the longest names there are they take 700 KB."""
ACCEPTED: Final = "Accepted"
"""Whether the layers form a chain."""
NODES_COVERED: Final = "NodesCovered"
"""Whether every node has a place in the network."""
NAMES_UNIQUE: Final = "NamesUnique"
"""Whether the name of a domain says which one is meant."""
_TYPES: Final = (ACCEPTED, NODES_COVERED, NAMES_UNIQUE)
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


def planned(found: network_object.NetworkObject, tree: trees.Tree, now: float) -> actions.Plan:
    """Plan the write that makes the status say what there is, and what people should know."""
    judged = tuple(_judged(found, tree))
    about = (_RESOURCE, "", found.name, found.uid)
    told: list[actions.Step] = list(outcomes.told(about, found.conditions, judged))
    changed: dict[str, Any] = {}
    message = "the layers form no chain, and the domains stay"
    if found.layers is not None:
        wanted = details(tree)
        if found.written != wanted:
            changed["detailStatus"] = wanted
        domains = wording.count(len(wanted), "domain", "domains")
        nodes = wording.count(len(tree.paths), "node", "nodes")
        message = f"status names {domains} of {nodes}"
        told += _left_out(found, tree, len(wanted))
    said = conditions.merged(
        found.conditions, judged, now, types=_TYPES, generation=found.generation
    )
    if said is not None:
        changed["conditions"] = said
    if not changed:
        return actions.Plan(message, tuple(told))
    body = {"metadata": {"uid": found.uid}, "status": changed}
    return actions.Plan(message, (actions.PatchStatus(_RESOURCE, found.name, body), *told))


def _judged(found: network_object.NetworkObject, tree: trees.Tree) -> Iterator[outcomes.Condition]:
    if found.layers is None:
        note = f"{found.fault}. The layers before stay in force"
        yield outcomes.Condition(ACCEPTED, False, "InvalidLayers", note)
        return
    chain = " > ".join(found.layers.names)
    yield outcomes.Condition(ACCEPTED, True, "LayersAccepted", f"the layers are {chain}")
    yield _covered(tree)
    yield _unique(tree)


def _covered(tree: trees.Tree) -> outcomes.Condition:
    outside = tree.outside()
    if not outside:
        count = len(tree.paths)
        note = f"{wording.form(count, 'the only node has', f'all {count} nodes have')} a place"
        return outcomes.Condition(NODES_COVERED, True, "NodesInside", note)
    nodes = wording.count(len(tree.labels), "node", "nodes")
    lack = wording.form(
        len(outside),
        "lacks a label of some layer and takes no gang",
        "lack a label of some layer and take no gang",
    )
    note = (
        f"{len(outside)} of {nodes} {lack} that asks for a topology: {_listed(outside)}. Label "
        f"{wording.form(len(outside), 'it', 'them')} as the layers say"
    )
    return outcomes.Condition(NODES_COVERED, False, "NodesOutside", note)


def _unique(tree: trees.Tree) -> outcomes.Condition:
    shared = [
        f"{layer} {name} below {' and '.join(above)}"
        for layer, name, above in itertools.islice(tree.shared_names(), _MOST_NAMED + 1)
    ]
    if not shared:
        note = "no two domains of one layer have the same name"
        return outcomes.Condition(NAMES_UNIQUE, True, "NamesUnique", note)
    note = (
        f"domains of one layer have the same name and count as several: {_listed(shared)}. "
        "Give them names that are unique in their layer"
    )
    return outcomes.Condition(NAMES_UNIQUE, False, "SharedNames", note)


def _left_out(
    found: network_object.NetworkObject, tree: trees.Tree, named: int
) -> Iterator[actions.Step]:
    if left := len(tree.domains()) - named:
        note = f"the status leaves {wording.count(left, 'domain', 'domains')} out"
        yield actions.Tell(_RESOURCE, found.name, found.uid, "TooManyDomains", note, warning=True)


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = ", …" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
