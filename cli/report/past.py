"""What colocation gave in the last days, for the cluster and by team. Pure."""

import dataclasses
from typing import Any, Final

from cli.output import charts, written_reports
from cli.report import agents
from domain import wording

_MOST_BARS: Final = 12


@dataclasses.dataclass(frozen=True, slots=True)
class Team:
    """Figures of one team over the whole time; None where the source does not know them."""

    name: str
    held: float
    """Core-hours of lent resources that its pods requested."""
    used: float | None
    """Core-hours that these used."""
    left: float | None
    """Core-hours that its online pods requested and did not use."""
    returned: float | None
    """Core-hours of what it held that its nodes no longer lent."""
    waiting: float
    """Hours that its pods waited for a place."""
    evicted: float | None
    """Its pods that were evicted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """Figures of the cluster in core-hours, and its teams."""

    source: str
    hours: float
    """How long was measured."""
    allocatable: float
    lent: float
    online: float
    """Used outside batch and mid pods; the rest of the system included."""
    batch: float
    """Used by batch and mid pods."""
    evicted: float
    teams: tuple[Team, ...]
    days: tuple[tuple[str, float, float, float], ...] = ()
    """By date: lent, held and used by batch pods."""
    did: agents.Days = ()
    """What agents did by date; empty where the source does not know it."""
    notes: tuple[str, ...] = ()


def report(found: Past) -> written_reports.Report:
    """Return it as a report."""
    whole = found.allocatable or 1.0
    evicted = wording.count(f"{found.evicted:.0f}", "pod was", "pods were")
    sentences = (
        f"Measured over {wording.count(f'{found.hours:.0f}', 'hour', 'hours')}: {found.source}.",
        (
            f"Nodes offered {found.allocatable:.0f} core-hours. Online work and the system used "
            f"{100 * found.online / whole:.1f} %, with batch and mid pods "
            f"{100 * (found.online + found.batch) / whole:.1f} % were used."
        ),
        (
            f"Colocation lent {found.lent:.0f} core-hours, of which batch and mid pods used "
            f"{found.batch:.0f}; {evicted} evicted."
        ),
        *agents.sentences(found.did),
    )
    rows = tuple(
        (
            one.name, f"{one.held:.1f}", _shown(one.used), _shown(one.left), _shown(one.returned),
            f"{one.waiting:.1f}", _shown(one.evicted, digits=0),
        )
        for one in found.teams
    )  # fmt: skip
    head = (
        "TEAM", "HELD CORE-H", "USED CORE-H", "LEFT CORE-H", "GIVEN BACK CORE-H", "WAITED POD-H",
        "EVICTED",
    )  # fmt: skip
    tables = [written_reports.Table("By team", head, rows)]
    drawings = []
    bars = [
        (one.name, {"held": one.held, "used": one.used or 0.0}) for one in found.teams[:_MOST_BARS]
    ]
    if bars:
        drawings.append(charts.bars("Core-hours of lent resources, by team", "h", bars))
    if found.days:
        tables.append(
            written_reports.Table(
                "By day",
                ("DAY", "LENT CORE-H", "HELD CORE-H", "USED CORE-H"),
                tuple((day, *(f"{one:.1f}" for one in figures)) for day, *figures in found.days),
            )
        )
        days = [(day, {"lent": a, "held": b, "used": c}) for day, a, b, c in found.days]
        drawings.append(charts.bars("Core-hours by day", "h", days))
    tables += agents.tables(found.did)
    drawings += agents.drawings(found.did)
    return written_reports.Report(
        "What colocation gave", sentences, tuple(tables), tuple(drawings), found.notes
    )


def _shown(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def document(found: Past) -> dict[str, Any]:
    """Return it for programs."""
    body = dataclasses.asdict(dataclasses.replace(found, did=()))
    body["did"] = agents.document(found.did)
    body["days"] = [
        {"date": day, "lent": lends, "held": held, "used": used}
        for day, lends, held, used in found.days
    ]
    return body
