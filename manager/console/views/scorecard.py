"""What colocation gives: lent and used, nodes saved, waiting, moves, what agents did. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from domain.daily_sums import effects, sums
from domain.lending import colocation
from manager.console.views import migrations, pods, usage
from manager.model import projections

_HOUR: Final = 3600.0


class Total(NamedTuple):
    """Sums over nodes."""

    nodes: int = 0
    reported: int = 0
    capacity: colocation.Amount = colocation.NOTHING
    lent: colocation.Amount = colocation.NOTHING
    online: colocation.Amount = colocation.NOTHING
    batch: colocation.Amount = colocation.NOTHING
    whole: colocation.Amount = colocation.NOTHING
    requested: colocation.Amount = colocation.NOTHING
    borrowed: colocation.Amount = colocation.NOTHING
    batch_pods: int = 0


def total(
    nodes: Iterable[tuple[projections.Node, colocation.Amount, usage.Use | None]],
    index: pods.PodIndex,
) -> Total:
    """Add up all nodes, each with what it lends and what is in use."""
    capacity, lent, online, batch, whole, requested, borrowed = ([0, 0] for _ in range(7))
    count = reported = batch_pods = 0
    for node, offered, found in nodes:
        sums = index.of_node(node.name)
        count += 1
        batch_pods += sums.batch_pods
        _add(capacity, node.allocatable)
        _add(lent, offered)
        _add(requested, (sums.cpu, sums.memory))
        _add(borrowed, (sums.batch_cpu, sums.batch_memory))
        if found is not None:
            reported += 1
            _add(online, found.online)
            _add(batch, found.batch)
            _add(whole, found.whole)
    return Total(
        nodes=count,
        reported=reported,
        capacity=colocation.Amount(*capacity),
        lent=colocation.Amount(*lent),
        online=colocation.Amount(*online),
        batch=colocation.Amount(*batch),
        whole=colocation.Amount(*whole),
        requested=colocation.Amount(*requested),
        borrowed=colocation.Amount(*borrowed),
        batch_pods=batch_pods,
    )


def _add(into: list[int], amount: tuple[int, int]) -> None:
    into[0] += amount[0]
    into[1] += amount[1]


def document(
    found: Total,
    waiting: Iterable[pods.Pod],
    moves: Iterable[migrations.Migration] | None,
    days: Iterable[sums.Day] | None,
) -> dict[str, Any]:
    """Return the scorecard; moves and days are None where they may not be shown."""
    average = found.capacity.cpu / found.nodes if found.nodes else 0
    held = max(found.batch.cpu, found.borrowed.cpu)
    shown: dict[str, Any] = {
        **{name: _told(value) for name, value in found._asdict().items()},
        "savedNodes": round(held / average, 1) if average else 0.0,
        "useWithout": _part(found.whole.cpu - found.batch.cpu, found.capacity.cpu),
        "useWith": _part(found.whole.cpu, found.capacity.cpu),
        "waiting": _counted(pod.waiting.kind for pod in waiting if pod.waiting is not None),
    }
    if moves is not None:
        shown["moves"] = Counter(one.phase for one in moves)
    if days is not None:
        shown["days"] = [_day(one.date, one.agents) for one in days if one.agents.watched][::-1]
    return shown


def _day(date: str, did: effects.Effects) -> dict[str, Any]:
    """Return what agents did on one day: core-hours, pods and shares."""
    return {
        "date": date,
        "enforced": _part(did.enforced, did.watched),
        "aboveThreshold": _part(did.over, did.known),
        "heldBack": round(did.suppressed / _HOUR, 1),
        "wouldHoldBack": round(did.would_suppress / _HOUR, 1),
        "onlineThrottled": _part(did.throttled, did.measured),
        "evicted": round(did.evicted),
        "evictedOnline": round(did.evicted_online),
        "wouldEvict": round(did.would_evict),
        "strategies": [
            {"name": name, "evicted": round(by.evicted), "wouldEvict": round(by.would_evict)}
            for name, by in sorted(did.reasons.items())
        ],
    }


def _counted(kinds: Iterable[str]) -> list[dict[str, Any]]:
    counts: Mapping[str, int] = Counter(kinds)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [{"kind": kind, "pods": count} for kind, count in ordered[:12]]


def _told(value: Any) -> Any:
    return value._asdict() if isinstance(value, colocation.Amount) else value


def _part(part: float, whole: float) -> float | None:
    """Return a share; None where nothing was measured."""
    return round(part / whole, 4) if whole else None
