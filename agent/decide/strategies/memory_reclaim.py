"""Take memory back from batch work before it has to wait for that: background reclaim. Pure.

A kernel that has watermarks does this itself. On others the agent asks for it in small pieces
(`memory.reclaim`), a little below the mark at which a container would begin to wait.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

PAGE: Final = 4096
LEAST: Final = 1 << 20
"""Less than this is not worth asking for."""
LEAD_PERCENT: Final = 5
"""How much of the limit reclaim begins below the mark, so that the container seldom reaches it."""
_SCALE: Final = 10_000


class Rules(msgspec.Struct, frozen=True):
    """How much may be asked for, and when not."""

    most_bytes: int = 64 << 20
    """Of the whole node, in one look."""
    pressure_percent: float = 5.0
    """Share of ten seconds in which tasks of the group wait for memory: from there on it is left
    alone."""
    first_pause_seconds: float = 60.0
    """How long a group is left alone that waits, or that has nothing to give; then twice that."""
    longest_pause_seconds: float = 900.0


class Reading(msgspec.Struct, frozen=True):
    """One container of batch work as it stands now; amounts in bytes."""

    group: str
    current: int
    limit: int
    ratio: int
    """Percent of the limit at which its reclaim begins."""
    scale: int
    """How far below that it ends, in hundredths of a percent of the limit."""
    pressure: float | None
    """Share of ten seconds in which its tasks waited for memory, None where unknown."""


class Pause(msgspec.Struct, frozen=True):
    """How long a group is left alone."""

    until: float
    seconds: float


class Reclaim(msgspec.Struct, frozen=True):
    """Memory that the kernel is asked to take back from one group."""

    group: str
    amount: int
    reason: str


Pauses = Mapping[str, Pause]


def decide(
    readings: Iterable[Reading], rules: Rules, pauses: Pauses, now: float
) -> tuple[tuple[Reclaim, ...], dict[str, Pause]]:
    """Return what is to be taken back now, the fullest group first, and who is left alone."""
    known = sorted(readings, key=lambda one: (-_excess(one) / max(one.limit, 1), one.group))
    kept = {one.group: pauses[one.group] for one in known if one.group in pauses}
    found, left = [], rules.most_bytes
    for one in known:
        excess = min(_excess(one), left) // PAGE * PAGE
        if excess < LEAST or one.pressure is None:
            continue
        if (pause := kept.get(one.group)) is not None and pause.until > now:
            continue
        if one.pressure >= rules.pressure_percent:
            kept[one.group] = _longer(pause, rules, now)
            continue
        left -= excess
        found.append(Reclaim(one.group, excess, _reason(one)))
    return tuple(found), kept


def taken(pauses: Pauses, group: str, rules: Rules, now: float, *, all_of_it: bool) -> Pauses:
    """Return who is left alone after the kernel has answered for a group."""
    rest = {name: pause for name, pause in pauses.items() if name != group}
    return rest if all_of_it else {**rest, group: _longer(pauses.get(group), rules, now)}


def _excess(one: Reading) -> int:
    """Return what is above the place where reclaim ends; nothing below where it begins."""
    begin = one.limit * (one.ratio - LEAD_PERCENT) // 100
    if one.limit <= 0 or not LEAD_PERCENT < one.ratio <= 100 or one.current <= begin:
        return 0
    return one.current - max(begin - one.limit * one.scale // _SCALE, 0)


def _longer(before: Pause | None, rules: Rules, now: float) -> Pause:
    seconds = rules.first_pause_seconds if before is None else before.seconds * 2
    seconds = min(seconds, rules.longest_pause_seconds)
    return Pause(now + seconds, seconds)


def _reason(one: Reading) -> str:
    return (
        f"uses {one.current * 100 // one.limit} % of its limit, reclaim begins at "
        f"{one.ratio - LEAD_PERCENT} %; its tasks wait {one.pressure:g} % of the time"
    )
