"""What was measured over the last while, as evictions and bursts ask for it. Pure."""

from agent.decide import requested
from agent.decide.strategies import cpu_burst, cpu_evict
from agent.hooks.cpu import cpu_burst as bursts
from agent.model import state
from agent.store import time_series
from api import names
from api.koordinator.metadata import qos

BURST_TICKS, MOST_BURST_SECONDS = 5, 10.0
LONGEST_SECONDS = 3600.0
PERIOD_US = 100_000


class Windows:
    """Remembers what best effort used, requested and could have used."""

    def __init__(self, tick_seconds: float) -> None:
        self._tick = tick_seconds
        self._series = {
            name: time_series.Series(LONGEST_SECONDS) for name in ("usage", "request", "limit")
        }

    def add(self, picture: state.NodeState, now: float) -> None:
        """Take one look in."""
        pods = [pod for pod in picture.pods if pod.qos is qos.QoS.BE]
        used = [pod.usage.cpu for pod in pods if pod.usage.cpu is not None]
        request = sum(requested.of_lasting(pod.pod, names.BATCH_CPU) for pod in pods if pod.active)
        self._series["usage"].add(now, sum(used) * 1000)
        self._series["request"].add(now, request)
        limit = real_limit(picture)
        if limit is not None:
            self._series["limit"].add(now, limit)

    def of_evictions(
        self, samples: time_series.Histories, window_seconds: int | None, now: float
    ) -> cpu_evict.Window:
        """Return the figures of the window of evictions."""
        start = now - max(self._tick, float(window_seconds or 0))
        usage, request, limit = (
            self._figures(name, start, now) for name in ("usage", "request", "limit")
        )
        return cpu_evict.Window(
            interval_seconds=self._tick,
            node=samples.average(("node", "cpu"), start, now),
            usage=usage,
            request=request,
            limit=limit,
        )

    def of_bursts(
        self, picture: state.NodeState, samples: time_series.Histories, now: float
    ) -> cpu_burst.Averages:
        """Return the averages that say whether the shared cpus have room."""
        start = now - min(BURST_TICKS * self._tick, MOST_BURST_SECONDS)
        pods = {}
        for pod in picture.pods:
            if pod.qos not in bursts.WITHOUT:
                # Only the share of those that may not burst is asked for.
                continue
            uid = pod.pod.metadata.uid
            used = samples.average(("pod", uid, "cpu"), start, now)
            if used is not None:
                pods[uid] = used
        return cpu_burst.Averages(samples.average(("node", "cpu"), start, now), pods)

    def _figures(self, name: str, start: float, now: float) -> cpu_evict.Series:
        series = self._series[name]
        values = series.window(start, now)
        mean, newest = time_series.average(values), series.newest
        if mean is None or newest is None:
            return cpu_evict.Series()
        return cpu_evict.Series(mean, newest[1], len(values))


def real_limit(picture: state.NodeState) -> float | None:
    """Return the milli-cores that best effort may use at this moment: by quota and by cpus.

    The smallest set of any container counts, since a pause container often has all cpus.
    """
    best_effort = picture.best_effort
    if best_effort is None or not picture.processors:
        return None
    sets = [len(group.cpus) for group in best_effort.groups if group.depth and group.cpus]
    if best_effort.cpus:
        sets.append(len(best_effort.cpus))
    cpus = min(sets, default=len(picture.processors)) * 1000.0
    quota = best_effort.quota_us
    return cpus if quota is None or quota <= 0 else min(cpus, quota * 1000 / PERIOD_US)
