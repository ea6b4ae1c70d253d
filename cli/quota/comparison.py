"""What a change of quotas would do, beside what would happen anyway: as lines and as data. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.wire import durations, quantity
from cli.quota import cluster as clusters
from cli.quota import table
from domain import wording
from domain.quota.simulation import what_if
from domain.quota.tree import forest as forests
from domain.quota.tree import standing

_SHOWN: Final = ("used", "entitled", "guaranteed", "cap", "waiting")
_MOST: Final = 50


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """One cluster, played with and without a change."""

    cluster: clusters.Cluster
    changes: tuple[str, ...]
    changed: forests.Forest
    """The quotas after the change, before anything has happened."""
    without: what_if.Outcome
    outcome: what_if.Outcome
    notes: tuple[str, ...] = ()


# -- as lines --------------------------------------------------------------------------------


def lines(found: Comparison) -> Iterator[str]:
    """Yield everything for people."""
    yield from (f"try: {sentence}" for sentence in found.changes or ("no change",))
    yield ""
    yield from _aligned(list(_rows(found)))
    yield ""
    yield from _part("Evicted", list(_evictions(found)), "No pod is evicted.")
    yield from _part("Starts", list(_starts(found)), "No waiting pod starts.")
    yield from _part("Keeps waiting", list(_waits(found)), "")
    ahead = found.outcome.until - found.cluster.now
    yield f"Played {_span(ahead)} ahead of {durations.moment(found.cluster.now)}."
    yield from (f"note: {note}" for note in found.notes)


def _part(title: str, told: Sequence[str], otherwise: str) -> Iterator[str]:
    if not told:
        if otherwise:
            yield otherwise
        return
    yield title
    yield from (f"  {sentence}" for sentence in told[:_MOST])
    if len(told) > _MOST:
        yield f"  and {len(told) - _MOST} more (-o json lists all)"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _rows(found: Comparison) -> Iterator[tuple[str, ...]]:
    """Yield the table: every figure before and, where another one, after."""
    yield ("QUOTA", "RESOURCE", *(figure.upper() for figure in _SHOWN))
    before = standing.standings(found.cluster.forest)
    after = standing.standings(found.outcome.forest)
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if name in (names.DEFAULT_QUOTA, names.SYSTEM_QUOTA) and not _matters(old, new):
            continue
        some = new or old
        assert some is not None
        for key in table.resources_of(some):
            yield (name, key, *(_cell(key, figure, old, new) for figure in _SHOWN))


def _matters(old: standing.Standing | None, new: standing.Standing | None) -> bool:
    return any(one and (any(one.used.values()) or any(one.waiting.values())) for one in (old, new))


def _cell(
    key: str, figure: str, old: standing.Standing | None, new: standing.Standing | None
) -> str:
    texts = []
    for one in (old, new):
        amount = getattr(one, figure).get(key) if one is not None else None
        texts.append(table.written(key, amount))
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} → {texts[1]}"


def _evictions(found: Comparison) -> Iterator[str]:
    for one in found.outcome.evictions:
        pod, lost = found.cluster.pods[one.uid], _lost(one.lost)
        gains = found.cluster.pods.get(one.gains)
        whom = f"pod {gains.key}" if gains is not None else f"quota {one.gains}"
        anyway = _anyway(one.uid, found.without)
        yield (
            f"{pod.key} of {found.cluster.quota_of(pod)} {_when(found, one.at)}, by {one.kind} "
            f"for {whom}; lost: {lost}{anyway}"
        )


def _anyway(uid: str, without: what_if.Outcome) -> str:
    evicted = {one.uid for one in without.evictions}
    return " (also without the change)" if uid in evicted else ""


def _lost(lost: Mapping[str, float]) -> str:
    cores = lost.get(names.CPU, 0.0) / 1000 / 3600
    other = [
        f"{amount / 3600:.1f} {key}-hours"
        for key, amount in sorted(lost.items())
        if key not in (names.CPU, names.MEMORY) and not quantity.is_bytes(key) and amount
    ]
    return ", ".join([f"{cores:.1f} core-hours", *other])


def _starts(found: Comparison) -> Iterator[str]:
    before = {one.uid: one.at for one in found.without.starts}
    for one in found.outcome.starts:
        pod = found.cluster.pods[one.uid]
        otherwise = "it would keep waiting"
        if one.uid in before:
            otherwise = f"{_when(found, before[one.uid])}"
        changed = before.get(one.uid) != one.at
        note = f" (without the change: {otherwise})" if changed else ""
        yield f"{pod.key} of {found.cluster.quota_of(pod)} {_when(found, one.at)}{note}"


def _waits(found: Comparison) -> Iterator[str]:
    for one in found.outcome.waits:
        pod = found.cluster.pods[one.uid]
        needs = [wording.named(key, amount) for key, amount in sorted(one.needs.items())]
        where = f"quota {one.of}" if one.of else "a node"
        until = f": until {', '.join(needs)} of {where} become free" if needs else ""
        place = f", {one.place} of {one.of_line} in line" if one.place else ""
        yield f"{pod.key} of {found.cluster.quota_of(pod)}{place}{until}; {one.sentence}"


def _when(found: Comparison, at: float) -> str:
    seconds = at - found.cluster.now
    return "at once" if seconds <= 0 else f"after {_span(seconds)}"


def _span(seconds: float) -> str:
    return durations.text(float(round(seconds)))


# -- as data ---------------------------------------------------------------------------------


def document(found: Comparison) -> dict[str, Any]:
    """Return the same for programs; work in amount-hours, times in RFC 3339."""
    pods = found.cluster.pods
    before = standing.standings(found.cluster.forest)
    after = standing.standings(found.outcome.forest)
    return {
        "changes": list(found.changes),
        "now": durations.moment(found.cluster.now),
        "until": durations.moment(found.outcome.until),
        "quotas": [
            {"name": name, "before": _figures(before.get(name)), "after": _figures(after.get(name))}
            for name in dict.fromkeys((*before, *after))
        ],
        "evictions": [
            {
                "pod": pods[one.uid].key,
                "quota": found.cluster.quota_of(pods[one.uid]),
                "at": durations.moment(one.at),
                "by": one.kind,
                "for": pods[one.gains].key if one.gains in pods else one.gains,
                "lostHours": {key: _hours(key, amount) for key, amount in one.lost.items()},
            }
            for one in found.outcome.evictions
        ],
        "starts": _started(found, found.outcome),
        "startsWithout": _started(found, found.without),
        "waits": [
            {
                "pod": pods[one.uid].key,
                "quota": found.cluster.quota_of(pods[one.uid]),
                "needs": quantity.texts(one.needs),
                "of": one.of,
                "place": one.place,
                "why": one.sentence,
            }
            for one in found.outcome.waits
        ],
        "notes": list(found.notes),
    }


def _hours(key: str, amount: float) -> float:
    """Return work in hours of one unit: cores, bytes, pieces."""
    return round(amount / 3600 / (1000 if quantity.is_milli(key) else 1), 3)


def _started(found: Comparison, outcome: what_if.Outcome) -> list[dict[str, Any]]:
    return [
        {
            "pod": found.cluster.pods[one.uid].key,
            "quota": found.cluster.quota_of(found.cluster.pods[one.uid]),
            "at": durations.moment(one.at),
            "node": one.node,
        }
        for one in outcome.starts
    ]


def _figures(one: standing.Standing | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {figure: quantity.texts(getattr(one, figure)) for figure in table.FIGURES}
