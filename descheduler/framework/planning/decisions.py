"""What becomes of suggestions: filters, limits and the objective accept or refuse each. Pure."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Final

from descheduler.framework import objective, protocols
from descheduler.framework.filtering import open_jobs
from descheduler.framework.planning import (
    history,
    isolation,
    limiter,
    profiles,
    resting,
    round_plan,
    whole_gangs,
)
from descheduler.model import podinfo

TWICE: Final = "it leaves in this round already"
NOT_THERE: Final = "it is on no node"
UNJUDGED: Final = "its gain could not be computed"
GANG: Final = "another member of its gang has to stay, and they leave together or not at all"
UNMADE: Final = "it could not be placed on its target"
_NOT_REMEMBERED: Final = frozenset({protocols.NOTES, protocols.COUNTS})
_MOST_NOTES: Final = 20
_LONGEST_NOTE: Final = 300
_SPARE: Final = 1000
"""Suggestions of one plug-in beyond one for each pod, after which it counts as failed."""


class EndlessError(Exception):
    """A plug-in suggests more than there is to suggest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """Who suggests."""

    profile: str
    evictor: str
    plugin: str
    view: protocols.View
    migrating: open_jobs.OpenJobs
    """What its filters count; of a profile in dry run its own."""
    dry_run: bool

    @property
    def key(self) -> tuple[str, str]:
        """Return under what it is remembered."""
        return self.profile, self.plugin


class Decisions:
    """Collects moves and refusals of one round."""

    def __init__(
        self,
        given: profiles.Given,
        chosen: profiles.Options,
        limits: limiter.Limiter,
    ) -> None:
        self._given, self._chosen, self._limits = given, chosen, limits
        self._moves: dict[str, round_plan.Move] = {}
        self._refused: dict[tuple[str, str], list[str]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._memory: dict[tuple[str, str], protocols.Memory] = {}
        self._failures: list[round_plan.Failure] = []
        self._notes: list[round_plan.Note] = []
        self._counted: list[round_plan.Counted] = []
        self._cordons: dict[str, protocols.Cordon] = {}
        self._annotations: dict[str, Mapping[str, str]] = {}
        self._gangs = whole_gangs.WholeGangs(given.picture, enabled=chosen.whole_gangs)
        self._joined: dict[str, protocols.Answer] = {}
        """By uid of a pod that left with its gang: what a plug-in is told that suggests it, too."""

    def follow(self, asked: protocols.Suggestions, context: Context) -> protocols.Memory:
        """Decide about one suggestion after another; return what the plug-in remembers."""
        left = len(self._given.picture.pods) + _SPARE
        try:
            suggestion = next(asked)
            while left := left - 1:
                suggestion = asked.send(self._decide(suggestion, context))
        except StopIteration as end:
            found: Any = end.value
            return found if isinstance(found, Mapping) else protocols.NO_MEMORY
        raise EndlessError("it suggests more pods than there are")

    def remember(self, context: Context, left: protocols.Memory) -> None:
        """Keep what a plug-in remembers, and tell what it notes."""
        self._memory[context.key] = {
            key: value for key, value in left.items() if key not in _NOT_REMEMBERED
        }
        profile, plugin = context.profile, context.plugin
        for (pool, kind), count in left.get(protocols.COUNTS, {}).items():
            self._counted.append(round_plan.Counted(profile, plugin, pool, kind, count))
        for text in [*left.get(protocols.NOTES, ())][:_MOST_NOTES]:
            said = str(text)[:_LONGEST_NOTE]
            self._notes.append(round_plan.Note(profile, plugin, said))

    def annotate(self, annotations: Mapping[str, Mapping[str, str]]) -> None:
        """Write annotations on pods, by uid."""
        self._annotations |= annotations

    def fail(self, context: Context, error: str) -> None:
        """Record that a plug-in failed; what it remembered before is kept."""
        self._failures.append(round_plan.Failure(context.profile, context.plugin, error))

    def plan(self, kept: tuple[round_plan.Kept, ...]) -> round_plan.RoundPlan:
        """Return what was decided."""
        before, moves = self._given.memory, tuple(self._moves.values())
        lines = resting.Lines(before.moves.values(), self._chosen.cool_down)
        done = {
            move.suggestion.pod.uid: self._moved(move, lines) for move in moves if not move.dry_run
        }
        refused = (
            round_plan.Refused(plugin, reason, count, tuple(self._refused[plugin, reason]))
            for (plugin, reason), count in self._counts.items()
        )
        return round_plan.RoundPlan(
            moves=moves,
            refused=tuple(refused),
            kept=kept,
            failures=tuple(self._failures),
            notes=tuple(self._notes),
            counts=tuple(self._counted),
            cordons=tuple(self._cordons.values()),
            annotations=self._annotations,
            memory=round_plan.RoundMemory(
                {**before.plugins, **self._memory}, {**before.moves, **done}
            ),
            spread=self._given.objective.spread(),
            dry_run=self._chosen.dry_run,
        )

    def _moved(self, move: round_plan.Move, lines: resting.Lines) -> history.Moved:
        pod = move.suggestion.pod
        return history.moved(pod, self._given.picture.now, move.target, lines.line_of(pod))

    def _decide(self, suggestion: protocols.Suggestion, context: Context) -> protocols.Answer:
        pod = suggestion.pod
        if (left := self._joined.pop(pod.uid, None)) is not None:
            return left
        dry_run = context.dry_run or suggestion.dry_run
        gang = self._gangs.others(pod, context.migrating)
        reason = self._refusal(pod, context, dry_run=dry_run)
        detail = "" if reason else self._of_gang(pod, gang, context, dry_run=dry_run)
        if reason or detail:
            return self._refuse(pod, context, reason or GANG, detail)
        suggestion = self._gangs.joined(suggestion, gang, context.migrating)
        judged, error = isolation.tried(
            lambda: self._given.objective.judge(suggestion, self._given.targets)
        )
        if judged is None:
            return self._refuse(pod, context, UNJUDGED, error)
        if isinstance(judged, objective.Declined):
            return self._refuse(pod, context, judged.reason, judged.detail)
        moves = self._together(suggestion, judged)
        if isinstance(moves, protocols.NoTarget):
            return self._refuse(pod, context, GANG, moves.reason)
        # A dry run of one plug-in or profile must not tell the others that the pod is gone.
        if (not dry_run or self._chosen.dry_run) and (error := self._make_all(moves)):
            return self._refuse(pod, context, UNMADE, error)
        for one, worth in moves:
            if context.dry_run or not dry_run:
                context.migrating.add(one.pod)
            self._record(round_plan.Move(one, context.profile, context.evictor, worth, dry_run))
            self._joined[one.pod.uid] = worth.target if worth.target is not None else True
        return self._joined.pop(pod.uid)

    def _of_gang(
        self, pod: podinfo.Pod, gang: whole_gangs.Members, context: Context, *, dry_run: bool
    ) -> str:
        """Return which other member of a gang has to stay and why; empty where all may leave."""
        for one in gang:
            reason = self._refusal(one, context, dry_run=dry_run)
            if reason := reason or context.view.evictable.late_refusal(one):
                return f"{one.key}: {reason}"
        return self._limits.refusal_of_all((pod, *gang)) if gang else ""

    def _together(
        self, suggestion: protocols.Suggestion, judged: objective.Accepted
    ) -> list[tuple[protocols.Suggestion, objective.Accepted]] | protocols.NoTarget:
        """Return a suggestion and those of the members that leave with it, each with its target."""
        first, others = (suggestion, judged), suggestion.gang
        if not others:
            return [first]
        worths = [objective.Accepted()] * len(others)
        if (targets := self._given.targets) is not None:
            target = judged.target.node if judged.target is not None else ""
            found = whole_gangs.placed(suggestion, target, targets)
            if isinstance(found, protocols.NoTarget):
                return found
            worths = [objective.Accepted(one) for one in found]
        reason = f"it leaves with its gang: {suggestion.reason}"
        members = (
            protocols.Suggestion(
                one,
                suggestion.plugin,
                reason,
                protocols.Purpose.COMPLY,
                needs_target=suggestion.needs_target,
                dry_run=suggestion.dry_run,
            )
            for one in others
        )
        return [first, *zip(members, worths, strict=True)]

    def _record(self, move: round_plan.Move) -> None:
        pod, cordon = move.suggestion.pod, move.suggestion.cordon
        self._limits.count(pod)
        self._moves.pop(pod.uid, None)
        self._moves[pod.uid] = move
        if cordon is not None and not move.dry_run:
            self._cordons.setdefault(cordon.node, cordon)

    def _refusal(self, pod: podinfo.Pod, context: Context, *, dry_run: bool) -> str:
        before = self._moves.get(pod.uid)
        if before is not None and (dry_run or not before.dry_run):
            return TWICE
        if not pod.node or pod.uid not in self._given.picture.pods:
            return NOT_THERE
        # Once a limit is reached, filters need not be asked about thousands of pods.
        return self._limits.refusal(pod) or context.view.evictable.refusal(pod)

    def _make_all(self, moves: list[tuple[protocols.Suggestion, objective.Accepted]]) -> str:
        """Make moves on the fork, or none; return why they could not be made."""
        targets = self._given.targets
        mark = targets.mark() if targets is not None and len(moves) > 1 else 0
        for suggestion, worth in moves:
            _, error = isolation.tried(functools.partial(self._make, suggestion, worth))
            if error:
                if targets is not None and len(moves) > 1:
                    targets.undo(mark)
                return error
        return ""

    def _make(self, suggestion: protocols.Suggestion, worth: objective.Accepted) -> None:
        """Let the move be made on the fork, so that all that is asked later sees it."""
        pod, targets = suggestion.pod, self._given.targets
        if targets is not None and worth.target is not None:
            targets.move(pod, worth.target.node)
        elif targets is not None:
            targets.remove(pod)
        self._given.objective.accept(suggestion, worth)

    def _refuse(
        self, pod: podinfo.Pod, context: Context, reason: str, detail: str = ""
    ) -> protocols.Answer:
        key = context.plugin, reason
        self._counts[key] = self._counts.get(key, 0) + 1
        examples = self._refused.setdefault(key, [])
        if len(examples) < round_plan.EXAMPLES:
            examples.append(f"{pod.key}: {detail}" if detail else pod.key)
        return False
