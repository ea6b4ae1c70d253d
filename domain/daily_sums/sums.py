"""Daily sums of resources lent, held, used and given back, of the cluster and by namespace. Pure.

They stand as JSON in one ConfigMap of bounded size: the last days, and of each day the namespaces
that held or left most; the others count together.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from api.wire import untrusted
from domain.daily_sums import effects

KEY: Final = "days.json"
"""Where they stand in the data of the ConfigMap."""
MOST_DAYS: Final = 14
MOST_TEAMS: Final = 200
"""Namespaces of a day."""
OTHERS: Final = "(others)"
_BOUNDS: Final = untrusted.Bounds(bytes=768 << 10, depth=6, parts=200_000)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Team(msgspec.Struct, frozen=True, array_like=True):
    """Core-seconds of one namespace, pod-seconds, and pods."""

    left: float = 0.0
    """Requested by its online pods and not used."""
    held: float = 0.0
    """Lent resources that its pods requested."""
    used: float = 0.0
    """Of that, used."""
    returned: float = 0.0
    """Held on nodes that lent less than was held there, each pod its share."""
    waiting: float = 0.0
    """Seconds that its pods waited for a place."""
    evicted: float = 0.0
    """Pods that were evicted."""

    def plus(self, other: "Team") -> "Team":
        """Add other sums."""
        return Team(*(a + b for a, b in zip(_parts(self), _parts(other), strict=True)))

    def times(self, seconds: float) -> "Team":
        """Return what rates come to in some time; evictions are counted as they are."""
        found = Team(*(part * seconds for part in _parts(self)))
        return msgspec.structs.replace(found, evicted=self.evicted)

    @property
    def weight(self) -> float:
        """What makes a namespace worth a row."""
        return self.held + self.left + self.waiting


class Cluster(msgspec.Struct, frozen=True, array_like=True):
    """Core-seconds of all nodes."""

    seconds: float = 0.0
    """How long was measured."""
    allocatable: float = 0.0
    lent: float = 0.0
    online: float = 0.0
    """Used outside batch and mid pods."""
    used: float = 0.0
    """Used by batch and mid pods."""

    def plus(self, other: "Cluster") -> "Cluster":
        """Add other sums."""
        return Cluster(*(a + b for a, b in zip(_parts(self), _parts(other), strict=True)))

    def times(self, seconds: float) -> "Cluster":
        """Return what rates come to in some time."""
        return Cluster(*(part * seconds for part in _parts(self)))


def _parts(one: Team | Cluster) -> tuple[float, ...]:
    found: tuple[float, ...] = msgspec.structs.astuple(one)
    return found


class Day(msgspec.Struct, frozen=True):
    """One day of UTC."""

    date: str
    cluster: Cluster = Cluster()
    teams: Mapping[str, Team] = {}
    agents: effects.Effects = effects.NOTHING
    """What agents did."""


class Rates(msgspec.Struct, frozen=True):
    """What is at one moment: cores instead of core-seconds, and evictions since the last."""

    cluster: Cluster
    teams: Mapping[str, Team]


def added(days: Iterable[Day], date: str, rates: Rates, seconds: float) -> tuple[Day, ...]:
    """Let rates hold for some time; the oldest days and the smallest teams are folded away."""
    kept = {one.date: one for one in days}
    day = kept.get(date, Day(date))
    teams = dict(day.teams)
    for name, team in rates.teams.items():
        teams[name] = teams.get(name, Team()).plus(team.times(seconds))
    cluster = day.cluster.plus(rates.cluster.times(seconds))
    kept[date] = Day(date, cluster, _bounded(teams), day.agents)
    return tuple(kept[one] for one in sorted(kept)[-MOST_DAYS:])


def effects_of(days: Iterable[Day], date: str) -> effects.Effects:
    """Return what agents did on one of the days."""
    return next((one.agents for one in days if one.date == date), effects.NOTHING)


def with_effects(days: Iterable[Day], date: str, did: effects.Effects) -> tuple[Day, ...]:
    """Say what agents did on one of the days."""
    return tuple(
        msgspec.structs.replace(one, agents=did) if one.date == date else one for one in days
    )


def _bounded(teams: Mapping[str, Team]) -> dict[str, Team]:
    """Keep the largest; what is beyond them counts together."""
    if len(teams) <= MOST_TEAMS:
        return dict(teams)
    named = sorted(
        (one for one in teams if one != OTHERS), key=lambda one: (-teams[one].weight, one)
    )
    found = {name: teams[name] for name in named[: MOST_TEAMS - 1]}
    rest = teams.get(OTHERS, Team())
    for name in named[MOST_TEAMS - 1 :]:
        rest = rest.plus(teams[name])
    return {**found, OTHERS: rest}


def text(days: Iterable[Day]) -> str:
    """Return the days as they are written, to the tenth of a second."""
    return _ENCODER.encode([_rounded(one) for one in days]).decode()


def _rounded(day: Day) -> Day:
    cluster = Cluster(*(round(part, 1) for part in _parts(day.cluster)))
    teams = {
        name: Team(*(round(part, 1) for part in _parts(team))) for name, team in day.teams.items()
    }
    return Day(day.date, cluster, teams, day.agents.rounded())


def read(data: Mapping[str, str] | None) -> tuple[Day, ...]:
    """Read the data of the ConfigMap; a ReadError says what is wrong with it."""
    written = (data or {}).get(KEY, "")
    if not written:
        return ()
    found = untrusted.decode(written, tuple[Day, ...], f"key {KEY}", bounds=_BOUNDS)
    return found[-MOST_DAYS:]
