"""The last days from the daily sums that the manager keeps in a ConfigMap. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from api import names
from api.wire import durations, untrusted
from cli.report import past
from domain import wording
from domain.daily_sums import sums

_DAY: Final = 86_400.0
_HOUR: Final = 3600.0


class NoSumsError(ValueError):
    """Sums that are not there or cannot be read; says what to do."""


def past_days(days: int, now: float) -> frozenset[str]:
    """Return the dates of so many days, today included."""
    return frozenset(durations.moment(now - number * _DAY)[:10] for number in range(days))


def past_of(data: Mapping[str, Any] | None, days: int, now: float) -> past.Past:
    """Return what the sums say of so many days."""
    try:
        kept = sums.read(data)
    except untrusted.ReadError as error:
        raise NoSumsError(f"ConfigMap {names.CONFIG_MAP_REPORT}: {error}") from error
    wanted = past_days(days, now)
    chosen = sorted((one for one in kept if one.date in wanted), key=lambda one: one.date)
    if not chosen:
        raise NoSumsError(
            f"ConfigMap {names.CONFIG_MAP_REPORT} has no sums of these days: the manager keeps "
            "them once it has led for some minutes; before an installation use --would, and "
            "--prometheus where a Prometheus scrapes Koord"
        )
    whole, teams = _together(chosen)
    said = wording.count(len(chosen), "day", "days")
    return past.Past(
        f"{said}, by the daily sums of the manager; teams are namespaces",
        whole.seconds / _HOUR,
        whole.allocatable / _HOUR,
        whole.lent / _HOUR,
        whole.online / _HOUR,
        whole.used / _HOUR,
        sum(one.evicted for one in teams.values()),
        tuple(_teams(teams)),
        tuple(
            (
                day.date,
                day.cluster.lent / _HOUR,
                sum(one.held for one in day.teams.values()) / _HOUR,
                day.cluster.used / _HOUR,
            )
            for day in chosen
        ),
        tuple((day.date, day.agents) for day in chosen),
    )


def _together(days: Iterable[sums.Day]) -> tuple[sums.Cluster, dict[str, sums.Team]]:
    """Add days up."""
    whole = sums.Cluster()
    teams: dict[str, sums.Team] = {}
    for day in days:
        whole = whole.plus(day.cluster)
        for name, team in day.teams.items():
            teams[name] = teams.get(name, sums.Team()).plus(team)
    return whole, teams


def _teams(teams: Mapping[str, sums.Team]) -> Iterator[past.Team]:
    """Yield the teams, the one that held most first."""
    for name, one in sorted(teams.items(), key=lambda item: (-item[1].held, item[0])):
        yield past.Team(
            name,
            one.held / _HOUR,
            one.used / _HOUR,
            one.left / _HOUR,
            one.returned / _HOUR,
            one.waiting / _HOUR,
            one.evicted,
        )
