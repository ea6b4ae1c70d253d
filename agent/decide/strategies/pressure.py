"""A trigger of our own: best effort gives way when online tasks wait, whatever the usage says.

Off by default. The kernel says how long tasks wait (PSI); the figures of online groups are
taken, since best effort that is held back waits itself and would only be held back more.
"""

import msgspec

from agent.decide import eviction
from agent.model import state, strategy_settings
from api import names

FEATURE = "PressureEvict"
MOST_CUT = 100
EASED_BELOW = 0.5
"""Pressure under this part of the threshold gives best effort its share back, step by step."""


class Answer(msgspec.Struct, frozen=True):
    """What the pressure asks for."""

    reason: str
    cut_percent: int = 0
    """How much of the node's cpu best effort loses, below what usage leaves it."""
    task: eviction.Task | None = None
    """Whom memory pressure evicts, one at a time."""


def judge(
    picture: state.NodeState, settings: strategy_settings.Pressure, cut_before: int
) -> Answer:
    """Return what the pressure of this moment asks for, after what it asked for before."""
    if not settings.enable:
        return Answer("the pressure trigger is off")
    waiting = picture.online_pressure.cpu
    cut, said = cut_before, "the kernel does not say how long online tasks wait for cpu"
    if waiting is not None:
        cut = next_cut(waiting, settings, cut_before)
        said = (
            f"online tasks wait for cpu {waiting:.0f} % of the time, threshold "
            f"{settings.cpu_percent:g} %: best effort loses {cut} % of the node"
        )
    return Answer(said, cut if waiting is not None else 0, _task(picture, settings))


def next_cut(waiting: float, settings: strategy_settings.Pressure, before: int) -> int:
    """Return the next share that best effort loses: more under pressure, less when it is gone."""
    if waiting >= settings.cpu_percent:
        return min(before + settings.suppress_step_percent, MOST_CUT)
    if waiting < settings.cpu_percent * EASED_BELOW:
        return max(before - settings.suppress_step_percent, 0)
    return before


def lowered(
    thresholds: state.Thresholds | None, settings: strategy_settings.Pressure, cut_percent: int
) -> state.Thresholds | None:
    """Return the thresholds of suppression under pressure; without them it acts alone."""
    if not settings.enable or cut_percent == 0:
        return thresholds
    if thresholds is None or not thresholds.enable:
        alone = thresholds or state.Thresholds(enable=False)
        return msgspec.structs.replace(
            alone, enable=True, cpu_suppress_percent=MOST_CUT - cut_percent
        )
    percent = max(thresholds.cpu_suppress_percent - cut_percent, 0)
    return msgspec.structs.replace(thresholds, cpu_suppress_percent=percent)


def _task(picture: state.NodeState, settings: strategy_settings.Pressure) -> eviction.Task | None:
    """Return who leaves because online tasks wait for memory: the largest of the lowest."""
    waiting = picture.online_pressure.memory
    if waiting is None or waiting < settings.memory_percent:
        return None
    pods = eviction.labelled_best_effort(picture.pods, FEATURE)
    victims = eviction.ordered(pods, _larger_first)
    return eviction.Task(
        feature=FEATURE,
        target=eviction.Target.USED,
        to_release={names.MEMORY: 1},
        victims=victims,
        released={
            pod.pod.metadata.uid: {names.MEMORY: max(pod.usage.memory or 0, 1)} for pod in victims
        },
        reason=(
            f"online tasks wait for memory {waiting:.0f} % of the time, threshold "
            f"{settings.memory_percent:g} %"
        ),
        figures={"pressure-percent": waiting, "threshold-percent": settings.memory_percent},
    )


def _larger_first(one: state.PodState, other: state.PodState) -> bool:
    lower = eviction.by_priority(one, other)
    return (one.usage.memory or 0) > (other.usage.memory or 0) if lower is None else lower
