"""Pods of lower priority that may leave for a gang, and in which order they are tried. Pure.

A step frees the place of one more member on one node, as far as resources tell; the cheapest comes
first. What no step needed comes at the end, node by node, for constraints that no number shows.
"""

import dataclasses
import heapq
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from typing import Final

from domain.pods import disruption_budgets as disruption
from extender.framework import pipeline, victim_units, views
from extender.framework.eviction import victims
from extender.gangs.planning import in_tree
from extender.state import cluster_state

MOST_VICTIMS: Final = 512
"""Pods that leave for one gang at most, and the size of a gang that leaves as a whole."""
MOST_STEPS: Final = 4096
_NODES: Final = 8
"""Nodes that are looked at in one go."""
_CLAIMS: Final = 32
"""Claims that are judged in one go."""
_MERGED: Final = 512
"""Steps that are put in order in one go."""

Unit = victim_units.Unit
_Key = tuple[int, int, float, str]
_Cost = tuple[int, int, float]
_Step = tuple[_Cost, tuple[Unit, ...]]
"""Who leaves in it, and what that costs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """Which pods may be preempted at all."""

    budgets: disruption.Budgets = disruption.NONE
    until: float = float("inf")
    """On the wall clock: what takes longer to leave is not waited for."""
    refused: frozenset[str] = frozenset()
    """Uids of pods whose eviction was refused lately, or that leave for others."""
    going: frozenset[str] = frozenset()
    """Uids of pods that were evicted for this gang, and that the watch still shows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Judge:
    """Finds the claims that may be preempted for a pod in one view."""

    plugins: pipeline.Pipeline
    pod: views.PodInfo
    """The least important member."""
    view: views.View
    terms: Terms
    now: float
    units: victim_units.Units
    known: dict[str, Unit | None] = dataclasses.field(default_factory=dict)
    """By the claim that stands for a unit: the unit, None where it may not leave."""

    def leaving(self, claim: views.Claim) -> bool:
        """Whether a pod leaves anyway, in time."""
        if claim.kind is not views.ClaimKind.BOUND:
            return False
        at = claim.pod.leaves_at
        return claim.id in self.terms.going or 0 <= at <= self.terms.until

    def allowed(self, claims: Iterable[views.Claim]) -> Generator[None, None, list[Unit]]:
        """Return the units of claims that may leave; takes a step after some were judged."""
        found: dict[str, Unit] = {}
        judged = 0
        for claim in claims:
            if not self._is_candidate(claim):
                continue
            unit = self.units.of(claim)
            if unit is None:
                continue
            if unit.lead.id not in self.known:
                self.known[unit.lead.id] = unit if self._may_leave(unit) else None
                judged += len(unit.claims)
                if judged >= _CLAIMS:
                    judged = 0
                    yield
            if self.known[unit.lead.id] is not None:
                found[unit.lead.id] = unit
        return list(found.values())

    def _is_candidate(self, claim: views.Claim) -> bool:
        """Whether one pod may leave, as far as the pod itself tells."""
        wanted = claim.pod.requirements
        return (
            claim.kind is views.ClaimKind.BOUND
            and claim.pod.leaves_at < 0
            and wanted.priority < self.pod.requirements.priority
            and not wanted.daemon
            and claim.id not in self.terms.refused
            and claim.id not in self.terms.going
            and self.now + wanted.grace_seconds <= self.terms.until
        )

    def _may_leave(self, unit: Unit) -> bool:
        if len(unit.claims) > MOST_VICTIMS or self.terms.budgets.violating(unit.claims):
            return False
        return all(
            self._is_candidate(one)
            and victims.spared(self.plugins, self.pod, self.view, one) is None
            for one in unit.claims
        )


def judge(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, terms: Terms, now: float
) -> Judge:
    """Return who judges for a pod."""
    units = victim_units.Units(plugins, view, most=MOST_VICTIMS, going=terms.going)
    return Judge(plugins, pod, view, terms, now, units)


def cost(unit: Unit) -> _Key:
    """Return the key that sorts what costs least first: priority, pods, and the latest start."""
    priority, started, ident = victims.expendable(unit.lead)
    return priority, len(unit.claims), started, ident


def leaving(asked: Judge) -> Generator[None, None, list[views.Claim]]:
    """Return the pods that leave anyway."""
    found: list[views.Claim] = []
    for number, row in enumerate(asked.view.rows.values()):
        found += [claim for claim in asked.view.node(row).claims if asked.leaving(claim)]
        if number % _NODES == _NODES - 1:
            yield
    return found


def by_node(
    asked: Judge, cluster: cluster_state.ClusterState, demand: Mapping[str, int]
) -> Generator[None, None, list[tuple[Unit, ...]]]:
    """Return the steps that free places on nodes, the cheapest first.

    `demand` is what one member asks for at most, by resource.
    """
    slots: list[list[_Step]] = []
    for number, (name, row) in enumerate(asked.view.rows.items()):
        units = sorted((yield from asked.allowed(asked.view.node(row).claims)), key=cost)
        if units:
            free = {what: in_tree.free(cluster, name, what) for what in (*demand, in_tree.PODS)}
            found = _slots(name, units, free, {**demand, in_tree.PODS: 1})
            slots.append([(_step_cost(step), step) for step in found])
        if number % _NODES == _NODES - 1:
            yield
    return (yield from _merged(slots))


def _slots(
    node: str, units: Sequence[Unit], free: dict[str, int], demand: Mapping[str, int]
) -> list[tuple[Unit, ...]]:
    """Part the units of a node into steps, each of which makes room for one more member."""
    asked = {what: amount for what, amount in demand.items() if amount}
    found: list[tuple[Unit, ...]] = []
    room, taken = _room(free, asked), []
    for unit in units:
        taken.append(unit)
        for claim in unit.claims:
            if claim.node == node:
                free[in_tree.PODS] += 1
                for what, amount in claim.pod.requirements.requests:
                    if what in free:
                        free[what] += amount
        if _room(free, asked) > room:
            room = _room(free, asked)
            found.append(tuple(taken))
            taken = []
    return [*found, tuple(taken)] if taken else found


def _room(free: Mapping[str, int], asked: Mapping[str, int]) -> int:
    return max(0, min(free[what] // amount for what, amount in asked.items()))


def _merged(
    slots: Sequence[Sequence[_Step]],
) -> Generator[None, None, list[tuple[Unit, ...]]]:
    """Return all steps, the cheapest first, those of one node in their order."""
    waiting = [(steps[0][0], place, 0) for place, steps in enumerate(slots)]
    heapq.heapify(waiting)
    found: list[tuple[Unit, ...]] = []
    while waiting and len(found) < MOST_STEPS:
        _, place, number = heapq.heappop(waiting)
        found.append(slots[place][number][1])
        if number + 1 < len(slots[place]):
            heapq.heappush(waiting, (slots[place][number + 1][0], place, number + 1))
        if len(found) % _MERGED == 0:
            yield
    return found


def _step_cost(step: Sequence[Unit]) -> _Cost:
    top, _, started, _ = max(cost(unit) for unit in step)
    return top, sum(len(unit.claims) for unit in step), started


def of_cluster(
    asked: Judge, groups: Mapping[Hashable, Mapping[str, views.Claim]], name: str
) -> Generator[None, None, list[tuple[Unit, ...]]]:
    """Return the steps that free what a plug-in counts in the whole cluster, such as quota."""
    selector = asked.plugins.cluster_selectors[name]
    found: dict[str, Unit] = {}
    for number, claim in enumerate(selector.potential(asked.pod, asked.view, groups)):
        found |= {unit.lead.id: unit for unit in (yield from asked.allowed((claim,)))}
        if number % 256 == 255:
            yield
    return [(unit,) for unit in sorted(found.values(), key=cost)[:MOST_STEPS]]
