"""How the agent of a node is to measure it."""

from typing import Any

from api import resources
from domain import field_ownership
from domain.cluster_settings import shorthand
from manager.cluster_settings import strategy
from manager.reconcile import actions, node_objects


def render(rules: strategy.Strategy | None) -> dict[str, Any]:
    """Return the spec; a node without colocation, or without valid settings, gets the defaults."""
    chosen = rules if rules is not None and rules.enable else strategy.read(strategy.DEFAULT)
    return {
        "metricCollectPolicy": {
            "aggregateDurationSeconds": chosen.aggregate_seconds,
            "reportIntervalSeconds": chosen.report_seconds,
            "nodeAggregatePolicy": {"durations": list(chosen.windows)},
            "nodeMemoryCollectPolicy": chosen.memory_collect_policy,
        }
    }


def planned(
    name: str,
    there: node_objects.Present | None,
    rules: strategy.Strategy | None,
    *,
    doubtful: bool,
) -> actions.Plan:
    """Plan the NodeMetric of an existing node.

    While settings are doubtful, what exists stays, except that a person's shorthand counts.
    """
    if there is None:
        return node_objects.planned(resources.NODE_METRICS, name, None, render(rules))
    stated = shorthand.in_node_metric(there.spec)
    wanted = _set_by_us(there) if doubtful else render(rules)
    made = node_objects.planned(resources.NODE_METRICS, name, there, wanted, stated)
    if not doubtful:
        return made
    return actions.Plan("NodeMetric kept: the cluster settings are in error", made.steps)


def _set_by_us(there: node_objects.Present) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for path, value in field_ownership.leaves(there.spec):
        if field_ownership.covers(there.ours, path):
            field_ownership.place(kept, path, value)
    return kept
