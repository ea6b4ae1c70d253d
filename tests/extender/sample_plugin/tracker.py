"""StateTracker: the free slots of every node, who holds which, and what each team holds."""

import zlib
from collections.abc import Mapping

import msgspec

from extender.framework import views
from extender.framework.nodes import hints
from tests.extender.sample_plugin import allocation

DEDICATED = "example.com/dedicated-to"
ZONES, POLICY = "example.com/zones", "example.com/topology-policy"
FREE, TEAM = 0, 1
"""The columns."""


class NodeSlots(msgspec.Struct, frozen=True):
    """The slots of one node; each belongs to one NUMA node."""

    total: int
    taken: frozenset[int]
    topology: hints.Topology

    def free_in(self, mask: int) -> list[int]:
        """Return the free slots of some NUMA nodes, the lowest first."""
        width = self.topology.numa_nodes
        return [
            number
            for number in range(self.total)
            if number not in self.taken and mask >> number * width // self.total & 1
        ]


class Holders(msgspec.Struct, frozen=True):
    """What no node knows alone."""

    by_team: Mapping[str, int]
    """Slots that each team holds."""
    arrived: Mapping[str, frozenset[str]]
    """By barrier: the claims of the pods that have a place."""
    wanted: Mapping[str, int]
    """Slots that the pods of each team ask for which have no node."""


class Tracker:
    """Figures, a sparse value and a cluster-wide value, each by a pure function."""

    name = allocation.NAME
    columns = 2
    kinds = (views.UNSCHEDULED_POD,)

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], NodeSlots | None]:
        """Return what one node has free, and to which team it is dedicated."""
        total = min(dict(info.node.allocatable).get(allocation.RESOURCE, 0), allocation.MOST)
        if not total:
            return (0, 0), None
        taken = frozenset(
            number for claim in info.claims for number in slots_of(claim) if number < total
        )
        team = info.node.labels.get(DEDICATED, "")
        return (total - len(taken), mark(team)), NodeSlots(total, taken, _topology(info.node))

    def needs(self, value: Holders | None) -> bool:
        """Always: who waits is part of every refusal."""
        del value
        return True

    def start(self) -> Holders:
        """Return what an empty cluster holds."""
        return Holders({}, {}, {})

    def cluster(self, old: Holders, delta: views.Delta) -> Holders:
        """Count a claim, or a pod without a node, that came, changed or went."""
        if isinstance(delta, views.ObjectDelta) and delta.kind == views.UNSCHEDULED_POD:
            return _waiting(old, delta)
        if not isinstance(delta, views.ClaimDelta):
            return old
        by_team, arrived = dict(old.by_team), dict(old.arrived)
        for claim, sign in ((delta.before, -1), (delta.after, 1)):
            held = len(slots_of(claim)) if claim else 0
            asked = allocation.wanted(claim.pod.requirements) if claim else None
            if claim is None or asked is None or not held:
                continue
            _add(by_team, asked.team, sign * held)
            if asked.barrier:
                members = arrived.pop(asked.barrier, frozenset()) - {claim.id}
                members |= {claim.id} if sign > 0 else set()
                if members:
                    arrived[asked.barrier] = members
        return Holders(by_team, arrived, old.wanted)


def _waiting(old: Holders, delta: views.ObjectDelta) -> Holders:
    """Return the value after a pod without a node came, changed or went."""
    wanted = dict(old.wanted)
    for pod, sign in ((delta.before, -1), (delta.after, 1)):
        asked = allocation.wanted(pod.requirements) if isinstance(pod, views.PodRecord) else None
        if asked is not None:
            _add(wanted, asked.team, sign * asked.count)
    return msgspec.structs.replace(old, wanted=wanted)


def slots_of(claim: views.Claim) -> tuple[int, ...]:
    """Return the numbers of the slots that a claim holds."""
    held = claim.allocations.get(allocation.NAME)
    return held.numbers if isinstance(held, allocation.Slots) else ()


def mark(team: str) -> int:
    """Return a number for a team, 0 for none: columns hold numbers only."""
    return zlib.crc32(team.encode()) if team else 0


def _add(counts: dict[str, int], key: str, change: int) -> None:
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        # So that undoing leads back to the very same value.
        del counts[key]


def _topology(node: views.NodeRecord) -> hints.Topology:
    zones = node.labels.get(ZONES, "")
    policies = {policy.value: policy for policy in hints.Policy}
    return hints.Topology(
        policies.get(node.labels.get(POLICY, ""), hints.Policy.NONE),
        int(zones) if zones in ("2", "4") else 1,
    )
