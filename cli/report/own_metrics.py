"""The last days from a Prometheus that scrapes Koord, by Koord's own metrics.

Teams are elastic quotas there. Every replica of the manager tells the same figures, hence max().
"""

from collections.abc import Mapping
from typing import Final

from api import names
from cli.prometheus import client as prometheus
from cli.prometheus import samples
from cli.report import past
from domain import wording

_STEP: Final = "5m"
_NODE, _BEST_EFFORT = "node", "best-effort"
NO_METRICS: Final = (
    "the Prometheus knows no koord_manager_lent_cores: let it scrape Koord, or leave --prometheus "
    "out to read the daily sums of the manager"
)


class NoMetricsError(ValueError):
    """A Prometheus that does not scrape Koord; says what to do."""


async def over_days(source: prometheus.Prometheus, days: int, at: float) -> past.Past:
    """Return what a Prometheus knows of so many days."""
    hours = days * 24.0
    lends = await _one(source, _mean("max(koord_manager_lent_cores)", days), at)
    if lends is None:
        raise NoMetricsError(NO_METRICS)
    allocatable = await _one(source, _mean("max(koord_manager_allocatable_cores)", days), at)
    used = await source.figures(_mean("sum by (by) (koord_agent_node_cpu_cores)", days), at)
    parts = {one.labels.get("by", ""): one.value for one in used}
    batch = parts.get(_BEST_EFFORT, 0.0)
    evicted = await _one(
        source,
        f'sum(increase(koord_agent_evictions_total{{outcome="evicted"}}[{days}d]))',
        at,
    )
    held = f'koord_quota_used{{resource="{names.BATCH_CPU}"}}'
    waits = await source.figures(_mean("max by (quota) (koord_quota_waiting_pods)", days), at)
    teams = _teams(
        _by_quota(await source.figures(_mean(f"max by (quota) ({held})", days), at)),
        _by_quota(waits),
        hours,
    )
    return past.Past(
        f"{wording.count(days, 'day', 'days')}, by the metrics of Koord in a Prometheus; teams are "
        "elastic quotas",
        hours,
        (allocatable or 0.0) * hours,
        lends * hours,
        max(parts.get(_NODE, 0.0) - batch, 0.0) * hours,
        batch * hours,
        evicted or 0.0,
        teams,
        notes=("a Prometheus knows held and waiting of quotas; the manager's sums know more",),
    )


def _mean(query: str, days: int) -> str:
    return f"avg_over_time(({query})[{days}d:{_STEP}])"


async def _one(source: prometheus.Prometheus, query: str, at: float) -> float | None:
    found = await source.figures(query, at)
    return found[0].value if found else None


def _by_quota(figures: list[samples.Figure]) -> Mapping[str, float]:
    return {one.labels["quota"]: one.value for one in figures if one.labels.get("quota")}


def _teams(
    held: Mapping[str, float], waits: Mapping[str, float], hours: float
) -> tuple[past.Team, ...]:
    found = [
        past.Team(
            name,
            held.get(name, 0.0) * hours,
            None,
            None,
            None,
            waits.get(name, 0.0) * hours,
            None,
        )
        for name in {*held, *waits}
        if held.get(name) or waits.get(name)
    ]
    return tuple(sorted(found, key=lambda one: (-one.held, one.name)))
