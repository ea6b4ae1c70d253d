"""Metrics of rounds: how often, how long, what became of suggestions, how loads are spread."""

from typing import Final

from descheduler.framework.planning import round_plan
from process.runtime import metrics

MOVED: Final = "created"
DRY_RUN: Final = "dry_run"
FAILED: Final = "failed"
_LONGEST: Final = 120
"""Characters of a reason in a label."""
_MOST_REASONS: Final = 200
"""Reasons of which refusals are counted one by one; figures in a reason would make it many."""


class RoundMetrics:
    """What the rounds of the leader have decided."""

    def __init__(self, registry: metrics.Registry) -> None:
        self._rounds = registry.counter(
            "koord_descheduler_rounds_total", "Rounds by what became of them.", ("result",)
        )
        self._seconds = registry.histogram(
            "koord_descheduler_round_seconds", "Time that a round takes to decide."
        )
        self._moves = registry.counter(
            "koord_descheduler_moves_total",
            "Pods that rounds have decided to move, by what became of the decision.",
            ("profile", "plugin", "result"),
        )
        self._refused = registry.counter(
            "koord_descheduler_refusals_total",
            "Suggestions of plug-ins that became no move, by reason.",
            ("plugin", "reason"),
        )
        self._kept = registry.table(
            "koord_descheduler_kept_pods",
            "Pods that filters kept in the last round, of those that plug-ins asked about.",
            ("profile", "reason"),
        )
        self._nodes = registry.table(
            "koord_descheduler_nodes",
            "Nodes by class in the last round, by plug-in and pool of nodes.",
            ("profile", "plugin", "pool", "class"),
        )
        self._evicted = registry.counter(
            "koord_descheduler_pods_evicted_total",
            "Evictions by result; strategy is the plug-in that wanted the pod to leave.",
            ("result", "strategy", "namespace", "node"),
        )
        self._spread = registry.gauge(
            "koord_descheduler_load_spread_ratio",
            "How unevenly nodes are loaded, before and after the moves of the last round.",
            ("when",),
        )
        self._failures = registry.counter(
            "koord_descheduler_plugin_failures_total",
            "Plug-ins that failed in a round.",
            ("profile", "plugin"),
        )
        self._last = registry.gauge(
            "koord_descheduler_last_round_timestamp_seconds", "When the last round was decided."
        )
        self._pods = metrics.LabelValues()
        self._reasons: set[tuple[str, str]] = set()

    def ended(self, result: str) -> None:
        """Count a round."""
        self._rounds.labels(result).inc()

    def decided(self, plan: round_plan.RoundPlan, now: float, seconds: float) -> None:
        """Export what a round has decided."""
        self._seconds.observe(seconds)
        self._last.set(now)
        for one in plan.refused:
            self._refused.labels(*self._reason(one.plugin, one.reason)).inc(one.count)
        for failure in plan.failures:
            self._failures.labels(failure.profile, failure.plugin).inc()
        self._kept.replace(
            {(one.profile, one.reason[:_LONGEST]): float(one.count) for one in plan.kept}
        )
        self._nodes.replace(
            {(one.profile, one.plugin, one.pool, one.kind): float(one.count) for one in plan.counts}
        )
        for counted in plan.counts:
            # Before the first move, or a rate would leave that one out.
            self._moves.labels(counted.profile, counted.plugin, MOVED)
        if plan.spread is not None:
            self._spread.labels("before").set(plan.spread.before / 100)
            self._spread.labels("after").set(plan.spread.after / 100)

    def moved(self, move: round_plan.Move, result: str) -> None:
        """Count a move by what became of it."""
        self._moves.labels(move.profile, move.suggestion.plugin, result).inc()

    def evicted(self, move: round_plan.Move, *, is_accepted: bool) -> None:
        """Count an eviction without a job, by DefaultEvictor."""
        pod, strategy = move.suggestion.pod, move.suggestion.plugin
        result = "success" if is_accepted else "error"
        self._evicted.labels(result, *self._pods.of(strategy, pod.namespace, pod.node)).inc()

    def _reason(self, plugin: str, reason: str) -> tuple[str, str]:
        key = plugin, reason[:_LONGEST]
        if key not in self._reasons:
            if len(self._reasons) >= _MOST_REASONS:
                return plugin, "other"
            self._reasons.add(key)
        return key
