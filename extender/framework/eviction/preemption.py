"""Preemption for constraints of ours: which victims make a pod pass every filter. Pure.

Plug-ins that refuse a pod name whose claims hold what it lacks; the framework chooses. Victims are
put back one after the other, the most important first, as long as the pod still passes, so that
none is in vain.
"""

import dataclasses
import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from domain.pods import disruption_budgets as disruption
from extender.framework import claim_index, cycle, pipeline, protocols, verdicts, views
from extender.framework.eviction import trial
from extender.framework.eviction import victims as victim

MOST_POTENTIAL: Final = 128
"""Claims among which victims are sought: the least important ones."""
MOST_VICTIMS: Final = 64
"""A pod for which more would have to leave preempts none."""
_MOST_SINGLES: Final = 32

NOT_LOWER: Final = verdicts.Status("no pod of lower priority can make room")
TOO_MANY: Final = verdicts.Status("too many pods would have to leave")


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """Which pods may be preempted at all, and whose eviction a budget refuses."""

    index: claim_index.ClaimIndex
    budgets: disruption.Budgets = disruption.NONE
    node: str = ""
    """The only node where victims may be; empty: anywhere."""
    until: float = math.inf
    """On the wall clock: what takes longer to leave is not waited for."""
    refused: frozenset[str] = frozenset()
    """Claims whose eviction was refused lately."""
    going: frozenset[str] = frozenset()
    """Claims that others evict at this moment, or that were evicted and the watch has not told."""
    least: dict[str, list[views.Claim]] = dataclasses.field(default_factory=dict, compare=False)
    """By plug-in: the least important claims that it named, found once for all nodes."""

    def allows(self, on: trial.Trial, claim: views.Claim) -> bool:
        """Whether a claim may leave, and all that cannot be without it."""
        unit = on.unit(claim)
        if unit is None:
            return False
        if len(unit.claims) == 1:
            return self._allows(on, claim, on.view)
        # One after the other: what a quota may lose depends on what it has lost.
        refused = on.first(unit.claims, lambda one: not self._allows(on, one, on.everywhere()))
        return refused is None

    def _allows(self, on: trial.Trial, claim: views.Claim, view: views.View) -> bool:
        if self.node and claim.node != self.node:
            return False
        if claim.id in self.going or claim.id in self.refused:
            return claim.id in self.going
        leaves_at = claim.pod.leaves_at
        if leaves_at < 0:
            leaves_at = on.now + claim.pod.requirements.grace_seconds
        if leaves_at > self.until:
            return False
        return victim.spared(on.plugins, on.pod, view, claim) is None

    def is_free(self, claim: views.Claim) -> bool:
        """Whether no pod is evicted for what a claim holds."""
        return claim.id in self.going or victim.is_free(claim)


def victims(
    plugins: pipeline.Pipeline, pod: views.PodInfo, view: views.View, row: int, now: float
) -> verdicts.Victims | cycle.Refusal:
    """Return the victims on one node, or the refusal that no victim ends.

    A pod that passes already has none.
    """
    on = trial.Trial(plugins, pod, view, row, now)
    terms = Terms(claim_index.ClaimIndex({c.id: c for c in view.node(row).claims}))
    found = on_node(on, terms)
    if isinstance(found, cycle.Refusal):
        return found
    first_to_leave = sorted(found.claims, key=victim.expendable)
    return verdicts.Victims(tuple(claim.id for claim in first_to_leave))


def on_node(
    on: trial.Trial,
    terms: Terms,
    fixed: Sequence[views.Claim] = (),
    first: Sequence[views.Claim] = (),
) -> victim.Found | cycle.Refusal:
    """Return who has to leave for a pod to pass on a node, or the refusal that no victim ends.

    `fixed` leave in any case, `first` before others are looked for.
    """
    on.remove((*fixed, *first))
    refusal = _ask(on, terms)
    if refusal is not None:
        return refusal
    kept = {on.lead(claim).id for claim in fixed}
    chosen = [claim for claim in on.leads if claim.id not in kept]
    if len(chosen) > 1:
        # Those that one plug-in needs may be of use to another one, too.
        reprieve(on, terms, chosen, on.passes)
    return found_by(on, terms)


def found_by(on: trial.Trial, terms: Terms) -> victim.Found:
    """Return who has left in a trial, in the order of importance."""
    gone = sorted(on.gone.values(), key=victim.importance)
    evicted = tuple(claim for claim in gone if not terms.is_free(claim))
    nominated = views.ClaimKind.NOMINATED
    return victim.Found(
        evicted,
        tuple(c for c in gone if terms.is_free(c) and c.kind is not nominated),
        tuple(c for c in gone if c.kind is nominated),
        len(terms.budgets.violating(evicted)),
    )


def _ask(on: trial.Trial, terms: Terms) -> cycle.Refusal | None:
    """Let claims leave until every filter passes; each plug-in that still refuses names them."""
    while True:
        asked, refusal = on.judged()
        if refusal is None:
            return None
        before = len(on.gone)
        failed = _make_room(on, terms, asked, refusal)
        if failed is not None:
            return failed
        if len(on.gone) == before:
            return refusal
        if sum(not terms.is_free(claim) for claim in on.gone.values()) > MOST_VICTIMS:
            return cycle.Refusal(refusal.plugin, TOO_MANY)


def _make_room(
    on: trial.Trial, terms: Terms, asked: cycle.Cycle, refusal: cycle.Refusal
) -> cycle.Refusal | None:
    """Let claims leave that the plug-in which refuses names; return why none would help."""
    failed = _on_the_node(on, terms, asked, refusal)
    anywhere = on.plugins.cluster_selectors.get(refusal.plugin)
    if failed is None or anywhere is None:
        return failed
    potential = potential_of(on, terms, anywhere)
    if search(on, terms, potential, lambda: on.is_silent(anywhere.name)):
        return None
    return cycle.Refusal(anywhere.name, NOT_LOWER) if potential else failed


def _on_the_node(
    on: trial.Trial, terms: Terms, asked: cycle.Cycle, refusal: cycle.Refusal
) -> cycle.Refusal | None:
    named: set[str] = set()
    for selector in pipeline.selectors_of(on.plugins, refusal.plugin):
        if selector.name not in asked.prepared:
            continue
        answer = selector.victims(asked.prepared[selector.name], on.view, 0)
        if isinstance(answer, verdicts.Status):
            return cycle.Refusal(selector.name, answer)
        named.update(answer.claims)
    if not named:
        return refusal
    held = _leads(on, (claim for claim in on.view.node(0).claims if claim.id in named))
    allowed = sorted(
        (claim for claim in held if terms.allows(on, claim)),
        key=lambda claim: _cheap(on, terms, claim),
    )
    if not allowed:
        return cycle.Refusal(refusal.plugin, NOT_LOWER)
    potential = _budgeted(on, terms, allowed[:MOST_POTENTIAL])
    # One trial tells where all of them together would not be enough.
    on.remove(potential)
    _, left = on.judged()
    on.put_back(potential)
    if left is not None and left.plugin == refusal.plugin:
        return left
    search(on, terms, potential, lambda: on.is_silent(refusal.plugin))
    return None


def _cheap(
    on: trial.Trial, terms: Terms, lead: views.Claim
) -> tuple[bool, int, int, tuple[float, str]]:
    """Return the key that sorts what costs least first: of equals what leaves alone."""
    priority, started, ident = victim.expendable(lead)
    return not terms.is_free(lead), priority, len(_whole(on, (lead,))), (started, ident)


def _leads(on: trial.Trial, claims: Iterable[views.Claim]) -> list[views.Claim]:
    """Return one claim for all that leave together."""
    return list({lead.id: lead for lead in map(on.lead, claims)}.values())


def _budgeted(on: trial.Trial, terms: Terms, allowed: Sequence[views.Claim]) -> list[views.Claim]:
    """Return those that may leave, in order, but those last that a disruption budget protects."""
    kept = terms.budgets.violating([c for c in _whole(on, allowed) if not terms.is_free(c)])
    return sorted(allowed, key=lambda claim: _any_of(on, claim, kept))


def _whole(on: trial.Trial, leads: Iterable[views.Claim]) -> list[views.Claim]:
    """Return all that leave with some claims."""
    units = (on.unit(lead) for lead in leads)
    return [claim for unit in units if unit is not None for claim in unit.claims]


def _any_of(on: trial.Trial, lead: views.Claim, kept: Collection[str]) -> bool:
    unit = on.unit(lead)
    return unit is not None and any(claim.id in kept for claim in unit.claims)


def potential_of(
    on: trial.Trial,
    terms: Terms,
    selector: protocols.ClusterVictimSelector,
) -> list[views.Claim]:
    """Return who may leave for a plug-in that refuses everywhere, the first to leave first.

    Those that cost no eviction come first, those that a disruption budget protects last.
    """
    least = terms.least.get(selector.name)
    if least is None:
        named = selector.potential(on.pod, on.live, terms.index.groups(selector))
        here = (c for c in named if not terms.node or c.node == terms.node)
        least = terms.least[selector.name] = heapq.nsmallest(
            4 * MOST_POTENTIAL, here, key=lambda c: (not terms.is_free(c), *victim.expendable(c))
        )
    there = _leads(on, (claim for claim in least if claim.id not in on.gone))
    allowed = sorted(
        (claim for claim in there if terms.allows(on, claim)),
        key=lambda claim: _cheap(on, terms, claim),
    )
    return _budgeted(on, terms, allowed[:MOST_POTENTIAL])


def search(
    on: trial.Trial,
    terms: Terms,
    potential: Sequence[views.Claim],
    helps: Callable[[], bool],
) -> bool:
    """Let as few of the least important claims leave as help; False, and nothing, if all do not."""
    taken: list[views.Claim] = []
    while not helps():
        # Twice as many each time, so that the number of trials is small where many have to go.
        more = potential[len(taken) : 2 * len(taken) + 1]
        if not more:
            on.put_back(taken)
            return False
        taken += more
        on.remove(more)
    _shorten(on, taken, helps)
    reprieve(on, terms, taken, helps)
    _prefer_one(on, [c for c in taken if c.id in on.gone], potential, terms, helps)
    return True


def _shorten(on: trial.Trial, taken: list[views.Claim], helps: Callable[[], bool]) -> None:
    """Put back what the last doubling took too much of: only the first ones that help leave."""
    least, most = len(taken) // 2 + 1, len(taken)
    while least < most:
        middle = (least + most) // 2
        on.put_back(taken[middle:most])
        if helps():
            most = middle
        else:
            on.remove(taken[middle:most])
            least = middle + 1
    del taken[most:]


def reprieve(
    on: trial.Trial,
    terms: Terms,
    taken: Sequence[views.Claim],
    helps: Callable[[], bool],
) -> None:
    """Put back the pods that need not leave: protected ones first, then the most important."""
    ordered = sorted(taken, key=victim.importance)
    kept = terms.budgets.violating([c for c in _whole(on, ordered) if not terms.is_free(c)])
    # What leaves anyway costs nothing, so it is the last to be put back.
    ordered.sort(key=lambda claim: (terms.is_free(claim), not _any_of(on, claim, kept)))
    for claim in ordered:
        on.put_back((claim,))
        if not helps():
            on.remove((claim,))


def _prefer_one(
    on: trial.Trial,
    chosen: Sequence[views.Claim],
    potential: Sequence[views.Claim],
    terms: Terms,
    helps: Callable[[], bool],
) -> None:
    """Let one claim leave instead of several where one alone that is no more important helps."""
    several = [claim for claim in chosen if not terms.is_free(claim)]
    if len(several) < 2 or terms.budgets.violating(_whole(on, several)):
        return
    top = max(map(victim.priority_of, _whole(on, several)))
    on.put_back(several)
    for claim in potential[:_MOST_SINGLES]:
        if claim.id in on.gone or terms.is_free(claim) or victim.priority_of(claim) > top:
            continue
        if len(_whole(on, (claim,))) > 1:
            continue
        on.remove((claim,))
        if not terms.budgets.violating((claim,)) and helps():
            return
        on.put_back((claim,))
    on.remove(several)
