"""What agents did by day: held back, evicted, throttled; enforced or only observed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cli.output import charts, written_reports
from domain import wording
from domain.daily_sums import effects

_HOUR: Final = 3600.0
_HEAD: Final = (
    "DAY", "WATCHED NODE-H", "ENFORCED", "ABOVE THRESHOLD", "HELD BACK CORE-H",
    "WOULD HOLD BACK CORE-H", "ONLINE THROTTLED", "EVICTED", "OF THEM ONLINE", "WOULD EVICT",
)  # fmt: skip
_MOSTLY: Final = 0.5
Days = Sequence[tuple[str, effects.Effects]]
"""By date, the oldest first."""


def whole(days: Days) -> effects.Effects:
    """Return the sums of all days."""
    found = effects.NOTHING
    for _, one in days:
        found = found.plus(one)
    return found


def sentences(days: Days) -> Iterator[str]:
    """Say what agents did on all days, and how online pods fared before and after."""
    of = whole(days)
    if not of.watched:
        return
    yield (
        f"Agents held back {of.suppressed / _HOUR:.1f} core-hours of best-effort work and evicted "
        f"{wording.count(f'{of.evicted:.0f}', 'pod', 'pods')}, {of.evicted_online:.0f} of them "
        "online. Where they only observed, "
        f"they would have held back {of.would_suppress / _HOUR:.1f} core-hours and evicted "
        f"{wording.count(f'{of.would_evict:.0f}', 'pod', 'pods')}."
    )
    before = whole([one for one in days if _share(one[1].enforced, one[1].watched) < _MOSTLY])
    after = whole([one for one in days if _share(one[1].enforced, one[1].watched) >= _MOSTLY])
    if before.measured and after.measured:
        yield (
            f"Online pods were throttled in {_percent(before.throttled, before.measured)} of the "
            "periods on days on which suppression was mostly observed, in "
            f"{_percent(after.throttled, after.measured)} on days on which it was mostly enforced."
        )


def tables(days: Days) -> Iterator[written_reports.Table]:
    """Yield what agents did by day, and evictions by strategy."""
    told = [one for one in days if one[1].watched]
    if not told:
        return
    yield written_reports.Table(
        "What agents did, by day", _HEAD, tuple(_row(date, one) for date, one in told)
    )
    reasons = sorted(whole(told).reasons.items())
    if reasons:
        yield written_reports.Table(
            "Evictions by strategy",
            ("STRATEGY", "EVICTED", "WOULD EVICT"),
            tuple((name, f"{one.evicted:.0f}", f"{one.would_evict:.0f}") for name, one in reasons),
        )


def _row(date: str, of: effects.Effects) -> tuple[str, ...]:
    return (
        date,
        f"{of.watched / _HOUR:.1f}",
        _percent(of.enforced, of.watched),
        _percent(of.over, of.known),
        f"{of.suppressed / _HOUR:.1f}",
        f"{of.would_suppress / _HOUR:.1f}",
        _percent(of.throttled, of.measured),
        f"{of.evicted:.0f}",
        f"{of.evicted_online:.0f}",
        f"{of.would_evict:.0f}",
    )


def drawings(days: Days) -> Iterator[charts.Chart]:
    """Yield what was held back by day as bars."""
    if any(one.suppressed or one.would_suppress for _, one in days):
        parts = [
            (
                date,
                {
                    "held back": one.suppressed / _HOUR,
                    "would be held back": one.would_suppress / _HOUR,
                },
            )
            for date, one in days
        ]
        yield charts.bars("Core-hours of best-effort work that agents held back", "h", parts)


def document(days: Days) -> list[Mapping[str, Any]]:
    """Return them for programs: seconds as hours, shares as they are."""
    return [
        {
            "date": date,
            "watched": one.watched / _HOUR,
            "enforced": one.enforced / _HOUR,
            "atLimit": one.at_limit / _HOUR,
            "heldBack": one.suppressed / _HOUR,
            "wouldHoldBack": one.would_suppress / _HOUR,
            "aboveThreshold": _share(one.over, one.known),
            "onlineThrottled": _share(one.throttled, one.measured),
            "evicted": one.evicted,
            "evictedOnline": one.evicted_online,
            "wouldEvict": one.would_evict,
            "wouldEvictOnline": one.would_evict_online,
            "strategies": {
                name: {"evicted": by.evicted, "wouldEvict": by.would_evict}
                for name, by in sorted(one.reasons.items())
            },
        }
        for date, one in days
        if one.watched
    ]


def _share(part: float, of: float) -> float:
    return part / of if of else 0.0


def _percent(part: float, of: float) -> str:
    """Write a share; a dash where nothing was measured."""
    return f"{100 * part / of:.1f} %" if of else "-"
