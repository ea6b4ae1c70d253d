"""Restart of a gang as a whole after it has lost a member: when, and which pods leave. Pure.

Annotation `koord.sh/gang-repair: restart` asks for it. The other gangs of its group are restarted
with it where both name each other; one of another namespace has to ask for restarts as well.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from domain.gangs import declaration
from manager.gangs import objects, quorum

PAUSE_SECONDS: Final = 600.0
"""A gang is restarted no more often."""
SETTLE_SECONDS: Final = 2.0
"""How long after a loss: the deletion of a whole gang takes a moment."""
EDGE_SECONDS: Final = 30.0
"""How long a loss leads to a restart although the lost pods have been replaced."""
LOOK_AGAIN_SECONDS: Final = 30.0
"""When a restart is tried again that a disruption budget refuses."""


@dataclasses.dataclass(frozen=True, slots=True)
class Restart:
    """Evict these pods, in this order."""

    pods: tuple[objects.GangPod, ...]
    gangs: tuple[str, ...]
    """Ids of the gangs to which they belong."""


@dataclasses.dataclass(frozen=True, slots=True)
class Later:
    """Look again in so many seconds; `why` where people should know."""

    seconds: float
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """What is known of earlier restarts; moments are seconds of a monotonic clock."""

    last: Mapping[str, float]
    """When each gang was restarted last, as far as known."""
    since: float
    """From when on all restarts are known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Now:
    """The same moment on two clocks, in seconds."""

    monotonic: float
    wall: float
    """Since the epoch."""


def related(
    observed: objects.Observed, found: Callable[[str], objects.Observed | None]
) -> tuple[objects.Observed, ...]:
    """Return the gangs that are restarted together with a gang, that one first."""
    gang, together = observed.gang, [observed]
    for other_id in declaration.listed(gang):
        other = None if other_id == gang.id else found(other_id)
        if other is None or gang.id not in other.gang.group:
            continue
        asks = other.gang.repair is declaration.Repair.RESTART
        if asks or other.gang.namespace == gang.namespace:
            together.append(other)
    return tuple(together)


def decided(
    together: tuple[objects.Observed, ...], memory: quorum.Memory, history: History, at: Now
) -> Restart | Later | None:
    """Return whether the first of some gangs, and the others with it, is restarted now."""
    now, first = at.monotonic, together[0]
    due, pods = _due(memory), leaving(first)
    if first.gang.repair is not declaration.Repair.RESTART or due is None or not pods:
        return None
    if not (memory.lost(now) or now < due + EDGE_SECONDS):
        return None
    if now < due:
        return Later(due - now)
    allowed = max(_last(one, history, at) for one in together) + PAUSE_SECONDS
    if now < allowed:
        why = f"a gang is restarted at most every {PAUSE_SECONDS:.0f} s"
        return Later(allowed - now, why)
    others = (pod for one in together[1:] for pod in leaving(one))
    return Restart((*pods, *others), tuple(one.gang.id for one in together))


def leaving(observed: objects.Observed) -> tuple[objects.GangPod, ...]:
    """Return the pods of a gang that can be evicted; a mirror pod would stay on its node."""
    return tuple(one for one in quorum.living(observed.members) if not one.static)


def _due(memory: quorum.Memory) -> float | None:
    if memory.left_at is not None:
        return memory.left_at + SETTLE_SECONDS
    return memory.settles_at if memory.lost_at is not None else None


def _last(observed: objects.Observed, history: History, at: Now) -> float:
    """Return when a gang may have been restarted last.

    A restart leaves no pod behind: a gang with a pod that is older than all that is known has not
    been restarted in that time.
    """
    known = history.last.get(observed.gang.id, at.monotonic - PAUSE_SECONDS)
    oldest = min((one.created for one in leaving(observed)), default=at.wall - PAUSE_SECONDS)
    return max(known, min(history.since, oldest - at.wall + at.monotonic))
