"""Scorecards of many nodes as one table for people. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api.wire import untrusted
from domain import wording

Day = Mapping[str, Any]
MOST_ROWS: Final = 20
SUMMED: Final = frozenset({
    "seconds", "knownSeconds", "overSeconds", "heldSeconds", "heldCoreSeconds", "evictedPods",
    "evictedOnlinePods", "wouldEvictPods", "wouldEvictOnlinePods", "written", "wouldWrite",
    "conflicts", "foreignWriters",
})  # fmt: skip
"""Figures of a day without which it cannot be told."""
_HOUR: Final = 3600.0
_COLUMNS: Final = ("STRATEGY", "NAMESPACE", "CLASS", "WHAT", "COUNT")


class _Row(msgspec.Struct, frozen=True):
    strategy: str
    namespace: str
    quality: str = msgspec.field(name="class")
    outcomes: dict[str, int]


class _Day(msgspec.Struct, frozen=True):
    """A day as an agent reports it; a node's account may report anything."""

    date: str
    summary: dict[str, float]
    rows: list[_Row]


class _Page(msgspec.Struct, frozen=True):
    days: list[_Day]


def read(text: bytes | str) -> list[Day]:
    """Read the days that an agent tells; a ReadError says what is wrong with them."""
    written = text if isinstance(text, str) else text.decode("utf-8", "replace")
    page = untrusted.decode(written, _Page, "scorecard", bounds=untrusted.DOCUMENT)
    days: list[Day] = msgspec.to_builtins(page)["days"]
    for day in days:
        if missing := SUMMED - day["summary"].keys():
            raise untrusted.ReadError(f"scorecard: {', '.join(sorted(missing))} is missing")
    return days


def together(cards: Iterable[Sequence[Day]]) -> list[dict[str, Any]]:
    """Add the days of many nodes up, newest first."""
    found: dict[str, dict[str, Any]] = {}
    for card in cards:
        for day in card:
            whole = found.setdefault(
                str(day["date"]), {"date": day["date"], "nodes": 0, "summary": {}, "rows": {}}
            )
            whole["nodes"] += 1
            for name, value in day["summary"].items():
                whole["summary"][name] = whole["summary"].get(name, 0) + value
            for row in day["rows"]:
                outcomes = whole["rows"].setdefault(
                    (row["strategy"], row["namespace"], row["class"]), {}
                )
                for outcome, number in row["outcomes"].items():
                    outcomes[outcome] = outcomes.get(outcome, 0) + number
    return [_day(found[date]) for date in sorted(found, reverse=True)]


def _day(whole: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {"strategy": strategy, "namespace": namespace, "class": quality, "outcomes": outcomes}
        for (strategy, namespace, quality), outcomes in sorted(whole["rows"].items())
    ]
    return {**whole, "rows": rows}


def lines(days: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Write days for people."""
    if not days:
        yield "no day has been kept yet"
    for number, day in enumerate(days):
        if number:
            yield ""
        yield from _summary(day)
        yield from _table(day["rows"])


def _summary(day: Mapping[str, Any]) -> Iterator[str]:
    figures: Mapping[str, float] = day["summary"]
    hours = figures["seconds"] / _HOUR
    nodes = wording.count(day["nodes"], "node", "nodes")
    yield f"{day['date']} (UTC), {nodes}, watched for {hours:.1f} h"
    known = figures["knownSeconds"]
    over = f"{figures['overSeconds'] * 100 / known:.1f} % of the time" if known else "not known"
    yield f"  cpu above the threshold   {over}"
    held, cores = figures["heldSeconds"] / _HOUR, figures["heldCoreSeconds"] / _HOUR
    yield f"  best effort at its limit  {held:.1f} h, {cores:.1f} core-hours held back"
    for title, name in (("evicted", "evicted"), ("would be evicted", "wouldEvict")):
        pods, online = figures[f"{name}Pods"], figures[f"{name}OnlinePods"]
        yield f"  pods {title:<20} {pods:.0f}, {online:.0f} of them online"
    yield f"  properties written        {figures['written']:.0f}"
    yield f"  would be written          {figures['wouldWrite']:.0f}"
    conflicts, lost = figures["conflicts"], figures["foreignWriters"]
    yield f"  conflicts                 {conflicts:.0f}, given up to other writers {lost:.0f}"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    counts = [
        (
            row["strategy"] or "-",
            row["namespace"] or "-",
            row["class"] or "-",
            outcome,
            str(number),
        )
        for row in rows
        for outcome, number in row["outcomes"].items()
    ]
    if not counts:
        return
    counts.sort(key=lambda row: -int(row[-1]))
    shown = [_COLUMNS, *counts[:MOST_ROWS]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(_COLUMNS))]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if len(counts) > MOST_ROWS:
        yield f"  and {len(counts) - MOST_ROWS} more"
