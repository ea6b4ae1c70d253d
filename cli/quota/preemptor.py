"""Preemption in a what-if: the extender's own planner and preempt verb on the extender's own state.

On full nodes kube-scheduler proposes victims, which the preempt verb confirms, completes or drops.
Where only a quota refuses, the planner chooses them among nodes that have room.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from api.kubernetes import core
from api.wire import quantity
from cli import reading
from cli.quota import cluster as clusters
from cli.quota import extender_state, simulation
from domain.pods import disruption_budgets as budgets
from domain.quota.simulation import fit, in_tree, nominations, what_if
from domain.quota.tree import forest as forests
from extender.framework import claim_index, views
from extender.framework.eviction import preemption, trial
from extender.preemption import planner, proposed_victims
from extender.state import allocations, claims, deltas, records

KIND: Final = "preemption"
_Chosen = tuple[str, tuple[str, ...]]
"""A node, and who leaves."""


class Preemptor:
    """The state of an extender, which follows the world that is played."""

    def __init__(
        self,
        cluster: clusters.Cluster,
        extender: extender_state.Extender,
        *,
        own_first: bool = False,
    ) -> None:
        """`extender` knows the nodes and objects of the cluster, pods come from the world.

        `own_first`: the extender's own plan is made before kube-scheduler calls preempt. Where a
        pod is refused by its quota on some nodes and for room on others, both begin at the same
        moment, and whichever is first is carried out.
        """
        self._pipeline, self._records, self._state = extender
        self._index = claim_index.ClaimIndex(self._state.all_claims())
        self._state.followers.append(self._index.follow)
        self._raw = cluster.raw
        self._own_first = own_first
        self._budgets = disruption_budgets(cluster)
        self._waiting: dict[str, records.PodRecord] = {}

    def preempt(self, world: what_if.World, uid: str, now: float) -> what_if.Removal | None:
        """Return which pods leave for this pod, None where none do."""
        chosen = (self._in_tree, self._own)
        for choose in reversed(chosen) if self._own_first else chosen:
            if (found := choose(world, uid, now)) is not None:
                return what_if.Removal(found[1], KIND, uid, found[0])
        return None

    def _own(self, world: what_if.World, uid: str, now: float) -> _Chosen | None:
        """Return node and victims where only the quota refuses."""
        found = self.plan(world, uid, now)
        if isinstance(found, planner.NoPlan):
            return None
        return found.node, tuple(claim.id for claim in found.found.victims)

    def _in_tree(self, world: what_if.World, uid: str, now: float) -> _Chosen | None:
        best = self.proposed(world, uid, now)
        return None if best is None else (best.node, tuple(pod.uid for pod in best.victims))

    def proposed(self, world: what_if.World, uid: str, now: float) -> in_tree.Proposal | None:
        """Return whom kube-scheduler's own preemption evicts, confirmed by the preempt verb."""
        self.follow(world)
        asked = self._waiting.get(uid)
        if asked is None or not asked.requirements.preempts:
            return None
        info, pod = views.PodInfo.of(asked), world.pods[uid]
        nodes = world.kept.in_tree(world.nodes, pod.line)
        offered = list(in_tree.proposals(nodes, world.pods.values(), pod, self._violating))
        for whole in (True, False):
            # Nodes where a gang would lose some members only come after all others, as in the verb.
            found = [self._confirmed(world, one, (pod, info), now, whole) for one in offered]
            best = min((one for one in found if one), key=lambda one: one.cost, default=None)
            if best is not None:
                return best
        return None

    def _confirmed(
        self,
        world: what_if.World,
        proposal: in_tree.Proposal,
        preemptor: tuple[what_if.Pod, views.PodInfo],
        now: float,
        whole: bool,
    ) -> in_tree.Proposal | None:
        """Return what the verb makes of a proposal; `whole`: of one that leaves gangs whole."""
        (pod, info), view = preemptor, self._state.view()
        row, uids = view.rows[proposal.node], [victim.uid for victim in proposal.victims]
        what = trial.Trial(self._pipeline, info, view, row, now)
        if whole is proposed_victims.breaks(what, uids):
            return None
        if not whole:
            what = trial.Trial(self._pipeline, info, view, row, now, whole=False)
        leaving = proposed_victims.completed(what, uids, self._budgets)
        if leaving is None:
            return None
        extra = self._budgets.violating(leaving[len(uids) :])
        victims = tuple(world.pods[claim.id] for claim in leaving)
        beside = world.kept.table_for(world.nodes, pod.line)
        freed = in_tree.requested(victims)
        if world.kept.reserves and not beside.takes(
            proposal.node, pod.asks, pod.line.placement, freed
        ):
            return None
        return in_tree.Proposal(proposal.node, victims, proposal.violations + len(extra))

    def _violating(self, uids: Sequence[str]) -> Collection[str]:
        claims = (self._state.claim(uid) for uid in uids)
        return self._budgets.violating([claim for claim in claims if claim is not None])

    def plan(self, world: what_if.World, uid: str, now: float) -> planner.Plan | planner.NoPlan:
        """Return what the extender would do for this pod, or why it would do nothing."""
        pod = world.pods[uid]
        self.follow(world)
        asked = self._waiting.get(uid)
        if asked is None:
            return planner.NoPlan("it cannot be read")
        view, nodes = self._state.view(), world.kept.table_for(world.nodes, pod.line)
        rows = [
            view.rows[node.name]
            for node in nodes.nodes
            if nodes.takes(node.name, pod.asks, pod.line.placement)
        ]
        info = views.PodInfo.of(asked)
        terms = preemption.Terms(self._index, self._budgets)
        return planner.plan(self._pipeline, info, view, np.asarray(rows, dtype=np.intp), terms, now)

    def follow(self, world: what_if.World) -> None:
        """Bring the state to where the world is."""
        for ident, claim in tuple(self._state.all_claims().items()):
            if not _stands(world, claim):
                self._state.apply(deltas.ClaimDelta(ident, claim, None))
        for uid in [uid for uid in self._waiting if uid not in world.pods]:
            self._wait(uid, None)
        for uid, pod in world.pods.items():
            if pod.node:
                self._wait(uid, None)
                if self._state.claim(uid) is None and pod.node in world.nodes:
                    self._place(pod)
            elif uid not in self._waiting:
                self._wait(uid, self._records.pod(self._raw[uid]))
        for uid, node in world.kept.nodes.items():
            if node in world.nodes and self._state.claim(claims.nominated(uid)) is None:
                self._expect(uid, node)

    def _expect(self, uid: str, node: str) -> None:
        record = self._waiting.get(uid)
        if record is None:
            return
        ident, kind = claims.nominated(uid), claims.ClaimKind.NOMINATED
        held = msgspec.structs.replace(record, node=node, nominated="")
        claim = claims.Claim(ident, kind, node, held, usable_by=uid)
        self._state.apply(deltas.ClaimDelta(ident, None, claim))

    def _place(self, pod: what_if.Pod) -> None:
        record = self._records.pod(self._raw[pod.uid])
        if record is None:
            return
        known = record.node == pod.node and record.assigned_at >= 0
        since = record.assigned_at if known else pod.started_at
        placed = msgspec.structs.replace(record, node=pod.node, assigned_at=since)
        claim = claims.Claim(
            pod.uid,
            claims.ClaimKind.BOUND,
            pod.node,
            placed,
            placed.allocations,
            consumes=allocations.consumed(placed.allocations),
        )
        self._state.apply(deltas.ClaimDelta(pod.uid, None, claim))

    def _wait(self, uid: str, record: records.PodRecord | None) -> None:
        before = self._waiting.pop(uid, None)
        if record is not None:
            self._waiting[uid] = record
        if before is not record:
            self._state.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, uid, before, record))


def _stands(world: what_if.World, claim: views.Claim) -> bool:
    """Whether a claim is still what the world has; what Reservations keep stays."""
    if claim.kind is claims.ClaimKind.RESERVATION:
        return True
    if claim.usable_by:
        return world.kept.node_of(claim.usable_by) == claim.node
    pod = world.pods.get(claim.id)
    return pod is not None and pod.node == claim.node


@dataclasses.dataclass(frozen=True, slots=True)
class Present:
    """The world as a snapshot shows it; Reservations are left to the plug-in."""

    forest: forests.Forest
    pods: Mapping[str, what_if.Pod]
    nodes: fit.Table
    kept: nominations.Nominations


def present(cluster: clusters.Cluster, there: Iterable[fit.Node]) -> Present:
    """Return the world as it is, on these nodes."""
    pods = {pod.uid: pod for pod in simulation.pods(cluster, {})}
    table = fit.Table(there)
    kept = nominations.Nominations()
    for pod in pods.values():
        if pod.node:
            table.take(pod.node, pod.asks)
        elif pod.nominated:
            kept.keep(pod.line, pod.nominated, cluster.now)
    return Present(cluster.forest, pods, table, kept)


def planned(cluster: clusters.Cluster, uid: str) -> planner.Plan | planner.NoPlan:
    """Return whom the extender would evict for a waiting pod as things are, by its own planner.

    Candidates are nodes that have room for the pod, as for a simulation.
    """
    there = simulation.nodes(cluster)
    world = present(cluster, there)
    if uid not in world.pods:
        return planner.NoPlan("it takes no part in scheduling")
    return Preemptor(cluster, _of_quotas(cluster, there)).plan(world, uid, cluster.now)


def _of_quotas(cluster: clusters.Cluster, nodes: Iterable[fit.Node]) -> extender_state.Extender:
    """Return an extender that knows quotas only, and nodes by what they offer."""
    extender = extender_state.of_quotas(cluster.arguments, cluster.home)
    for node in nodes:
        record = extender.records.node(_node(node))
        extender.state.apply(deltas.NodeDelta(node.name, None, record))
    extender_state.add_quotas(extender.state, cluster.forest)
    return extender


def _node(node: fit.Node) -> core.Node:
    allocatable = {key: quantity.text(key, amount) for key, amount in node.allocatable.items()}
    return core.Node(
        metadata=core.ObjectMeta(name=node.name, labels=dict(node.labels)),
        status=core.NodeStatus(allocatable=dict(allocatable), capacity=dict(allocatable)),
    )


def disruption_budgets(cluster: clusters.Cluster) -> budgets.Budgets:
    """Return the disruption budgets of a snapshot; one that cannot be read counts for nothing."""
    read = (
        reading.either(None, msgspec.convert, raw, budgets.WatchedBudget) for raw in cluster.budgets
    )
    return budgets.Budgets([budgets.project(one) for one in read if one is not None])


def play(
    cluster: clusters.Cluster,
    horizon: float,
    declared: Mapping[str, float],
    more: Mapping[str, int] | None = None,
    *,
    own_first: bool = False,
    refused: what_if.Refused = what_if.Refused.TRIED_AGAIN,
) -> what_if.Outcome:
    """Play a cluster by everything that acts on it: gates, preemption and reclaim."""
    there = simulation.nodes(cluster, more)
    chosen = Preemptor(cluster, _of_quotas(cluster, there), own_first=own_first)
    terms = dataclasses.replace(simulation.terms(cluster, horizon, chosen), refused=refused)
    return simulation.play(cluster, terms, declared, more)
