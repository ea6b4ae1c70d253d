"""Preemption in a what-if: the extender's own planner and preempt verb on the extender's own state.

On full nodes kube-scheduler proposes victims, which the preempt verb confirms, completes or drops.
Where only a quota refuses, the planner chooses them among nodes that have room.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from api import names
from api.kubernetes import core
from api.plugin_args import job, models
from api.wire import quantity
from cli import reading
from cli.quota import cluster as clusters
from cli.quota import simulation
from domain.quota.simulation import fit, in_tree, nominations, what_if
from domain.quota.tree import forest as forests
from extender import registry
from extender.framework import assembly, budgets, claim_index, preemption, trial, views
from extender.preemption import planner, proposed_victims
from extender.state import claims, cluster_state, deltas, records

KIND: Final = "preemption"
_Chosen = tuple[str, tuple[str, ...]]
"""A node, and who leaves."""


class Preemptor:
    """The state of an extender that knows quotas only; it follows the world that is played."""

    def __init__(
        self,
        cluster: clusters.Cluster,
        nodes: Iterable[fit.Node],
        arguments: job.ElasticQuotaArgs,
        *,
        own_first: bool = False,
    ) -> None:
        """`own_first`: the extender's own plan is made before kube-scheduler calls preempt.

        Where a pod is refused by its quota on some nodes and for room on others, both begin at
        the same moment, and whichever is first is carried out.
        """
        plugin = registry.PLUGINS[models.ELASTIC_QUOTA](arguments)
        self._pipeline = assembly.assemble(lambda _: [plugin], {})
        self._records = records.Projector(
            None, registry.codecs([plugin]), registry.inputs([plugin])
        )
        trackers = registry.state_trackers([plugin])
        self._state = cluster_state.ClusterState(trackers, [names.CPU, names.MEMORY])
        self._index = claim_index.ClaimIndex(self._state.all_claims())
        self._state.followers.append(self._index.follow)
        self._raw = cluster.raw
        self._own_first = own_first
        self._budgets = _budgets(cluster)
        self._waiting: dict[str, records.PodRecord] = {}
        for node in nodes:
            record = self._records.node(_node(node))
            self._state.apply(deltas.NodeDelta(node.name, None, record))
        forest = cluster.forest
        for name in (*forest.names(), names.DEFAULT_QUOTA, names.SYSTEM_QUOTA):
            if (quota := forest.quota(name)) is not None:
                delta = deltas.ObjectDelta(deltas.ELASTIC_QUOTA, quota.identity, None, quota)
                self._state.apply(delta)

    def preempt(self, world: what_if.World, uid: str, now: float) -> what_if.Removal | None:
        """Return who leaves for this pod, None where nobody does."""
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
        """Return node and victims of kube-scheduler's own preemption, confirmed by the verb."""
        self._follow(world)
        asked = self._waiting.get(uid)
        if asked is None or not asked.requirements.preempts:
            return None
        info = views.PodInfo(asked.key, asked.uid, asked.requirements)
        view = self._state.view()
        confirmed: list[in_tree.Proposal] = []
        pod = world.pods[uid]
        nodes = world.kept.table_for(world.nodes, pod.line)
        for proposal in in_tree.proposals(nodes, world.pods.values(), pod, self._violating):
            what = trial.Trial(self._pipeline, info, view, view.rows[proposal.node], now)
            uids = [victim.uid for victim in proposal.victims]
            leaving = proposed_victims.completed(what, uids, self._budgets)
            if leaving is not None:
                extra = self._budgets.violating(leaving[len(uids) :])
                victims = tuple(world.pods[claim.id] for claim in leaving)
                violations = proposal.violations + len(extra)
                confirmed.append(in_tree.Proposal(proposal.node, victims, violations))
        if not confirmed:
            return None
        best = min(confirmed, key=lambda one: one.cost)
        return best.node, tuple(victim.uid for victim in best.victims)

    def _violating(self, uids: Sequence[str]) -> Collection[str]:
        claims = (self._state.claim(uid) for uid in uids)
        return self._budgets.violating([claim for claim in claims if claim is not None])

    def plan(self, world: what_if.World, uid: str, now: float) -> planner.Plan | planner.NoPlan:
        """Return what the extender would do for this pod, or why it would do nothing."""
        pod = world.pods[uid]
        self._follow(world)
        asked = self._waiting.get(uid)
        if asked is None:
            return planner.NoPlan("it cannot be read")
        view, nodes = self._state.view(), world.kept.table_for(world.nodes, pod.line)
        rows = [
            view.rows[node.name]
            for node in nodes.nodes
            if nodes.takes(node.name, pod.asks, pod.line.placement)
        ]
        info = views.PodInfo(asked.key, asked.uid, asked.requirements)
        terms = preemption.Terms(self._index, self._budgets)
        return planner.plan(self._pipeline, info, view, np.asarray(rows, dtype=np.intp), terms, now)

    def _follow(self, world: what_if.World) -> None:
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
        claim = claims.Claim(pod.uid, claims.ClaimKind.BOUND, pod.node, placed, placed.allocations)
        self._state.apply(deltas.ClaimDelta(pod.uid, None, claim))

    def _wait(self, uid: str, record: records.PodRecord | None) -> None:
        before = self._waiting.pop(uid, None)
        if record is not None:
            self._waiting[uid] = record
        if before is not record:
            self._state.apply(deltas.ObjectDelta(deltas.UNSCHEDULED_POD, uid, before, record))


def _stands(world: what_if.World, claim: views.Claim) -> bool:
    """Whether a claim is still what the world has."""
    if claim.usable_by:
        return world.kept.node_of(claim.usable_by) == claim.node
    pod = world.pods.get(claim.id)
    return pod is not None and pod.node == claim.node


@dataclasses.dataclass(frozen=True, slots=True)
class _Present:
    """The world as a snapshot shows it."""

    forest: forests.Forest
    pods: Mapping[str, what_if.Pod]
    nodes: fit.Table
    kept: nominations.Nominations


def planned(cluster: clusters.Cluster, uid: str) -> planner.Plan | planner.NoPlan:
    """Return whom the extender would evict for a waiting pod as things are, by its own planner.

    Candidates are nodes that have room for the pod, as for a simulation.
    """
    there = simulation.nodes(cluster)
    pods = {pod.uid: pod for pod in simulation.pods(cluster, {})}
    if uid not in pods:
        return planner.NoPlan("it takes no part in scheduling")
    table = fit.Table(there)
    kept = nominations.Nominations()
    for pod in pods.values():
        if pod.node:
            table.take(pod.node, pod.asks)
        elif pod.nominated:
            kept.keep(pod.line, pod.nominated, cluster.now)
    present = _Present(cluster.forest, pods, table, kept)
    return Preemptor(cluster, there, cluster.arguments).plan(present, uid, cluster.now)


def _node(node: fit.Node) -> core.Node:
    allocatable = {key: quantity.text(key, amount) for key, amount in node.allocatable.items()}
    return core.Node(
        metadata=core.ObjectMeta(name=node.name, labels=dict(node.labels)),
        status=core.NodeStatus(allocatable=dict(allocatable), capacity=dict(allocatable)),
    )


def _budgets(cluster: clusters.Cluster) -> budgets.Budgets:
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
) -> what_if.Outcome:
    """Play a cluster by everything that acts on it: gates, preemption and reclaim."""
    there = simulation.nodes(cluster, more)
    chosen = Preemptor(cluster, there, cluster.arguments, own_first=own_first)
    terms = simulation.terms(cluster, horizon, chosen)
    return simulation.play(cluster, terms, declared, more)
