"""What a round of the descheduler would move as things are: its own code, nothing written. Pure.

Some plug-ins act only once a node has been overloaded in several rounds, so rounds are repeated
on the same cluster until one moves a pod.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from descheduler import registry
from descheduler.configuration import document
from descheduler.framework import protocols
from descheduler.framework.planning import pipeline, profiles, round_plan
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from descheduler.model import picture
from domain import wording

MOST_MOVES: Final = 40
"""Moves that are named."""
_MOST_FAULTS: Final = 5


class ConfigurationError(ValueError):
    """The configuration cannot be used; names the fields and the remedies."""


@dataclasses.dataclass(frozen=True, slots=True)
class Configured:
    """A configuration that rounds can be run with."""

    options: profiles.Options
    profiles: tuple[profiles.Profile, ...]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Preview:
    """The first round that moves a pod, or the last that was tried."""

    rounds: int
    plan: round_plan.RoundPlan
    warnings: tuple[str, ...] = ()


def configured(text: str) -> Configured:
    """Read a DeschedulerConfiguration; every round of it only reports."""
    found = document.read(text)
    if found.configuration is None:
        faults = [str(fault) for fault in found.faults]
        rest = len(faults) - _MOST_FAULTS
        more = [f"and {wording.count(rest, 'more fault', 'more faults')}"] if rest > 0 else []
        raise ConfigurationError("; ".join([*faults[:_MOST_FAULTS], *more]))
    made = tuple(registry.made(one) for one in found.configuration.profiles)
    if not any(one.deschedule or one.balance for one in made):
        raise ConfigurationError("no profile enables a plug-in at deschedule or balance")
    chosen = profiles.options(found.configuration.head, observe=True)
    return Configured(chosen, made, found.warnings)


def preview(
    chosen: Configured, seen: picture.Picture, targets: protocols.Targets, most: int
) -> Preview:
    """Run at most so many rounds on one picture; stop at the first that moves a pod."""
    memory, rounds = round_plan.NO_MEMORY, 0
    plan, options = round_plan.RoundPlan(), Options()
    while rounds < most:
        rounds += 1
        loads = measured_load.Loads(options, seen, seen.nodes.values())
        judged = gain_per_eviction.GainPerEviction(options, seen, loads)
        given = profiles.Given(seen, judged, targets, memory)
        plan = pipeline.plan_round(chosen.profiles, chosen.options, given)
        memory = plan.memory
        if plan.moves or plan.annotations or plan.skipped:
            break
    return Preview(rounds, plan, chosen.warnings)


def lines(found: Preview) -> Iterator[str]:
    """Yield a preview for people."""
    plan = found.plan
    rounds = "the first round" if found.rounds == 1 else f"round {found.rounds} of unchanged load"
    yield f"{plan.summary[:1].upper()}{plan.summary[1:]} ({rounds})."
    for move in plan.moves[:MOST_MOVES]:
        yield f"  {_move(move)}"
    if more := len(plan.moves[MOST_MOVES:]):
        yield f"  and {wording.count(more, 'more pod', 'more pods')}"
    for cordon in plan.cordons:
        yield f"Node {cordon.node} would be cordoned ({cordon.plugin})."
    if plan.annotations:
        pods = wording.count(len(plan.annotations), "pod", "pods")
        its = wording.form(len(plan.annotations), "its", "their")
        yield f"{pods} would be annotated with {its} order of deletion."
    for refused in plan.refused:
        some = ", ".join(refused.examples)
        yield f"{refused.plugin} asked for {refused.count} more: {refused.reason} ({some})."
    for kept in plan.kept:
        pods = wording.count(kept.count, "pod", "pods")
        yield f"The filters of profile {kept.profile} keep {pods}: {kept.reason}."
    for note in plan.notes:
        yield f"{note.plugin}: {note.text}"
    for failure in plan.failures:
        yield f"{failure.plugin} failed: {failure.error}"
    yield from (f"note: {warning}" for warning in found.warnings)


def document_of(found: Preview) -> dict[str, Any]:
    """Return a preview as a document."""
    plan = found.plan
    spread = plan.spread
    return {
        "summary": plan.summary,
        "rounds": found.rounds,
        "spread": dataclasses.asdict(spread) if spread is not None else None,
        "moves": [
            {
                "pod": move.suggestion.pod.key,
                "from": move.suggestion.pod.node,
                "to": _target(move),
                "profile": move.profile,
                "plugin": move.suggestion.plugin,
                "reason": move.suggestion.reason,
                "gain": move.worth.gain,
                "cost": move.worth.cost,
                "figures": dict(move.worth.figures),
            }
            for move in plan.moves
        ],
        "cordons": [cordon.node for cordon in plan.cordons],
        "refused": [dataclasses.asdict(one) for one in plan.refused],
        "kept": [dataclasses.asdict(one) for one in plan.kept],
        "notes": [dataclasses.asdict(one) for one in plan.notes],
        "failures": [dataclasses.asdict(one) for one in plan.failures],
        "warnings": list(found.warnings),
    }


def _move(move: round_plan.Move) -> str:
    pod, worth, target = move.suggestion.pod, move.worth, _target(move)
    where = f"{pod.node} to {target}" if target else f"off {pod.node}"
    gain = f", gains {worth.gain:.2f} points for {worth.cost:.2f}" if worth.gain else ""
    return f"{pod.key}: {where} ({move.suggestion.plugin}: {move.suggestion.reason}{gain})"


def _target(move: round_plan.Move) -> str:
    return move.worth.target.node if move.worth.target is not None else ""
