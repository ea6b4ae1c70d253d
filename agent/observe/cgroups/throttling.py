"""How often containers with a CPU limit are throttled, in shares of the kernel's periods."""

from typing import Final

from agent.observe import collectors
from agent.observe.cgroups import cgroup_files
from api import names
from api.koordinator import resource_names
from process.runtime import metrics

FIGURE: Final = "throttled"
_CPUS: Final = (names.CPU, names.BATCH_CPU, names.MID_CPU)


class Throttling:
    """Compares the counters of each container with those of the look before."""

    name = "throttling"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._before: dict[str, tuple[int, int]] = {}
        self._table = figures.table(
            "koord_agent_throttled_ratio",
            "Share of the last periods in which a container with a CPU limit was throttled.",
            list(collectors.LABELS),
        )

    def collect(self, sight: collectors.Sight) -> None:
        """Look at every container with a limit once; a pod fares as its worst container."""
        cgroups = cgroup_files.Cgroups(sight.layout, sight.kept)
        before, self._before = self._before, {}
        rows: dict[tuple[str, ...], float] = {}
        pods: dict[tuple[str, ...], float] = {}
        for spot in sight.spots():
            if not _is_limited(spot) or (now := cgroups.throttled(spot.group)) is None:
                continue
            self._before[spot.group] = now
            share = _share(before.get(spot.group), now)
            if share is not None:
                rows[spot.labels] = share
                key = ("pod", spot.pod.pod.metadata.uid)
                pods[key] = max(share, pods.get(key, 0.0))
        for pod, share in pods.items():
            sight.add(pod, FIGURE, share)
        self._table.replace(rows)

    def close(self) -> None:
        """Tell nothing any more."""
        self._table.replace({})


def _is_limited(spot: collectors.Spot) -> bool:
    """Whether a spot is a container with a CPU limit; without one nothing throttles it."""
    name = spot.labels[-1]
    return any(
        resource_names.current(one.container.resources.limits).get(cpu)
        for one in spot.pod.containers
        if name and one.name == name
        for cpu in _CPUS
    )


def _share(before: tuple[int, int] | None, now: tuple[int, int]) -> float | None:
    """Return the share of throttled periods; None where there was no period, or a new start."""
    if before is None or now[0] <= before[0] or now[1] < before[1]:
        return None
    return (now[1] - before[1]) / (now[0] - before[0])
