"""What would make a gang fit: fewer members, more nodes, more quota. Each is tried, not guessed."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from api.plugin_args import models
from cli.placement import whole_extender
from cli.quota import cluster as quota_cluster
from domain import wording
from extender.gangs.network import network_plan
from extender.gangs.planning import planner
from extender.state import cluster_state, deltas, records

MOST_SORTS: Final = 8
"""Sorts of nodes that are tried, those of which there are most first."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_OF_NODES: Final = (deltas.NODE_TOPOLOGY, deltas.DEVICE)
"""Objects that describe a node."""
_ROUNDS: Final = 6


@dataclasses.dataclass(frozen=True, slots=True)
class Shortage:
    """A gang group that does not fit, and the state with as many members as do."""

    members: tuple[planner.Member, ...]
    needed: Mapping[str, int]
    refused: planner.Refused
    most: planner.Plan
    """As many members as find a node."""
    state: cluster_state.ClusterState
    """With these members on their nodes."""
    now: float

    @property
    def missing(self) -> tuple[planner.Member, ...]:
        """Return members without a node, as many of each gang as it needs."""
        placed = [one.gang for one in self.most.placements]
        lacking = {gang: count - placed.count(gang) for gang, count in self.needed.items()}
        left, found = set(self.most.left), []
        for member in self.members:
            if member.pod.uid in left and lacking.get(member.gang, 0) > 0:
                lacking[member.gang] -= 1
                found.append(member)
        return tuple(found)


def helps(
    cluster: quota_cluster.Cluster, whole: whole_extender.Whole, shortage: Shortage
) -> Iterator[str]:
    """Yield what would make a gang fit, each on its own."""
    if shortage.refused.plugin == network_plan.NAME:
        # Every member finds a node as long as they may be anywhere.
        yield "PreferGather instead of MustGather, or MustGather in a higher layer of the network"
        return
    yield from _fewer(shortage)
    if any(by == models.ELASTIC_QUOTA for by, _, _ in shortage.refused.reasons):
        yield "a higher limit of its quota, or less use of it: koord simulate quota tries a change"
    yield from _more_nodes(cluster, whole, shortage)


def _fewer(shortage: Shortage) -> Iterator[str]:
    """Yield the minimum with which a gang would fit."""
    placed = [one.gang for one in shortage.most.placements]
    for gang, needed in shortage.needed.items():
        count = placed.count(gang)
        if 0 < count < needed:
            members = wording.count(count, "member", "members")
            yield f"a minimum of {members} of gang {gang} instead of {needed}"


def _more_nodes(
    cluster: quota_cluster.Cluster, whole: whole_extender.Whole, shortage: Shortage
) -> Iterator[str]:
    """Yield how many more nodes of one sort would do, fewest first."""
    found = []
    for name, count in _sorts(shortage.state):
        nodes = _nodes_needed(cluster, whole, shortage, name)
        if nodes:
            like = f"{count} nodes are like it" if count > 1 else "no other node is like it"
            more = wording.count(nodes, "more node", "more nodes")
            text = f"{more} like {name}, empty ({like})"
            found.append((nodes, name, text))
    yield from (text for _, _, text in sorted(found)[:2])


def _sorts(state: cluster_state.ClusterState) -> list[tuple[str, int]]:
    """Return one node of each sort with how many there are, the most frequent first."""
    sorts: dict[tuple[object, ...], list[str]] = {}
    for name in state.nodes():
        node = state.node(name)
        assert node is not None, "a name of a known node"
        labels = sorted((key, value) for key, value in node.labels.items() if key != _HOSTNAME)
        key = (node.allocatable, node.taints, tuple(labels))
        sorts.setdefault(key, []).append(name)
    ranked = sorted(sorts.values(), key=lambda names: (-len(names), min(names)))
    return [(min(names), len(names)) for names in ranked[:MOST_SORTS]]


def _nodes_needed(
    cluster: quota_cluster.Cluster, whole: whole_extender.Whole, shortage: Shortage, name: str
) -> int:
    """Return how many empty nodes like one take all members that are missing, 0: none helps."""
    state, remaining = shortage.state.fork(), list(shortage.missing)
    used: set[str] = set()
    added, wanted = 0, 1
    for _ in range(_ROUNDS):
        for number in range(added, added + wanted):
            _add_copy(cluster, whole, state, name, f"{name}.more-{number}")
        added += wanted
        options = planner.Options({})
        found = planner.plan(whole.extender.pipeline, state, remaining, options, shortage.now)
        assert isinstance(found, planner.Plan), "a plan that needs nothing is never refused"
        if not found.placements:
            return 0
        used.update(one.node for one in found.placements)
        left = set(found.left)
        remaining = [member for member in remaining if member.pod.uid in left]
        if not remaining:
            return len(used)
        each = max(1, (len(shortage.missing) - len(remaining)) // added)
        wanted = -(-len(remaining) // each)
    return 0


def _add_copy(
    cluster: quota_cluster.Cluster,
    whole: whole_extender.Whole,
    state: cluster_state.ClusterState,
    name: str,
    copy: str,
) -> None:
    """Add an empty node like one, with the objects that describe it."""
    raw = cluster.nodes[name]
    labels = {**raw.metadata.labels, _HOSTNAME: copy}
    metadata = msgspec.structs.replace(raw.metadata, name=copy, uid=copy, labels=labels)
    record: records.NodeRecord = whole.extender.records.node(
        msgspec.structs.replace(raw, metadata=metadata)
    )
    state.apply(deltas.NodeDelta(copy, None, record))
    for kind in _OF_NODES:
        told = state.told(kind, name)
        if told is not None and told.after is not None:
            state.apply(deltas.ObjectDelta(kind, copy, None, told.after, node=copy))
