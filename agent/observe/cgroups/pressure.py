"""How long the tasks of every pod and container wait for cpu, memory and disks."""

from agent.host import files, psi
from agent.model import cgroup_layout
from agent.observe import collectors
from agent.observe.node import kernel_features
from process.runtime import metrics


class Pressures:
    """Reads what the kernel says of each group, where it says anything."""

    name = "pressure"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._table = figures.table(
            "koord_agent_pressure_ratio",
            "Share of the last ten seconds in which some or all tasks waited.",
            [*collectors.LABELS, "resource", "kind"],
        )

    def collect(self, sight: collectors.Sight) -> None:
        """Look at every group once."""
        self._table.replace({})
        above = sight.layout.qos_group("Guaranteed")
        for path in kernel_features.pressure_files(sight.layout, above).values():
            try:
                sight.kept.read(path)
            except files.ReadingError as error:
                raise files.ReadingError(f"{error}; {_remedy(sight.layout)}") from error
        rows: dict[tuple[str, ...], float] = {}
        for spot in sight.spots():
            for resource, path in kernel_features.pressure_files(sight.layout, spot.group).items():
                try:
                    wait = psi.parse(sight.kept.read(path))
                except files.ReadingError:
                    # The cgroup is gone, or its accounting was switched off.
                    continue
                for kind, percent in (("some", wait.some), ("full", wait.full)):
                    if percent is not None:
                        sight.add(spot.key, f"pressure-{resource}-{kind}", percent)
                        rows[*spot.labels, resource, kind] = percent / 100
        self._table.replace(rows)

    def close(self) -> None:
        """Tell nothing any more."""
        self._table.replace({})


def _remedy(arranged: cgroup_layout.Layout) -> str:
    if arranged.version == 1:
        return "groups of version 1 say it on some vendors' kernels only"
    return "the kernel may have it switched off; boot with psi=1"
