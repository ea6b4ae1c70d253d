"""The Reservations of a cluster as lines for a terminal, and as a document. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator import scheduling
from api.wire import durations, quantity
from cli.output import columns
from cli.reservations import cluster as clusters
from domain import wording
from domain.reservations import usage

COLUMNS: Final = (
    *columns.left("NAME", "PHASE", "NODE", "RESERVED", "USED", "LEFT", "OWNERS", "ENDS"),
    *columns.more("POLICY", "OWNER PODS"),
    columns.Column("REASON", narrow=True),
    *columns.more("REASON"),
)
_NONE: Final = "-"
_LONGEST: Final = 80
"""Characters of a reason in a line."""
_MOST: Final = 3
"""Resources that one cell names; the document names all."""
_ORDER: Final = {"cpu": 0, "memory": 1}


def lines(found: clusters.Cluster, *, wide: bool = False) -> Iterator[str]:
    """Yield a line per Reservation, the totals, and what is wrong with its remedy."""
    rows = (_cells(one, found.now) for one in found.listed)
    yield from columns.lines(COLUMNS, rows, wide=wide)
    yield totals(found)
    for problem, remedy in problems(found):
        yield f"problem: {problem}"
        yield f"  remedy: {remedy}"


def _cells(one: clusters.Reserved, now: float) -> tuple[str, ...]:
    used = one.usage
    live = used.phase == scheduling.AVAILABLE
    return (
        used.name,
        used.phase,
        used.node or _NONE,
        amounts(used.reserved),
        amounts(used.allocated) if used.node else _NONE,
        amounts(used.left) if live else _NONE,
        _owners(one),
        _NONE if ended(one) else remaining(used.ends_at, now),
        one.written.policy or _NONE,
        ",".join(owner.key for owner in used.owners) or _NONE,
        columns.cut(one.why, _LONGEST) or _NONE,
        one.why or _NONE,
    )


def _owners(one: clusters.Reserved) -> str:
    """Count the pods that use it; in brackets those that run in its place while it is Waiting."""
    if one.usage.phase == scheduling.WAITING:
        return f"({len(one.written.status.current_owners)})"
    return str(len(one.usage.owners))


def ended(one: clusters.Reserved) -> bool:
    """Whether it keeps nothing any more and never will again."""
    return one.usage.phase in (scheduling.SUCCEEDED, scheduling.FAILED)


def amounts(found: Mapping[str, int]) -> str:
    """Write amounts, cpu and memory first."""
    keys = sorted(found, key=lambda key: (_ORDER.get(key, 2), key))
    parts = [_amount(key, found[key]) for key in keys[:_MOST]]
    return " ".join(parts) + (" …" if len(keys) > _MOST else "") or _NONE


def _amount(key: str, value: int) -> str:
    return quantity.text(key, value) if key in _ORDER else f"{quantity.text(key, value)} {key}"


def remaining(ends_at: float | None, now: float) -> str:
    """Write how long is left, in whole minutes from an hour on."""
    if ends_at is None:
        return "never"
    left = ends_at - now
    if left <= 0:
        return "now"
    if left < 3600:
        return durations.text(left // 1)
    return durations.text(left // 60 * 60).removesuffix("0s")


def totals(found: clusters.Cluster) -> str:
    """Say in one line how many there are and what they keep that no owner uses."""
    total = usage.totals(one.usage for one in found.listed)
    phases = ", ".join(f"{count} {phase}" for phase, count in total.phases.items() if count)
    reservations = wording.count(len(found.listed), "Reservation", "Reservations")
    said = [f"{reservations}: {phases or 'none'}."]
    if total.reserved:
        said.append(
            f"Reserved {amounts(total.reserved)}; owners use {amounts(total.allocated)}; unused "
            f"{amounts(total.kept)}."
        )
    if total.phases[scheduling.WAITING]:
        kept = amounts({key: value for key, value in total.waiting.items() if value})
        said.append(f"Waiting ones keep {kept} beside the pods that run in their place.")
    return " ".join(said)


def problems(found: clusters.Cluster) -> Iterator[tuple[str, str]]:
    """Yield what cannot stay as it is, with what to do."""
    known = {one.usage.uid for one in found.found.values()}
    for one in found.listed:
        yield from _wrong(one, found.now)
    for pod in found.pods.values():
        uid = clusters.stands_for(pod)
        if uid and uid not in known:
            yield (
                f"pod {pod.metadata.key} stands in for a Reservation that does not exist",
                "the manager deletes it within a minute; if it stays, look at the manager's log",
            )
    for owner in found.unmarked:
        yield (
            f"pod {owner.key} names a Reservation of another node than its own",
            f"delete the pod if it should use the Reservation: koord explain pod {owner.key}",
        )


def _wrong(one: clusters.Reserved, now: float) -> Iterator[tuple[str, str]]:
    used, name = one.usage, one.usage.name
    if used.fault:
        yield (f"Reservation {name} cannot be used: {used.fault}", "correct that annotation")
    over = [key for key, value in used.allocated.items() if value > used.reserved.get(key, 0)]
    if over and used.phase == scheduling.AVAILABLE and one.written.policy == "Restricted":
        yield (
            f"owners of Reservation {name} use more {', '.join(sorted(over))} than it reserves",
            f"koord explain reservation {name} lists the owners; delete the youngest",
        )
    if used.phase == scheduling.AVAILABLE and used.ends_at is not None and used.ends_at < now - 60:
        yield (
            f"Reservation {name} has expired and is still Available",
            "look whether the manager runs: koord doctor",
        )


def document(found: clusters.Cluster) -> dict[str, Any]:
    """Return the Reservations as plain data; amounts as Kubernetes quantities."""
    total = usage.totals(one.usage for one in found.listed)
    return {
        "items": [item(one) for one in found.listed],
        "totals": {
            "phases": dict(total.phases),
            "reserved": quantity.texts(total.reserved),
            "allocated": quantity.texts(total.allocated),
            "unused": quantity.texts(total.kept),
            "waiting": quantity.texts(total.waiting),
        },
        "problems": [{"message": text, "remedy": remedy} for text, remedy in problems(found)],
        "notes": list(found.notes),
    }


def item(one: clusters.Reserved) -> dict[str, Any]:
    """Return one Reservation as plain data."""
    used = one.usage
    return {
        "name": used.name,
        "phase": used.phase,
        "node": used.node,
        "policy": one.written.policy,
        "allocateOnce": one.written.spec.allocate_once,
        "reserved": quantity.texts(used.reserved),
        "allocated": quantity.texts(used.allocated),
        "left": quantity.texts(used.left),
        "unused": quantity.texts(used.kept),
        "owners": [
            {"pod": one.key, "requests": quantity.texts(one.requests)} for one in used.owners
        ],
        "expires": None if used.ends_at is None else durations.moment(used.ends_at),
        "waitsFor": [
            f"{pod.namespace}/{pod.name}"
            for pod in one.written.status.current_owners
            if used.phase == scheduling.WAITING
        ],
        "reason": one.why,
    }
