"""What a round is run with: profiles with their plug-ins, options, and what it is about. Pure."""

import dataclasses
from collections.abc import Callable, Mapping

from descheduler.configuration import head
from descheduler.configuration.arguments import parts
from descheduler.framework import objective as objectives
from descheduler.framework import protocols
from descheduler.framework.planning import limiter, round_plan
from descheduler.model import picture


@dataclasses.dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in that suggests, under its name."""

    name: str
    suggests: Callable[[protocols.View, protocols.Memory], protocols.Suggestions]
    """Its extension point."""
    notes: Callable[[protocols.View], Mapping[str, Mapping[str, str]]] | None = None
    """What it writes on pods, where it does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """Plug-ins of one profile, made from their arguments."""

    name: str
    evictor: str
    """The plug-in by which pods leave."""
    deschedule: tuple[Plugin, ...] = ()
    balance: tuple[Plugin, ...] = ()
    filters: tuple[protocols.FilterPlugin, ...] = ()
    node_selector: parts.LabelSelector | None = None
    dry_run: bool = False
    """Whether the evictor only reports."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What holds for all profiles."""

    node_selector: parts.LabelSelector | None = None
    in_round: limiter.Limits = limiter.NO_LIMITS
    in_hour: limiter.Limits = limiter.NO_LIMITS
    cool_down: float = 0.0
    interval_seconds: float = 0.0
    dry_run: bool = False
    """Whether moves are only reported: dryRun, or observe mode."""
    whole_gangs: bool = False
    """Whether a gang whose quorum would be lost may leave as a whole."""


def options(configured: head.Head, *, observe: bool = False) -> Options:
    """Return what a configuration says about every round."""
    return Options(
        configured.node_selector,
        limiter.per_round(configured),
        limiter.per_hour(configured),
        configured.cool_down,
        configured.descheduling_interval,
        configured.dry_run or observe,
        configured.move_whole_gangs,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Given:
    """What a round is about."""

    picture: picture.Picture
    objective: objectives.Objective = objectives.ACCEPT_ALL
    targets: protocols.Targets | None = None
    memory: round_plan.RoundMemory = round_plan.NO_MEMORY
