"""What LowNodeLoad costs on a large cluster, of which a tenth of all nodes is overloaded.

python -m benchmarks.descheduling.balance [--nodes 5000] [--pods 30] [--rounds 7]

One balance reads the load of all nodes and suggests pods until every source is below its thresholds
or no target is left; every suggestion is accepted and no filter refuses. `fit` is the table of what
is free by requests, which the plug-ins of a round share.
"""

import argparse
import time
from collections.abc import Sequence

from benchmarks import figures
from benchmarks.descheduling import clusters
from descheduler.configuration.arguments import load as arguments
from descheduler.framework import protocols
from descheduler.framework.nodes import node_fit
from descheduler.model import picture, podinfo
from descheduler.plugins.low_node_load import low_node_load

_GOAL_MS = 400
_ARGUMENTS = {
    "lowThresholds": {"cpu": 45, "memory": 55},
    "highThresholds": {"cpu": 70, "memory": 80},
    "prodLowThresholds": {"cpu": 40},
    "prodHighThresholds": {"cpu": 60},
    "anomalyCondition": {"consecutiveAbnormalities": 1},
}


class _NoFilters:
    """Lets every pod go."""

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return nothing."""
        del pod
        return ""

    def refusals(self, pods: Sequence[podinfo.Pod]) -> Sequence[str]:
        """Return nothing of each."""
        return [""] * len(pods)

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return nothing."""
        del pod
        return ""


def balanced(plugin: low_node_load.LowNodeLoad, view: protocols.View) -> int:
    """Let every suggested pod go; return how many there were."""
    asked, moves = plugin.balance(view, protocols.NO_MEMORY), 0
    try:
        next(asked)
        while True:
            moves += 1
            asked.send(True)
    except StopIteration:
        return moves


def _milliseconds(seen: picture.Picture) -> tuple[float, float, int]:
    plugin = low_node_load.LowNodeLoad(arguments.LowNodeLoadArgs.model_validate(_ARGUMENTS))
    started = time.process_time()
    fit = node_fit.Table(seen)
    fitted = time.process_time()
    view = protocols.View(seen, list(seen.nodes.values()), _NoFilters(), fit)
    moves = balanced(plugin, view)
    ended = time.process_time()
    return (fitted - started) * 1000, (ended - fitted) * 1000, moves


def main() -> None:
    """Measure both, on one cluster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    seen = clusters.generated(given.nodes, given.pods)
    found = [_milliseconds(seen) for _ in range(given.rounds)]
    size = f"{given.nodes} nodes, {len(seen.pods)} pods, {found[0][2]} moves, processor time"
    goal = f"<= {_GOAL_MS}"
    figures.show(
        figures.plain(
            "descheduling.balance", f"one balance, {size}", "ms", [one[1] for one in found], goal
        ),
        figures.plain(
            "descheduling.fit", f"free by requests, {size}", "ms", [one[0] for one in found]
        ),
    )


if __name__ == "__main__":
    main()
