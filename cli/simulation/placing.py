"""Which waiting pods of a snapshot would get a place, and where, by the plug-ins. Pure.

Pods are tried in the order of kube-scheduler's queue, each on the state that the ones before it
left. Nobody is evicted, and pods behind scheduling gates are not tried.
"""

import collections
import dataclasses
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from cli import reading
from cli.output import progress
from cli.placement import whole_extender
from cli.quota import cluster as clusters
from cli.quota import preemptor, simulation
from cli.simulation import node_choice
from cli.snapshot import format as formats
from domain.quota.simulation import what_if
from domain.scoring import objects
from extender.framework import pipeline, verdicts, views
from extender.gangs.planning import in_tree
from extender.state import allocations, claims, deltas, records

KUBE_SCHEDULER: Final = "kube-scheduler"
NO_ROOM: Final = "no node that suits the pod has room"
_TRIES: Final = 64
"""Nodes that may turn out not to have the CPUs or devices that a pod needs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A pod that gets a place."""

    uid: str
    key: str
    node: str
    doubt: str = ""
    """Why kube-scheduler may choose another node; empty where it does not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """A pod that keeps waiting."""

    uid: str
    key: str
    by: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the pods that wait."""

    places: tuple[Place, ...]
    waits: tuple[Wait, ...]
    gated: tuple[str, ...] = ()
    """Pods behind scheduling gates, which no scheduler tries."""
    notes: tuple[str, ...] = ()


_Kind = tuple[int, object, str]


def played(
    snapshot: formats.Snapshot,
    plugins: tuple[str, ...] = (),
    step: progress.Step = progress.silent,
) -> Outcome:
    """Place the waiting pods of a snapshot one after another."""
    case = _Case(snapshot, plugins)
    waiting, gated = case.waiting()
    places: list[Place] = []
    waits: list[Wait] = []
    for number, pod in enumerate(waiting):
        step("placing pods", number, len(waiting))
        found = case.tried(pod)
        if isinstance(found, Place):
            places.append(found)
        else:
            waits.append(found)
    return Outcome(tuple(places), tuple(waits), tuple(gated), case.notes)


class _Case:
    """The state of the extender and room on nodes, which change with every pod that is placed."""

    def __init__(self, snapshot: formats.Snapshot, plugins: tuple[str, ...]) -> None:
        self._cluster = clusters.build(snapshot)
        self._choice = node_choice.NodeChoice(snapshot)
        self._whole = whole_extender.build(snapshot, self._cluster, plugins, self._choice.projector)
        self._state = self._whole.extender.state
        there = [
            one for one in simulation.nodes(self._cluster) if self._state.node(one.name) is not None
        ]
        self._world = preemptor.present(self._cluster, there)
        preemptor.Preemptor(self._cluster, self._whole.extender).follow(self._world)
        self._choice.follow(self._state)
        self._raw = {
            str(one["metadata"].get("uid", "")): one for one in snapshot.objects.get("pods", ())
        }
        self._refused: dict[_Kind, Wait] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the outcome."""
        return tuple(dict.fromkeys((*self._cluster.notes, *self._whole.notes)))

    def waiting(self) -> tuple[list[what_if.Pod], list[str]]:
        """Return the pods of kube-scheduler's queue in its order, and those behind gates."""
        found, gated = [], []
        for uid, pod in self._world.pods.items():
            if pod.node:
                continue
            if self._cluster.raw[uid].spec.scheduling_gates:
                gated.append(pod.key)
            else:
                found.append(pod)
        found.sort(key=lambda one: (-one.line.priority, one.line.created_at, one.key))
        return found, sorted(gated)

    def tried(self, pod: what_if.Pod) -> Place | Wait:
        """Place one pod, which then holds what it takes; or say why not."""
        record = self._whole.extender.records.pod(self._cluster.raw[pod.uid])
        if record is None:
            return Wait(pod.uid, pod.key, "", "the pod has ended")
        # What was refused to one pod is refused to all that are alike: nothing becomes free.
        quota = self._cluster.quota_of(self._cluster.pods[pod.uid])
        kind = (id(record.requirements), pod.line.placement, quota)
        if (known := self._refused.get(kind)) is not None:
            return dataclasses.replace(known, uid=pod.uid, key=pod.key)
        found = self._chosen(pod, record)
        if isinstance(found, Wait):
            self._refused[kind] = found
            return found
        node, grants = found
        read = reading.either(None, msgspec.convert, self._raw[pod.uid], objects.Pod)
        doubt = self._choice.doubt(read) if read is not None else ""
        self._hold(pod, record, node, grants)
        return Place(pod.uid, pod.key, node, doubt)

    def _chosen(
        self, pod: what_if.Pod, record: records.PodRecord
    ) -> tuple[str, dict[str, verdicts.Grant]] | Wait:
        view, line = self._state.view(), self._whole.extender.pipeline
        table = self._world.kept.table_for(self._world.nodes, pod.line)
        there = np.flatnonzero(table.fitting(pod.asks, pod.line.placement)).tolist()
        rows = np.asarray([view.rows[table.nodes[at].name] for at in there], dtype=np.intp)
        if not rows.size:
            return Wait(pod.uid, pod.key, KUBE_SCHEDULER, NO_ROOM)
        reasons: collections.Counter[tuple[str, str]] = collections.Counter()
        asked = line.cycle(views.PodInfo.of(record), view)
        outcome = line.filter(asked, view, rows, self._cluster.now)
        for code in outcome.codes[outcome.codes != 0].tolist():
            refusal = outcome.refusals[code - 1]
            reasons[refusal.plugin, refusal.status.text] += 1
        rows = rows[outcome.codes == 0]
        required = in_tree.Requirement(self._state, record.requirements, pod.line.placement)
        for row in self._ordered(pod, view, asked, rows)[:_TRIES]:
            if why := required.refusal(view, row):
                reasons[KUBE_SCHEDULER, why] += 1
                continue
            granted = line.reserve(asked, view, row)
            if not isinstance(granted, pipeline.Refusal):
                return view.names[row], granted
            reasons[granted.plugin, granted.status.text] += 1
        (by, reason), _ = max(reasons.items(), key=lambda one: one[1])
        return Wait(pod.uid, pod.key, by, reason)

    def _ordered(
        self, pod: what_if.Pod, view: views.View, asked: pipeline.Cycle, rows: verdicts.Rows
    ) -> list[int]:
        """Return the rows that pass, the node that would be chosen first."""
        if rows.size <= 1:
            return [int(row) for row in rows]
        points = self._whole.extender.pipeline.score(asked, view, rows, self._cluster.now)
        read = reading.either(None, msgspec.convert, self._raw[pod.uid], objects.Pod)
        if read is None:
            # What kube-scheduler would make of such a pod cannot be said.
            return [int(row) for row in rows]
        return [int(rows[at]) for at in self._choice.order(read, view, rows, points)]

    def _hold(
        self,
        pod: what_if.Pod,
        record: records.PodRecord,
        node: str,
        grants: dict[str, verdicts.Grant],
    ) -> None:
        """Let the pod be on that node from here on, with what plug-ins allocate to it there."""
        held = {name: one.allocation for name, one in grants.items() if one.allocation is not None}
        granted: allocations.Allocations = held or allocations.NONE
        now = self._cluster.now
        placed = msgspec.structs.replace(
            record, node=node, nominated="", assigned_at=now, allocations=granted
        )
        consumes = allocations.consumed(granted) if granted else ""
        claim = claims.Claim(
            pod.uid, claims.ClaimKind.ASSUMED, node, placed, granted, consumes=consumes
        )
        for change in self._ended(pod):
            self._state.apply(change)
        self._state.apply(deltas.ClaimDelta(pod.uid, None, claim))
        for grant in grants.values():
            for change in grant.changes:
                self._state.apply(change)
        self._world.nodes.take(node, pod.asks)

    def _ended(self, pod: what_if.Pod) -> Iterator[deltas.Delta]:
        """Yield the end of what the state keeps of a pod while it waits."""
        waits = self._state.told(deltas.UNSCHEDULED_POD, pod.uid)
        if waits is not None:
            yield deltas.ObjectDelta(deltas.UNSCHEDULED_POD, pod.uid, waits.after, None)
        kept = self._state.claim(claims.nominated(pod.uid))
        if kept is not None:
            yield deltas.ClaimDelta(kept.id, kept, None)
        self._world.kept.drop(pod.uid)
