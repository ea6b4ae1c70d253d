"""A report of the real node beside what its groups counted during the very same seconds."""

from api import resources
from api.wire import durations
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.node import node_cluster, node_groups

WINDOW = node_cluster.COLOCATION["metricAggregateDurationSeconds"]
METRIC = resources.NODE_METRICS.path(name=node_cluster.NODE)


async def beside(cluster, folders):
    """Return a status and the cores that groups used in the window of its averages, by name."""
    clock = clocks.SystemClock()
    samples = []

    async def check():
        used = {name: node_groups.figure(one, "cpuacct.usage") for name, one in folders.items()}
        samples.append((clock.now(), used))
        status = (await cluster.api.get(METRIC)).get("status") or {}
        at = durations.timestamp(status["updateTime"]) if status else 0.0
        # Moments are told in whole seconds.
        return status if at - WINDOW >= samples[0][0] + 1 else None

    status = await raw.eventually(check, node_cluster.PATIENCE)
    end = durations.timestamp(status["updateTime"])
    (first, before), (last, after) = (
        min(samples, key=lambda sample: abs(sample[0] - moment)) for moment in (end - WINDOW, end)
    )
    rates = {name: (after[name] - before[name]) / 1e9 / (last - first) for name in folders}
    return status, rates
