"""Page cache that was not touched for long, from whichever part of the kernel keeps count.

`kidled` of some vendors' kernels counts idle pages for every group; the generations of the kernel's
own page reclaim (multi-gen LRU) tell of every group as well, as far as they have been aged; DAMON
tells of the node as a whole where it was configured. The first of these that works is taken.
"""

from collections.abc import Mapping
from typing import Final

from agent.host import files
from agent.model import cgroup_layout
from agent.observe import collectors
from agent.observe.cold_memory import kidled
from process.runtime import metrics

SECONDS: Final = 5.0
"""Time between two looks at what tells of all groups at once."""
IDLE_SECONDS: Final = 300.0
"""How long a page is left alone before it counts as cold: sixty scans of kidled."""


class Reader:
    """Tells cold bytes of groups, and who counts them."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.source = ""
        """The source of the last count: `kidled`, `generations`, `damon`, or empty for none."""
        self.reasons: list[str] = []
        """Why there is no count, when there is none."""
        self._seconds = seconds
        self._looked: float | None = None
        self._found: Mapping[str, int] = {}

    def cold(
        self, arranged: cgroup_layout.Layout, kept: files.Kept, group: str, at: float
    ) -> int | None:
        """Return the bytes of page cache of a cgroup that are cold, None where not counted."""
        counted = kidled.cold(arranged, kept, group)
        if counted is not None:
            self.source, self.reasons, self._looked = "kidled", [], None
            return counted
        if group and self.source == "kidled":
            # The group is gone; what the node as a whole says decides who counts.
            return None
        if self._looked is None or at - self._looked >= self._seconds:
            self._looked = at
            self._look(arranged)
        return self._found.get(group)

    def _look(self, arranged: cgroup_layout.Layout) -> None:
        from agent.observe.cold_memory import damon, multigen_lru  # noqa: PLC0415 - 26 KiB

        self.source, self.reasons, self._found = "", ["kidled: not there, or not started"], {}
        for name, look in (("generations", multigen_lru.cold), ("damon", damon.cold)):
            try:
                self._found = look(arranged.sys, IDLE_SECONDS)
            except files.ReadingError as error:
                self.reasons.append(f"{name}: {error}")
            else:
                self.source, self.reasons = name, []
                return


class Coldness:
    """Reads at an interval what is cold; the policies of reports read it for themselves."""

    name = "cold pages of groups"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._reader = Reader(seconds / 2)
        self._node = figures.table(
            "koord_agent_node_cold_page_bytes",
            "Page cache of the node that was not touched for five minutes, by source.",
            ["source"],
        )
        self._groups = figures.table(
            "koord_agent_cold_page_bytes",
            "Page cache of pods and containers that was not touched for five minutes.",
            collectors.LABELS,
        )

    def collect(self, sight: collectors.Sight) -> None:
        """Look at the node and every group once."""
        self.close()
        node = self._reader.cold(sight.layout, sight.kept, "", sight.at)
        if node is None:
            raise files.ReadingError("; ".join(self._reader.reasons))
        sight.add(("node",), "cold", node)
        rows: dict[tuple[str, ...], float] = {}
        for spot in sight.spots():
            try:
                found = self._reader.cold(sight.layout, sight.kept, spot.group, sight.at)
            except files.ReadingError:
                # The node itself could be read: this cgroup is gone.
                continue
            if found is not None:
                sight.add(spot.key, "cold", found)
                rows[spot.labels] = found
        for application in filter(lambda one: one.group, sight.host_applications):
            found = self._reader.cold(sight.layout, sight.kept, application.group, sight.at)
            if found is not None:
                sight.add(("host", application.name), "cold", found)
        self._node.replace({(self._reader.source,): node})
        self._groups.replace(rows)

    def close(self) -> None:
        """Tell nothing any more."""
        self._node.replace({})
        self._groups.replace({})
