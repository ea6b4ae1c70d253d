"""What a replay came to: sums, lines for people, data, and a report with charts. Pure."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from cli.output import charts, written_reports
from cli.simulation.load import replay
from domain import wording

_ROWS: Final = 24


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """The whole time in a few figures."""

    hours: float
    nodes: int
    cores: float
    before_percent: float
    """Mean use of the cores by online work and the system."""
    after_percent: float
    """Mean use with batch and mid pods."""
    gained_core_hours: float
    """What batch and mid pods used."""
    suppressed_core_hours: float
    """What they would have used besides."""
    lent_core_hours: float
    held_core_hours: float
    started: int
    evicted: int
    waiting_pod_hours: float
    stretch: float
    """Mean stretch of online work with best-effort work."""
    alone: float
    """Mean stretch without it."""
    worst: float
    """The largest stretch on any node."""


def summary(found: replay.Replay) -> Summary:
    """Return the figures of the whole time."""
    moments, hours = found.moments, found.step_hours
    count = max(len(moments), 1)
    capacity = found.cores * count or 1.0
    online = sum(one.online for one in moments)
    used = sum(one.used for one in moments)
    weight = online or 1.0
    return Summary(
        hours=count * hours,
        nodes=found.nodes,
        cores=found.cores,
        before_percent=100 * online / capacity,
        after_percent=100 * (online + used) / capacity,
        gained_core_hours=used * hours,
        suppressed_core_hours=sum(one.wanted - one.used for one in moments) * hours,
        lent_core_hours=sum(one.lent for one in moments) * hours,
        held_core_hours=sum(one.held for one in moments) * hours,
        started=found.started,
        evicted=sum(one.evicted for one in moments),
        waiting_pod_hours=sum(one.waiting for one in moments) * hours,
        stretch=sum(one.stretch * one.online for one in moments) / weight if online else 1.0,
        alone=sum(one.alone * one.online for one in moments) / weight if online else 1.0,
        worst=max((one.worst for one in moments), default=1.0),
    )


def lines(found: replay.Replay) -> Iterator[str]:
    """Yield a replay for people."""
    yield from _sentences(summary(found))
    yield ""
    table = hours(found)
    rows = [table.head, *table.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.head))]
    for row in rows:
        yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
    yield from (f"note: {note}" for note in found.notes)


def _sentences(of: Summary) -> Iterator[str]:
    hours = wording.count(f"{of.hours:g}", "hour", "hours")
    nodes = wording.count(of.nodes, "node", "nodes")
    cores = wording.count(f"{of.cores:g}", "core", "cores")
    yield (
        f"Over {hours} {nodes} with {cores} {wording.form(of.nodes, 'is', 'are')} used to "
        f"{of.after_percent:.1f} % instead of {of.before_percent:.1f} %: batch and mid pods get "
        f"{of.gained_core_hours:.1f} core-hours."
    )
    yield (
        f"{of.suppressed_core_hours:.1f} core-hours more are wanted and suppressed; "
        f"{wording.count(of.evicted, 'pod is', 'pods are')} evicted, "
        f"{wording.count(of.started, 'gets', 'get')} a place, and pods wait "
        f"{of.waiting_pod_hours:.1f} hours."
    )
    yield (
        f"Price: requests of services take {of.stretch:.3f} of their time on an idle node, without "
        f"best-effort work {of.alone:.3f}; the worst node {of.worst:.3f} (a queue for cores in "
        "which nobody is preferred)."
    )


def hours(found: replay.Replay) -> written_reports.Table:
    """Return a table of at most a row per hour of a day."""
    step = max(1, -(-len(found.moments) // _ROWS))
    rows = tuple(
        (
            f"{one.hour:.2f}", f"{one.online:.1f}", f"{one.used:.1f}", f"{one.lent:.1f}",
            f"{one.held:.1f}", f"{one.wanted - one.used:.1f}", str(one.waiting),
            str(sum(other.evicted for other in found.moments[at : at + step])),
            f"{one.stretch:.3f}",
        )
        for at, one in list(enumerate(found.moments))[::step]
    )  # fmt: skip
    head = (
        "HOUR", "ONLINE", "BATCH", "LENT", "HELD", "SUPPRESSED", "WAITING", "EVICTED", "STRETCH",
    )  # fmt: skip
    return written_reports.Table("Cores by hour", head, rows)


def document(found: replay.Replay) -> dict[str, Any]:
    """Return a replay for programs."""
    return {
        "summary": dataclasses.asdict(summary(found)),
        "evictions": dict(found.evictions),
        "moments": [one._asdict() for one in found.moments],
        "notes": list(found.notes),
    }


def report(found: replay.Replay) -> written_reports.Report:
    """Return a replay as a report with charts."""
    moments = found.moments
    times = [one.hour for one in moments]
    cores = {
        "online and system": [one.online for one in moments],
        "with batch": [one.online + one.used for one in moments],
        "lent to batch": [one.lent for one in moments],
        "held of lent resources": [one.held for one in moments],
        "suppressed": [one.wanted - one.used for one in moments],
    }
    price = {
        "with batch": [one.stretch for one in moments],
        "without batch": [one.alone for one in moments],
        "worst node": [one.worst for one in moments],
    }
    pods = {
        "waiting": [float(one.waiting) for one in moments],
        "evicted": [float(one.evicted) for one in moments],
    }
    return written_reports.Report(
        "Simulated colocation",
        tuple(_sentences(summary(found))),
        (hours(found),),
        (
            charts.lines(f"Cores in use, of {found.cores:g}", "cores", times, cores),
            charts.lines("Stretch of requests of services", "", times, price),
            charts.lines("Pods", "", times, pods),
        ),
        found.notes,
    )
