"""The victim planner: which pods leave so that a pod is placed, and on which node. Pure.

Work is bounded whatever the cluster: one pass of the vector filters over the candidates for every
plug-in that refuses everywhere, at most `MOST_NODES` nodes looked at one by one, fewer where that
takes more than `MOST_JUDGEMENTS`, on each at most `preemption.MOST_POTENTIAL` potential victims,
and never more than `preemption.MOST_VICTIMS`.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from domain import wording
from extender.framework import pipeline, verdicts, views
from extender.framework.eviction import preemption, trial, victims

MOST_NODES: Final = 32
"""Nodes on which victims are sought one by one, spread over the candidates."""
MOST_JUDGEMENTS: Final = 256
"""How often filters are asked about nodes without some claims; the node at hand is finished."""
_MOST_NAMED: Final = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Who leaves for a pod, where it is expected then, and the arithmetic behind it."""

    pod: views.PodInfo
    node: str
    found: victims.Found
    refusal: str
    """Why the pod is refused now, with figures."""
    granted: Mapping[str, msgspec.Struct] = dataclasses.field(default_factory=dict)
    """By plug-in: what is allocated to it there, of what the victims hold or what is free."""

    def sentence(self, namespace: str = "") -> str:
        """Return it in one sentence; pods of other namespaces than a given one are not named."""
        groups = (
            (f"evicts {len(self.found.victims)} of lower priority", self.found.victims),
            ("waits for pods that are leaving", self.found.leaving),
            ("takes what was kept for lower preemptors", self.found.released),
        )
        said = "; ".join(f"{what}: {named(held, namespace)}" for what, held in groups if held)
        priority = self.pod.requirements.priority
        return (
            f"{self.pod.key} (priority {priority}) is refused: {self.refusal}. Preemption for "
            f"{self.node} {said}"
        )

    def document(self) -> dict[str, Any]:
        """Return it as a document."""
        found = self.found
        return {
            "pod": self.pod.key,
            "node": self.node,
            "victims": [claim.pod.key for claim in found.victims],
            "priorities": [victims.priority_of(claim) for claim in found.victims],
            "leaving": [claim.pod.key for claim in found.leaving],
            "violatedBudgets": found.violations,
            "sentence": self.sentence(),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class NoPlan:
    """Why no pod is preempted for a pod."""

    reason: str
    passes: bool = False
    """Whether a node takes it without."""

    def document(self) -> dict[str, Any]:
        """Return it as a document."""
        return {"victims": [], "sentence": self.reason}


def shown(key: str, uid: str, namespace: str) -> str:
    """Return how a pod is called in what people of a namespace may read."""
    return key if namespace in ("", key.partition("/")[0]) else f"pod {uid} of another namespace"


def named(held: tuple[views.Claim, ...], namespace: str) -> str:
    """Name some pods with priority and requests, as people of a namespace may read it."""
    names = [
        f"{shown(claim.pod.key, claim.pod.uid, namespace)} "
        f"(priority {victims.priority_of(claim)}, {_amounts(claim)})"
        for claim in held[:_MOST_NAMED]
    ]
    more = len(held) - len(names)
    return ", ".join([*names, f"{more} more"] if more else names)


def _amounts(claim: views.Claim) -> str:
    asked = claim.pod.requirements.requests[:4]
    return ", ".join(wording.named(name, value) for name, value in asked) or "no requests"


def plan(
    plugins: pipeline.Pipeline,
    pod: views.PodInfo,
    view: views.View,
    rows: verdicts.Rows,
    terms: preemption.Terms,
    now: float,
) -> Plan | NoPlan:
    """Choose node and victims among candidates that nothing but our filters refuses.

    In kube-scheduler's order: fewest violated disruption budgets, lowest priority of the most
    important victim, smallest sum of priorities, fewest victims, latest start of that victim.
    """
    if not pod.requirements.preempts:
        return NoPlan("its preemptionPolicy is Never")
    # The row of a node that was deleted stays as long as pods are bound there.
    rows = np.intersect1d(rows, np.flatnonzero(view.known))
    if not rows.size:
        return NoPlan("no node passed kube-scheduler's own filters lately")
    asked = plugins.cycle(pod, view)
    outcome = plugins.filter(asked, view, rows, now)
    if not outcome.codes.all():
        return NoPlan("a node takes it without", passes=True)
    case = _Case(plugins, pod, view, rows, terms, now)
    plans = list(case.anywhere(outcome)) or list(case.one_by_one(outcome))
    if not plans:
        why = outcome.refusal(0)
        assert why is not None
        return NoPlan(f"no victims would help: {why.status.reason}")
    node, found = min(plans, key=lambda one: one[1].cost)
    place = int(np.flatnonzero(rows == view.rows[node])[0])
    refusal = outcome.refusal(place)
    assert refusal is not None
    granted = case.allocated(int(rows[place]), found)
    if isinstance(granted, pipeline.Refusal):
        return NoPlan(f"nothing could be allocated on {node}: {granted.status.reason}")
    said = plugins.sentence(asked, view, int(rows[place]), refusal, now)
    return Plan(pod, node, found, said, granted)


_Chosen = tuple[str, victims.Found]


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One pod and its candidates."""

    plugins: pipeline.Pipeline
    pod: views.PodInfo
    view: views.View
    rows: verdicts.Rows
    terms: preemption.Terms
    now: float

    def anywhere(self, outcome: pipeline.Outcome) -> Iterator[_Chosen]:
        """Yield the best node for the victims of each plug-in that refuses everywhere."""
        for number, refusal in enumerate(outcome.refusals, start=1):
            selector = self.plugins.cluster_selectors.get(refusal.plugin)
            places = np.flatnonzero(outcome.codes == number)
            if selector is None or not places.size:
                continue
            probe = self._trial(int(self.rows[places[0]]))
            potential = preemption.potential_of(probe, self.terms, selector)
            helps = functools.partial(probe.is_silent, selector.name)
            if not preemption.search(probe, self.terms, potential, helps):
                continue
            chosen = self._best(probe)
            if chosen is not None:
                yield chosen

    def _best(self, probe: trial.Trial) -> _Chosen | None:
        """Return the node with the highest score among those that pass without these claims."""
        relieved = probe.everywhere()
        asked = self.plugins.cycle(self.pod, relieved)
        codes = self.plugins.filter(asked, relieved, self.rows, self.now).codes
        passing = self.rows[codes == 0]
        if not passing.size:
            return None
        scores = self.plugins.score(asked, relieved, passing, self.now)
        on = self._trial(int(passing[int(np.argmax(scores))]))
        found = preemption.on_node(on, self.terms, first=tuple(probe.gone.values()))
        return None if isinstance(found, pipeline.Refusal) else (on.node, found)

    def one_by_one(self, outcome: pipeline.Outcome) -> Iterator[_Chosen]:
        """Yield nodes on which victims help, of as many as are looked at."""
        helping = (self.plugins.names_victims(refusal.plugin) for refusal in outcome.refusals)
        rows = self.rows[np.asarray((False, *helping))[outcome.codes]]
        spread = np.linspace(0, rows.size - 1, min(rows.size, MOST_NODES)).astype(np.intp)
        looked = 0
        for row in rows[spread].tolist():
            on = self._trial(row)
            found = preemption.on_node(on, self.terms)
            if not isinstance(found, pipeline.Refusal) and found.claims:
                yield on.node, found
            looked += on.judgements
            if looked >= MOST_JUDGEMENTS:
                return

    def allocated(
        self, row: int, found: victims.Found
    ) -> dict[str, msgspec.Struct] | pipeline.Refusal:
        """Return what plug-ins allocate on a node once all victims have left."""
        on = self._trial(row)
        on.remove(found.claims)
        grants = self.plugins.reserve(on.judged()[0], on.view, 0)
        if isinstance(grants, pipeline.Refusal):
            return grants
        return {name: grant.allocation for name, grant in grants.items() if grant.allocation}

    def _trial(self, row: int) -> trial.Trial:
        return trial.Trial(self.plugins, self.pod, self.view, row, self.now)
