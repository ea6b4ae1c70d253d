"""Give pods CPUs of their own, and what they request of NUMA nodes by a topology policy.

The result is written as `scheduling.koordinator.sh/resource-status` together with the node; the
agent applies it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from api import names
from api.plugin_args import node as arguments
from domain.cpus import cpu_accumulator
from domain.numa import hint_merge, numa_allocation
from extender.framework import protocols, verdicts, views
from extender.framework.nodes import hints, node_classes
from extender.plugins.node_numa_resource import (
    allocation,
    choice,
    inspection,
    reserved,
    scoring,
    tracker,
)

NAME = allocation.NAME
MISMATCH: Final = verdicts.Status("node(s) NUMA Topology policy not match")
BAD_RATIO: Final = verdicts.Status("node(s) invalid CPU amplification ratio")
AMPLIFIED: Final = verdicts.Status("Insufficient amplified cpu")
NO_TOPOLOGY: Final = verdicts.Status("node(s) invalid CPU Topology")
CONFLICT: Final = verdicts.Status(
    "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
)
MULTIPLE: Final = verdicts.Status("node(s) requested cpus not multiple cpus per core")
TOO_FEW: Final = verdicts.Status(numa_allocation.NO_CPUS)
NO_ZONES: Final = verdicts.Status("node(s) missing NUMA resources")
STATUSES: Final = (
    *(MISMATCH, allocation.INTEGER, BAD_RATIO, AMPLIFIED),
    *(NO_TOPOLOGY, CONFLICT, MULTIPLE, TOO_FEW, NO_ZONES),
)
_BY_NODE: Final = -1
"""Stands for the score of the node as a whole."""
_NO_HINTS: Final[tuple[hints.NumaHint, ...]] = ()


class Arguments(NamedTuple):
    """How pods are bound and nodes are scored."""

    bind: str = "FullPCPUs"
    nodes: numa_allocation.Scoring = numa_allocation.Scoring()
    zones: numa_allocation.Scoring = numa_allocation.Scoring()


def read_arguments(written: arguments.NodeNUMAResourceArgs) -> Arguments:
    """Return the arguments of a scheduler configuration."""
    written = written.complete()
    nodes, zones = written.scoring_strategy, written.numa_scoring_strategy
    assert nodes is not None
    assert zones is not None
    weights = tuple((one.name, one.weight) for one in nodes.resources)
    return Arguments(
        written.default_cpu_bind_policy,
        numa_allocation.Scoring(nodes.type == "MostAllocated", weights),
        numa_allocation.Scoring(zones.type == "MostAllocated", weights),
    )


class NodeNUMAResource(allocation.Codec):
    """Binds pods of class LSE and LSR to CPUs, and aligns pods with NUMA nodes."""

    name = NAME
    page = NAME
    collection, namespaced = "nodes", False
    item = "node"
    columns = tracker.COLUMNS
    pod_labels = (names.LABEL_QOS,)
    pod_annotations = (names.ANNOTATION_RESOURCE_SPEC, names.ANNOTATION_NUMA_TOPOLOGY_SPEC)
    kinds = (views.NODE_TOPOLOGY,)
    expires = False

    def __init__(self, chosen: Arguments) -> None:
        self._arguments = chosen
        self._zone_scores = node_classes.Results()

    # -- state -------------------------------------------------------------------------------

    def node(self, info: views.NodeInfo) -> views.Figures:
        """Return what is free of the CPUs and NUMA nodes of a node."""
        return tracker.node(info)

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: views.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    def needs(self, value: None) -> bool:
        """Return True: CPUs are allocated by what NodeResourceTopologies say."""
        del value
        return True

    # -- filter ------------------------------------------------------------------------------

    def pre_filter(
        self, pod: views.PodInfo, view: views.View
    ) -> allocation.Wanted | verdicts.Status | None:
        """Return which CPUs the pod wants, and what it requests."""
        del view
        return allocation.wanted(pod.requirements, self._arguments.bind)

    def passes_all(self, prepared: allocation.Wanted, view: views.View, now: float) -> bool:
        """Whether the pod runs in the shared pool of every node."""
        del now
        lowest = view.lowest(NAME)
        pooled = not prepared.bound and prepared.policy is hint_merge.Policy.NONE
        return pooled and lowest is not None and lowest[tracker.SPECIAL] == 0

    def filter(
        self, prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict:
        """Refuse nodes that have too few CPUs, or other policies than the pod requires."""
        del now
        return verdicts.Verdict(scoring.codes(prepared, view, rows), STATUSES)

    def needs_trial(
        self, prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows
    ) -> verdicts.Flags:
        """Try an allocation where NUMA nodes matter, and where cores have lost single CPUs."""
        found = view.figures[NAME]
        if prepared.policy is not hint_merge.Policy.NONE:
            return np.ones(rows.size, dtype=np.bool_)
        bound = prepared.bound | (found[tracker.BIND, rows] > 0)
        flags: verdicts.Flags = (found[tracker.POLICY, rows] > 0) | (
            bound & (found[tracker.IRREGULAR, rows] > 0)
        )
        return flags

    def alike(self, view: views.View, rows: verdicts.Rows) -> verdicts.Column:
        """Return a digest of all that the allocation of any pod depends on, by candidate."""
        found: verdicts.Column = view.figures[NAME][tracker.ALIKE, rows]
        return found

    # -- NUMA --------------------------------------------------------------------------------

    def topology(
        self, prepared: allocation.Wanted | None, view: views.View, row: int
    ) -> hints.Topology:
        """Return the policy of the node, or else the one that the pod asks for."""
        found = _numa(view, row)
        policy, alone = found.policy, False
        if prepared is not None:
            policy = policy if policy is not hint_merge.Policy.NONE else prepared.policy
            alone = prepared.alone
        occupancy = found.nodes.occupancy if alone else None
        zones = found.nodes.zones
        return hints.Topology(policy, max(len(zones), 1), found.nodes.mask, occupancy)

    def hints(
        self, prepared: allocation.Wanted, view: views.View, row: int
    ) -> Mapping[str, hints.Hints]:
        """Return by resource the NUMA nodes that could give the pod what it requests."""
        found = _numa(view, row)
        if not found.nodes.zones:
            return {name: _NO_HINTS for name, _ in prepared.requests[:1]}
        policy = self.topology(prepared, view, row).policy
        request = self.request(prepared, found)
        return numa_allocation.hints(found.nodes, request, policy, self._arguments.zones)

    def allocate(
        self, prepared: allocation.Wanted, view: views.View, row: int, mask: int
    ) -> allocation.CpuAllocation | verdicts.Status | None:
        """Take CPUs and amounts from the NUMA nodes chosen."""
        found = _numa(view, row)
        request = self.request(prepared, found)
        if view.lent is not None:
            request = reserved.preferring(request, view.lent)
        topology = self.topology(prepared, view, row)
        affinity = _affinity(topology, mask)
        if request.cpus is None and affinity is None:
            return None
        if affinity is not None and not found.nodes.zones:
            return NO_ZONES
        taken = numa_allocation.allocate(found.nodes, request, affinity)
        if isinstance(taken, tuple):
            return verdicts.Status(taken[0])
        spec = prepared.spec
        if request.cpus is not None:
            spec = allocation.completed(spec, request.cpus.bind, required=request.required)
        return allocation.granted(taken, spec)

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: allocation.Wanted,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | None:
        """Say which CPUs and NUMA nodes were chosen, and why others were not."""
        del pod
        taken = grants.get(NAME)
        if not isinstance(taken, allocation.CpuAllocation):
            return None
        found = _numa(view, row)
        asked = choice.Asked(
            self.request(prepared, found),
            self.topology(prepared, view, row).policy,
            self._arguments.nodes,
        )
        return verdicts.Grant(taken, figures=choice.told(found, asked, taken))

    def request(
        self, prepared: allocation.Wanted, found: tracker.NodeNuma
    ) -> numa_allocation.NumaRequest:
        """Return what the pod requests under the policies of a node."""
        return _request(prepared, found, most=self._arguments.zones.most_allocated)

    # -- score -------------------------------------------------------------------------------

    def score(
        self, prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Score:
        """Prefer nodes, or the NUMA nodes that the pod would get, with much left, or little."""
        del now
        values = scoring.nodes(prepared, view, rows, self._arguments.nodes)
        places = np.flatnonzero(self.needs_trial(prepared, view, rows) & view.known[rows])

        def one(row: int) -> int:
            return self._zone_score(prepared, view, row)

        if places.size:
            found = self._zone_scores.get(prepared, view, rows[places], (self.alike, one))
            values[places] = np.where(found == _BY_NODE, values[places], found)
        return verdicts.Score(values)

    def _zone_score(self, prepared: allocation.Wanted, view: views.View, row: int) -> int:
        """Return the score of the NUMA nodes that the pod would get; 0 where it gets none."""
        topology = self.topology(prepared, view, row)
        if topology.policy is hint_merge.Policy.NONE:
            return _BY_NODE
        merged = hints.merge(topology, self.hints(prepared, view, row).values())
        affinity = _affinity(topology, merged.mask)
        if not merged.admitted or affinity is None:
            return _BY_NODE if merged.admitted else 0
        found = _numa(view, row)
        request = self.request(prepared, found)
        return numa_allocation.mask_score(found.nodes, request, affinity, self._arguments.nodes)

    # -- preemption and people ---------------------------------------------------------------

    def victims(
        self, prepared: allocation.Wanted, view: views.View, row: int
    ) -> verdicts.Victims | verdicts.Status:
        """Name the pods that hold CPUs of their own or amounts of NUMA nodes.

        Where CPU is amplified, every pod that requests some.
        """
        del prepared
        amplified = _numa(view, row).ratio != 100
        return verdicts.Victims(
            tuple(
                claim.id
                for claim in view.node(row).claims
                if tracker.held_by(claim) is not None
                or (amplified and claim.pod.requirements.requests)
            )
        )

    def could_help(self, prepared: allocation.Wanted | None, delta: views.Delta) -> bool:
        """Look again where CPUs are given back, at nodes, and at their topologies."""
        del prepared
        match delta:
            case views.ClaimDelta():
                return delta.before is not None
            case views.NodeDelta():
                return True
            case views.ObjectDelta():
                return delta.kind == views.NODE_TOPOLOGY
            case _:
                return False

    def shortage(
        self, prepared: allocation.Wanted, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of the CPUs is lacking."""
        del now
        count = max(prepared.cpu // 1000, 1)
        free = view.figures[NAME][tracker.FREE, rows]
        lacking: verdicts.Shares = np.maximum(count - free, 0) / count
        return lacking

    def diagnose(
        self, prepared: allocation.Wanted, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Show which CPUs and NUMA amounts are free."""
        del now
        return inspection.diagnosis(_numa(view, row), prepared, view.names[row])

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, Any]:
        """Return the figures of a node."""
        return inspection.shown(facts)

    def listed(self, view: views.View, query: Mapping[str, str], pods: protocols.Pods) -> Any:
        """Return the nodes of which a topology is known."""
        del query, pods
        rows = sorted(view.rows.items())
        return {"nodes": [name for name, row in rows if _numa(view, row) is not tracker.NOTHING]}

    def named(
        self, name: str, view: views.View, query: Mapping[str, str], pods: protocols.Pods
    ) -> Any:
        """Return the CPUs and NUMA nodes of a node in the shape of Koordinator's page."""
        del query, pods
        row = view.rows.get(name)
        return None if row is None else inspection.shown(view.node(row))


def _request(
    prepared: allocation.Wanted, found: tracker.NodeNuma, *, most: bool
) -> numa_allocation.NumaRequest:
    none = cpu_accumulator.BindPolicy.NONE
    bound = prepared.bound or (prepared.cpu > 0 and found.bind is not none)
    if not bound:
        return numa_allocation.NumaRequest(prepared.requests)
    bind, required = prepared.preferred, prepared.required
    if not required and found.bind is not none:
        bind, required = found.bind, True
    strategy = found.strategy or ("MostAllocated" if most else "LeastAllocated")
    cpus = cpu_accumulator.CpuRequest(
        prepared.cpu // 1000, bind, prepared.exclusive, cpu_accumulator.numa_strategy(strategy)
    )
    return numa_allocation.NumaRequest(prepared.requests, cpus, required)


def _numa(view: views.View, row: int) -> tracker.NodeNuma:
    sparse = view.sparse(NAME, row)
    found = sparse if isinstance(sparse, tracker.NodeNuma) else tracker.NOTHING
    return found if view.lent is None else reserved.shown(found, view.lent)


def _affinity(topology: hints.Topology, mask: int) -> int | None:
    """Return the NUMA nodes that are recorded; none where there was nothing to choose."""
    if topology.policy is hint_merge.Policy.NONE:
        return None
    single = topology.policy is hint_merge.Policy.SINGLE_NUMA_NODE
    return None if single and mask == topology.everywhere else mask & topology.everywhere
