"""The metrics of a tick: how long it took, what it wanted, what failed."""

import logging
from collections.abc import Mapping
from typing import Final

from agent.decide import planner
from agent.model import state
from process.runtime import metrics

_logger = logging.getLogger(__name__)
SUPPRESS: Final = "cpu-suppress"


class Figures:
    """What a tick exports as metrics."""

    def __init__(self, registry: metrics.Registry) -> None:
        self.failing: Mapping[str, str] = {}
        """What strategies could not decide in the last tick, by strategy and pod."""
        self.seconds = registry.histogram(
            "koord_agent_tick_seconds", "Time that one look with its decisions took."
        )
        self.failures = registry.counter(
            "koord_agent_tick_failures_total", "Ticks that ended in an unexpected error."
        )
        self.edits = registry.counter(
            "koord_agent_edits_total", "Files by what became of them.", ["role", "outcome"]
        )
        self.allowed = registry.gauge(
            "koord_agent_best_effort_allowed_cores", "Cores that best-effort work may use."
        )
        self.used = registry.gauge(
            "koord_agent_node_cpu_cores", "Cores used on the node, by whom.", ["by"]
        )
        self.cores = registry.gauge("koord_agent_node_cores", "Processors of the node.")
        self.wanted = registry.gauge(
            "koord_agent_strategy_edits", "Properties that a strategy wants to set.", ["strategy"]
        )
        self.evicting = registry.gauge(
            "koord_agent_strategy_evictions", "Pods that a strategy wants to evict.", ["strategy"]
        )
        self.strategy_failures = registry.counter(
            "koord_agent_strategy_failures_total",
            "Ticks in which a strategy could not decide; what it set stands.",
            ["strategy"],
        )
        self.skipped = registry.gauge(
            "koord_agent_skipped_pods",
            "Pods that a strategy leaves out because it cannot decide with them.",
            ["strategy"],
        )
        self.problems = registry.gauge(
            "koord_agent_reading_problems",
            "Pods, files and annotations that could not be read in the last tick.",
        )
        self.journal = registry.gauge(
            "koord_agent_journal_entries", "Files that hold what the agent wrote."
        )

    def show(self, picture: state.NodeState, round_: planner.Round) -> None:
        """Take the figures of one tick."""
        self._log_failures(round_)
        self.problems.set(len(picture.problems))
        for name, decision in round_.decisions.items():
            self.wanted.labels(name).set(len(decision.wanted))
            self.evicting.labels(name).set(len(decision.evictions))
            self.skipped.labels(name).set(len(round_.skipped.get(name, ())))
        for name in round_.failed:
            self.strategy_failures.labels(name).inc()
        suppress = round_.decisions.get(SUPPRESS)
        allowed = None if suppress is None else suppress.figures.get("allowed-milli")
        if allowed is not None:
            self.allowed.set(max(0, allowed) / 1000)
        if picture.processors:
            self.cores.set(len(picture.processors))
        best_effort = sum(pod.usage.cpu or 0.0 for pod in picture.pods if pod.best_effort)
        for by, cores in (("node", picture.usage.cpu), ("best-effort", best_effort)):
            if cores is not None:
                self.used.labels(by).set(cores)

    def log_problems(self, before: state.NodeState | None, picture: state.NodeState) -> None:
        """Log what could not be read, each once until it changes."""
        known = before.problems if before is not None else {}
        for source, reason in picture.problems.items():
            if known.get(source) != reason:
                _logger.warning("reading failed source=%r reason=%r", source, reason)

    def _log_failures(self, round_: planner.Round) -> None:
        failing = dict(round_.failed)
        for name, pods in round_.skipped.items():
            failing |= {f"{name} of pod {key}": reason for key, reason in pods.items()}
        for what, reason in failing.items():
            if self.failing.get(what) != reason:
                _logger.error("strategy failed what=%r reason=%r", what, reason)
        self.failing = failing
