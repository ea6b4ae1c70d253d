"""Figures of memory that nobody touches: of the node, its pods and their containers."""

from agent import collectors, files
from agent.observe import coldpages
from process import metrics


class Coldness:
    """Reads at an interval what is cold; the policies of reports read it for themselves."""

    name = "cold pages of groups"

    def __init__(self, figures: metrics.Registry, seconds: float) -> None:
        self.seconds = seconds
        self._reader = coldpages.Reader(seconds / 2)
        self._node = figures.table(
            "koord_agent_node_cold_page_bytes",
            "Page cache of the node that nobody has touched for five minutes, by who counts it.",
            ["source"],
        )
        self._groups = figures.table(
            "koord_agent_cold_page_bytes",
            "Page cache of pods and containers that nobody has touched for five minutes.",
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
