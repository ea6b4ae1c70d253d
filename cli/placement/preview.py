"""Where a pod would be placed as things are, who would leave for it, or why nothing helps.

The plug-ins of the extender, its planner and its preempt verb decide. kube-scheduler's part is its
filters for resources, node selectors, node affinity and taints, and its own choice of victims.
"""

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np

from cli.placement import asked_pod, whole_extender
from cli.quota import cluster as clusters
from cli.quota import preemptor, simulation
from domain import wording
from domain.quota.simulation import fit, in_tree, what_if
from extender.framework import cycle, pipeline, verdicts, views, weighing
from extender.framework.eviction import victims as victim
from extender.preemption import planner
from extender.state import records

MOST_PLACES: Final = 20
"""Nodes that are named among those that take the pod."""
KUBE_SCHEDULER, EXTENDER = "kube-scheduler", "extender"
NOT_ELIGIBLE = "node selector, node affinity, taints or the node's condition keep the pod away"


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A node that takes the pod as it is."""

    node: str
    score: int
    """Of the plug-ins of the extender, 0 to 100."""
    tier: int
    """Nodes of a higher tier come first whatever the score, such as those of a Reservation."""
    grounds: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Leaver:
    """A pod that would leave, or that leaves already."""

    key: str
    priority: int
    requests: records.Pairs
    allocated: tuple[str, ...] = ()
    """Plug-ins that allocated something to it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Leaving:
    """Who would leave for the pod, and by whom they are evicted."""

    node: str
    by: str
    """`kube-scheduler` where a node has no room, `extender` where only its plug-ins refuse."""
    reason: str
    """Why the pod is refused there now."""
    victims: tuple[Leaver, ...]
    awaited: tuple[Leaver, ...] = ()
    """Those that are leaving already."""
    violations: int = 0
    """Evictions that disruption budgets refuse now."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """Nodes that are refused for one reason."""

    by: str
    reason: str
    nodes: tuple[str, ...]
    figures: str = ""
    """Of the first of these nodes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Preview:
    """The answer for one pod."""

    pod: str
    priority: int
    nodes: int
    """How many there are."""
    fits: int = 0
    """How many take the pod."""
    places: tuple[Place, ...] = ()
    """Of these the best ones, the best node first; at most `MOST_PLACES`."""
    leaving: Leaving | None = None
    refused: tuple[Refused, ...] = ()
    nothing: str = ""
    """Why no eviction would help."""
    notes: tuple[str, ...] = ()


def preview(asked: asked_pod.Asked, plugins: tuple[str, ...] = ()) -> Preview:
    """Try the pod; `plugins` are enabled besides those of the settings."""
    cluster = clusters.build(asked.snapshot)
    whole = whole_extender.build(asked.snapshot, cluster, plugins)
    known = whole.extender.state.node
    there = [one for one in simulation.nodes(cluster) if known(one.name) is not None]
    world = preemptor.present(cluster, there)
    pod = world.pods.get(asked.uid)
    if pod is None or pod.node:
        raise asked_pod.AskedPodError("the pod takes no part in scheduling: it has ended, or ends")
    chosen = preemptor.Preemptor(cluster, whole.extender)
    chosen.follow(world)
    record = whole.extender.records.pod(cluster.raw[asked.uid])
    if record is None:
        raise asked_pod.AskedPodError("the pod has ended")
    case = _Case(whole, world, pod, views.PodInfo.of(record), cluster.now)
    found = case.judged()
    notes = (*asked.notes, *cluster.notes, *whole.notes)
    if not found.places:
        leaving, nothing = case.leaving(chosen)
        found = dataclasses.replace(found, leaving=leaving, nothing=nothing)
    return dataclasses.replace(found, notes=tuple(dict.fromkeys(notes)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One pod in one world."""

    whole: whole_extender.Whole
    world: preemptor.Present
    pod: what_if.Pod
    info: views.PodInfo
    now: float

    @property
    def table(self) -> fit.Table:
        """Return room on nodes as kube-scheduler counts it for this pod."""
        return self.world.kept.table_for(self.world.nodes, self.pod.line)

    def judged(self) -> Preview:
        """Ask every filter about every node, and the scorers about those that pass."""
        view, table = self.whole.extender.state.view(), self.table
        wanted = self.pod.line.placement
        rows = [
            view.rows[node.name]
            for node in table.nodes
            if table.takes(node.name, self.pod.asks, wanted)
        ]
        candidates = np.asarray(rows, dtype=np.intp)
        line = self.whole.extender.pipeline
        asked = line.cycle(self.info, view)
        refused = list(self._without_room(table))
        passing = candidates
        if candidates.size:
            outcome = line.filter(asked, view, candidates, self.now)
            passing = candidates[outcome.codes == 0]
            refused += self._refusals(asked, view, candidates, outcome)
        return Preview(
            self.pod.key,
            self.pod.line.priority,
            len(table.nodes),
            int(passing.size),
            tuple(self._places(asked, view, passing)),
            refused=tuple(refused),
        )

    def _places(
        self, asked: cycle.Cycle, view: views.View, passing: verdicts.Rows
    ) -> Iterator[Place]:
        """Yield the nodes that pass, the best first."""
        if not passing.size:
            return
        line = self.whole.extender.pipeline
        scores = line.score(asked, view, passing, self.now).tolist()
        ranked = sorted(
            zip(passing.tolist(), scores, strict=True),
            key=lambda one: (-one[1], view.names[one[0]]),
        )
        for row, total in ranked[:MOST_PLACES]:
            tier, score = divmod(total, weighing.TIER)
            grounds = line.grounds(asked, view, row, self.now)
            yield Place(view.names[row], score, tier, tuple(grounds))

    def _refusals(
        self,
        asked: cycle.Cycle,
        view: views.View,
        rows: verdicts.Rows,
        outcome: pipeline.Outcome,
    ) -> Iterator[Refused]:
        """Yield what plug-ins refuse, reason by reason."""
        for number, refusal in enumerate(outcome.refusals, start=1):
            held = rows[outcome.codes == number].tolist()
            if held:
                found = self.whole.extender.pipeline.diagnose(
                    asked, view, held[0], refusal, self.now
                )
                names = tuple(view.names[row] for row in held)
                yield Refused(refusal.plugin, refusal.status.reason, names, found.figures)

    def _without_room(self, table: fit.Table) -> Iterator[Refused]:
        """Yield the nodes that kube-scheduler refuses."""
        wanted = self.pod.line.placement
        barred, full = [], []
        for node in table.nodes:
            if not table.takes(node.name, {}, wanted):
                barred.append(node.name)
            elif not table.fits(node.name, self.pod.asks):
                full.append(node.name)
        if barred:
            yield Refused(KUBE_SCHEDULER, NOT_ELIGIBLE, tuple(barred))
        if full:
            yield Refused(KUBE_SCHEDULER, "no room", tuple(full), self._lack(table))

    def _lack(self, table: fit.Table) -> str:
        short = table.lacks(self.pod.asks, self.pod.line.placement)
        amounts = ", ".join(wording.named(key, amount) for key, amount in sorted(short.items()))
        return f"the nearest one lacks {amounts}" if amounts else "no node offers what it requests"

    def leaving(self, chosen: preemptor.Preemptor) -> tuple[Leaving | None, str]:
        """Return who would leave, first by kube-scheduler's own preemption; else why none."""
        proposal = chosen.proposed(self.world, self.pod.uid, self.now)
        if proposal is not None:
            return self._proposed(proposal), ""
        found = chosen.plan(self.world, self.pod.uid, self.now)
        if isinstance(found, planner.NoPlan):
            return None, self._nothing(found)
        plan = found.found
        return Leaving(
            found.node,
            EXTENDER,
            found.refusal,
            tuple(map(_leaver, plan.victims)),
            tuple(map(_leaver, plan.leaving)),
            plan.violations,
        ), ""

    def _proposed(self, proposal: in_tree.Proposal) -> Leaving:
        state = self.whole.extender.state
        claims = [state.claim(one.uid) for one in proposal.victims]
        return Leaving(
            proposal.node,
            KUBE_SCHEDULER,
            f"no room: {self._lack(self.table)}",
            tuple(_leaver(claim) for claim in claims if claim is not None),
            violations=proposal.violations,
        )

    def _nothing(self, found: planner.NoPlan) -> str:
        if not self.info.requirements.preempts:
            return found.reason
        if any(
            self.table.takes(node.name, self.pod.asks, self.pod.line.placement)
            for node in self.table.nodes
        ):
            return found.reason
        return "on no node would pods of lower priority make enough room"


def _leaver(claim: views.Claim) -> Leaver:
    granted = tuple(sorted(claim.allocations))
    requests = claim.pod.requirements.requests
    return Leaver(claim.pod.key, victim.priority_of(claim), requests, granted)
