"""What LowNodeLoad says of a pod that leaves, and of a pool in which none does. Pure."""

from collections.abc import Iterator
from typing import Final

from descheduler.plugins.low_node_load import anomaly, classification, pools
from domain import wording

NO_ROOM: Final = "no node of low load has room for them"


def overutilized(kind: anomaly.Kind, parts: Iterator[tuple[str, float, float]]) -> str:
    """Return why a pod leaves, from resource, load and threshold in percent, as worded upstream."""
    said = [
        f"{kind} {resource} usage({load:.2f}%)>threshold({threshold:.2f}%)"
        for resource, load, threshold in parts
    ]
    return f"node is overutilized, {', '.join(said)}"


def limited(pool: pools.Pool, limit: str, pods: int) -> str:
    """Return how many pods of overloaded nodes stay, and why."""
    stay = wording.count(pods, "pod of overloaded nodes stays", "pods of overloaded nodes stay")
    return f"pool {pool.name}: {limit}, {stay}"


def idle(pool: pools.Pool, classes: classification.Classes, nodes: int, least: int) -> str:
    """Return why a pool with overloaded nodes is left alone; empty where it is not."""
    found, hot = classes.targets, len(classes.high) + len(classes.prod_high)
    if not found:
        what = "and no node is below all of them"
    elif found <= least:
        low = wording.count(found, "is", "are")
        what = f"and {low} low, where numberOfNodes asks for more than {least}"
    else:
        return ""
    share = f"{hot} of {wording.count(nodes, 'node', 'nodes')}"
    exceed = wording.form(hot, "exceeds", "exceed")
    return f"pool {pool.name}: {share} {exceed} thresholds, {what}: no pod is moved"
