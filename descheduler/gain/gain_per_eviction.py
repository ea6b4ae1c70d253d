"""The objective: a move has to gain something, and enough for what the eviction costs. Pure.

What counts as gain depends on why a pod should leave: loads that come closer, fragments that are
healed, a node that is emptied; for a rule that is broken a target suffices. The target is one that
the scheduler would take, and the best for it of those that gain. Where a plug-in needs no target, a
pod may leave that has none.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from descheduler.framework import objective, protocols
from descheduler.framework.planning import history
from descheduler.gain import eviction_cost, exchanges, healing, load_spread, measured_load
from descheduler.gain.options import Options
from descheduler.model import picture, podinfo

NO_BUDGET: Final = "its disruption budget allows no eviction now"
NO_STATE: Final = "the state of the scheduler is not known"
NO_TARGET: Final = "the scheduler would take no other node"
UNMEASURED: Final = "its use, or the load of its node, is not measured"
NO_GAIN: Final = "on no node would it even out loads"
TOO_LITTLE: Final = "it gains too little for what it costs"
NOT_HEALED: Final = "on no node would it heal fragments"
NOT_EMPTIED: Final = "another pod of the node has to stay"
NO_GANG: Final = "another member of its gang has to stay"

Purpose = protocols.Purpose


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One pod that is judged."""

    suggestion: protocols.Suggestion
    targets: protocols.Targets
    cost: float
    without: Collection[str]

    @property
    def pod(self) -> podinfo.Pod:
        return self.suggestion.pod

    def find(self, among: Collection[str] | None) -> protocols.Target | protocols.NoTarget:
        return self.targets.target(self.pod, among, self.without)


class GainPerEviction:
    """Judges the moves of one round; implements `objective.Objective`."""

    def __init__(
        self,
        options: Options,
        seen: picture.Picture,
        loads: measured_load.Loads,
        moves: history.History = history.NONE,
    ) -> None:
        self._options, self._seen, self._loads = options, seen, loads
        self._exchanges = exchanges.Exchanges(moves.values(), seen.now, options.exchange_seconds)
        self._slack = eviction_cost.Slack(seen.budgets)
        self._fragments = healing.Fragmentation(seen, tuple(options.resources))
        self._emptying: dict[str, float] = {}
        """By node that is being emptied: the share of the gain of one pod."""

    # -- judging -----------------------------------------------------------------------------

    def judge(
        self, suggestion: protocols.Suggestion, targets: protocols.Targets | None
    ) -> objective.Verdict:
        """Say whether a suggestion is worth a move, by its purpose; nothing changes yet."""
        pod = suggestion.pod
        if (stays := self._stays(pod)) is not None:
            return stays
        for one in suggestion.gang:
            if (stays := self._stays(one)) is not None:
                return _of_another(stays, one, pod, NO_GANG)
        cost = self.cost(pod) + sum(map(self.cost, suggestion.gang))
        if suggestion.purpose is Purpose.REMOVE or (
            targets is None and not suggestion.needs_target
        ):
            return objective.Accepted(cost=cost)
        if targets is None:
            return objective.Declined(NO_STATE)
        without = self._exchanges.sources_of(pod.node)
        case = _Case(suggestion, targets, cost, without)
        match suggestion.purpose:
            case Purpose.BALANCE:
                return self._balance(case)
            case Purpose.DEFRAGMENT:
                return self._defragment(case)
            case Purpose.EMPTY:
                return self._empty(case)
            case _:
                return _complied(case)

    def _stays(self, pod: podinfo.Pod) -> objective.Declined | None:
        """Return why a pod stays, whatever would be gained; one that has ended may always go."""
        if pod.has_ended:
            return None
        slack = self._slack.of(pod)
        return objective.Declined(NO_BUDGET) if slack is not None and slack <= 0 else None

    def cost(self, pod: podinfo.Pod) -> float:
        """Return what an eviction of a pod costs, in points; never 0."""
        found = eviction_cost.parts(pod, self._seen.now, self._slack.of(pod))
        return eviction_cost.total(found)

    def _balance(self, case: _Case) -> objective.Verdict:
        """Take the best node among those that stay below the one left, and that gain enough."""
        pod, options = case.pod, self._options
        spread = self._loads.of(prod=case.suggestion.of_prod)
        amounts = self._loads.used_by(pod)
        if amounts is None or not spread.knows(pod.node):
            return objective.Declined(UNMEASURED)
        rows = spread.chosen(case.suggestion.targets, {*case.without, pod.node})
        ahead = spread.outlook(amounts, pod.node, rows)
        gains = ahead.below & (ahead.gain > 0) & (ahead.spread <= spread.after)
        if not gains.any():
            return objective.Declined(NO_GAIN, _least_loaded(ahead, spread))
        pays = gains & (ahead.gain >= options.least_gain_per_cost * case.cost)
        if not pays.any():
            best = float(ahead.gain[gains].max())
            return objective.Declined(TOO_LITTLE, f"{best:.2f} points for {case.cost:.2f}")
        found = self._near_best(case, ahead, pays, spread.names)
        if isinstance(found, protocols.NoTarget):
            return _without_target(case, found)
        place = int(np.flatnonzero(ahead.rows == spread.row(found.node))[0])
        return objective.Accepted(
            found, float(ahead.gain[place]), case.cost, self._figures(ahead, place, spread)
        )

    def _near_best(
        self,
        case: _Case,
        ahead: load_spread.Outlook,
        pays: npt.NDArray[np.bool_],
        names: Sequence[str],
    ) -> protocols.Target | protocols.NoTarget:
        """Ask the scheduler about the targets that gain most, and only then about the others.

        Its own scores count what pods request, which may be far from what they use.
        """
        found: protocols.Target | protocols.NoTarget = protocols.NoTarget(NO_GAIN)
        near = pays & (ahead.gain >= self._options.near_best * ahead.gain[pays].max())
        for flags in (near, pays & ~near):
            if flags.any():
                found = case.find([names[row] for row in ahead.rows[flags].tolist()])
            if isinstance(found, protocols.Target):
                break
        return found

    def _figures(
        self, ahead: load_spread.Outlook, place: int, spread: load_spread.LoadSpread
    ) -> Mapping[str, float]:
        """Return loads in percent before and after, and the spread."""
        ends = (("source", *ahead.source), ("target", *(one[place] for one in ahead.target)))
        found = {"spreadBefore": spread.after, "spreadAfter": float(ahead.spread[place])}
        for end, before, after in ends:
            for column, name in enumerate(self._loads.resources):
                found[f"{end}.{name}.before"] = float(before[column])
                found[f"{end}.{name}.after"] = float(after[column])
        return found

    def _defragment(self, case: _Case) -> objective.Verdict:
        """Take the first node, in the order of the scheduler, on which fragments are healed."""
        tried: set[str] = set(case.without)
        told: objective.Declined | None = None
        for _ in range(self._options.tries):
            found = dataclasses.replace(case, without=tried).find(case.suggestion.targets)
            if isinstance(found, protocols.NoTarget):
                return told or _without_target(case, found)
            tried.add(found.node)
            stuck = self._fragments.heals(case.pod, found.node, found.held)
            gain = stuck[0].total - stuck[1].total if stuck is not None else 0.0
            if stuck is None or gain <= 0:
                told = told or objective.Declined(NOT_HEALED)
            elif gain < self._options.least_gain_per_cost * case.cost:
                told = objective.Declined(TOO_LITTLE, f"{gain:.2f} points for {case.cost:.2f}")
            else:
                figures = {"stuckBefore": stuck[0].total, "stuckAfter": stuck[1].total}
                return objective.Accepted(found, gain, case.cost, figures)
        return told or objective.Declined(NOT_HEALED)

    def _empty(self, case: _Case) -> objective.Verdict:
        """Let a pod go if all pods of its node have a target, or if that was found out before."""
        share = self._emptying.get(case.pod.node)
        if share is None or case.suggestion.along:
            group = (case.pod, *case.suggestion.along)
            costs = self._costs(case, group)
            if isinstance(costs, objective.Declined):
                return costs
            total = sum(costs)
            if self._options.emptied_points < self._options.least_gain_per_cost * total:
                told = f"{self._options.emptied_points:.2f} points for {total:.2f}"
                return objective.Declined(TOO_LITTLE, told)
            share = self._options.emptied_points / len(group)
        found = case.find(case.suggestion.targets)
        if isinstance(found, protocols.NoTarget):
            return objective.Declined(NO_TARGET, found.reason)
        return objective.Accepted(found, share, case.cost)

    def _costs(self, case: _Case, group: Sequence[podinfo.Pod]) -> list[float] | objective.Declined:
        """Return what each pod of a node costs, if all of them find a place one after another.

        A disruption budget that allows fewer evictions at a time delays the rest to later rounds.
        """
        targets, mark = case.targets, case.targets.mark()
        costs: list[float] = []
        try:
            for pod in group:
                if (stays := self._stays(pod)) is not None:
                    return _of_another(stays, pod, case.pod)
                costs.append(self.cost(pod))
                among = case.suggestion.targets if pod is case.pod else None
                found = targets.target(pod, among, {*case.without, case.pod.node})
                if isinstance(found, protocols.NoTarget):
                    stays = objective.Declined(NO_TARGET, found.reason)
                    return _of_another(stays, pod, case.pod)
                targets.move(pod, found.node)
        finally:
            targets.undo(mark)
        return costs

    # -- accepting ---------------------------------------------------------------------------

    def accept(self, suggestion: protocols.Suggestion, accepted: objective.Accepted) -> None:
        """Count a move that was judged last as made."""
        pod = suggestion.pod
        target = accepted.target.node if accepted.target is not None else ""
        if suggestion.purpose is Purpose.EMPTY:
            self._emptying[pod.node] = accepted.gain
        self._slack.take(pod)
        self._exchanges.add(pod.node, target)
        self._loads.move(pod, target)
        if accepted.target is not None:
            self._fragments.apply(pod, target, accepted.target.held)

    def spread(self) -> objective.Spread | None:
        """Return the spread of load before the round and with its moves, None without loads."""
        found = self._loads.of(prod=False)
        return objective.Spread(found.before, found.after) if found.names else None


def _complied(case: _Case) -> objective.Verdict:
    found = case.find(case.suggestion.targets)
    if isinstance(found, protocols.NoTarget):
        return _without_target(case, found)
    return objective.Accepted(found, cost=case.cost)


def _without_target(case: _Case, found: protocols.NoTarget) -> objective.Verdict:
    """Return what becomes of a pod that no node takes; its gain is not known where it leaves."""
    if case.suggestion.needs_target:
        return objective.Declined(NO_TARGET, found.reason)
    return objective.Accepted(cost=case.cost)


def _of_another(
    stays: objective.Declined, pod: podinfo.Pod, asked: podinfo.Pod, reason: str = NOT_EMPTIED
) -> objective.Declined:
    """Return why a node is not emptied, or a gang stays, where it is another pod that stays."""
    if pod is asked:
        return stays
    return objective.Declined(reason, f"{pod.key}: {stays.detail or stays.reason}")


def _least_loaded(ahead: load_spread.Outlook, spread: load_spread.LoadSpread) -> str:
    """Name the node that came closest, with figures."""
    if not ahead.rows.size:
        return "no other node is measured"
    place = int(ahead.target[1].max(axis=1).argmin())
    name = spread.names[int(ahead.rows[place])]
    return (
        f"{name} would be at {ahead.target[1][place].max():.0f} %, "
        f"the node it leaves at {ahead.source[1].max():.0f} %"
    )
