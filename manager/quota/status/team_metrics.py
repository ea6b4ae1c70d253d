"""What every team may use, uses, borrows, lends and waits for, as gauges by quota and resource.

Every replica exports them, for at most `MOST` quotas, the oldest: a tenant that makes many quotas
takes no other off a dashboard.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api import names
from api.wire import quantity
from domain.quota.tree import standing
from domain.quota.tree.forest import Forest
from manager.quota import book
from process.runtime import clock as clocks
from process.runtime import metrics

MOST: Final = 500
"""Quotas that have metrics of their own."""
MOST_RESOURCES: Final = 16
"""Resources of each."""
MOST_STANDINGS: Final = 2000
"""With more quotas than that it is not worked out who lends: it would take too long."""
PERIOD_SECONDS: Final = 15.0
_REST: Final = 50.0
"""How many times as long as it took the figures stand, at least."""
_AMOUNTS: Final[Mapping[str, str]] = {
    "entitled": "What the pods of a quota may use now",
    "guaranteed": "What a quota gets whenever it asks for it",
    "used": "Requests of the pods of a quota that have a node",
    "borrowed": "What a quota uses beyond its guarantee",
    "lent": "What others use of the idle guarantee of a quota",
    "waiting": "Requests of the pods of a quota without a node",
}
_UNITS: Final = ": cpu in cores, memory in bytes, everything else in pieces."

Rows = dict[tuple[str, ...], float]


@dataclasses.dataclass(frozen=True, slots=True)
class TeamMetrics:
    """The gauges and what they are read from."""

    seen: book.Book
    clock: clocks.Clock
    registry: metrics.Registry

    async def run(self) -> None:
        """Work until cancelled."""
        tables = amount_tables(self.registry)
        pods = self.registry.table(
            "koord_quota_waiting_pods", "Pods of a quota without a node.", ("quota",)
        )
        conflicts = self.registry.gauge(
            "koord_quota_conflicts",
            "ElasticQuotas with a name, namespace or parent that cannot be what they say.",
        )
        hidden = self.registry.gauge(
            "koord_quota_hidden", f"ElasticQuotas beyond the {MOST} with metrics of their own."
        )
        told: Forest | None = None
        while True:
            began, forest = self.clock.monotonic(), self.seen.forest
            if forest is not told:
                shown = chosen(forest)
                for name, rows in amounts(forest, shown).items():
                    tables[name].replace(rows)
                pods.replace(waiting(self.seen, frozenset(shown)))
                conflicts.set(len(forest.conflicts()))
                hidden.set(max(0, len(forest.names()) - MOST))
                told = forest
            took = self.clock.monotonic() - began
            await self.clock.sleep(max(PERIOD_SECONDS, _REST * took))


def amount_tables(registry: metrics.Registry) -> dict[str, metrics.Table]:
    """Return the gauge of each amount by its name."""
    return {
        name: registry.table(f"koord_quota_{name}", about + _UNITS, ("quota", "resource"))
        for name, about in _AMOUNTS.items()
    }


def chosen(forest: Forest) -> tuple[str, ...]:
    """Return the quotas that have metrics of their own: the oldest, and the reserved ones."""
    known = list(forest.names())
    if len(known) > MOST:
        born = {name: found.created_at for name in known if (found := forest.quota(name))}
        known = sorted(known, key=lambda name: (born.get(name, 0.0), name))[:MOST]
    return (*known, names.DEFAULT_QUOTA, names.SYSTEM_QUOTA)


def amounts(forest: Forest, shown: tuple[str, ...], most: int = MOST_STANDINGS) -> dict[str, Rows]:
    """Return the values of each gauge by quota and resource."""
    rows: dict[str, Rows] = {name: {} for name in _AMOUNTS}
    stands = standing.standings(forest) if len(forest.names()) <= most else {}
    for quota in shown:
        found = forest.figures(quota)
        if found is None:
            continue
        one = stands.get(quota)
        parts: dict[str, Mapping[str, int]] = {
            "entitled": found.limit,
            "guaranteed": found.scaled_minimum,
            "used": found.used,
        }
        if one is not None:
            parts |= {name: getattr(one, name) for name in _AMOUNTS if name != "entitled"}
        for name, values in parts.items():
            for resource in sorted(found.cap)[:MOST_RESOURCES]:
                value = values.get(resource, 0)
                rows[name][quota, resource] = (
                    value / 1000 if quantity.is_milli(resource) else float(value)
                )
    return rows


def waiting(seen: book.Book, shown: frozenset[str]) -> Rows:
    """Return how many pods of each quota wait."""
    counts: Rows = {(name,): 0.0 for name in shown}
    for uid in seen.waiting:
        name = seen.name_of(seen.pods[uid])
        if name in shown:
            counts[name,] += 1
    return counts
