"""Publish NodeMetric."""

import logging
import math
import random
import zlib
from collections.abc import Callable, Mapping

from agent.decide.interference import findings
from agent.devices import usage_figures
from agent.model import collect_policy, state
from agent.report import node_metric
from agent.store import peaks, time_series
from api import resources
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import metrics

_logger = logging.getLogger(__name__)
LONGEST_PAUSE = 30.0


class Reporter:
    """Writes the status of this node's NodeMetric whenever its interval has passed.

    Every node has a moment of its own within the interval, by its name, so that thousands of
    agents that start together do not report together; the first report is sent at once.
    """

    def __init__(
        self,
        kube: clients.Client,
        clock: clocks.Clock,
        node_name: str,
        policy: Callable[[], collect_policy.Policy | None],
        figures: metrics.Registry,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._name = node_name
        self._place = zlib.crc32(node_name.encode()) / 2**32
        self._chance = chance
        self._policy = policy
        self._attempts = figures.counter(
            "koord_agent_reports_total", "Reports by what became of them.", ["outcome"]
        )
        figures.gauge(
            "koord_agent_report_age_seconds",
            "Since when no report was sent; before the first one, since the start.",
        ).set_function(self._age)
        self._begin = clock.monotonic()
        self._due = 0.0
        self._failures = 0
        self.reported_at: float | None = None
        self.problem = "no report sent yet"
        self.scorecard: Callable[[], Mapping[str, object] | None] = lambda: None
        """What the agent did today, which goes along with a report."""

    async def step(
        self,
        samples: time_series.Histories,
        picture: state.NodeState,
        forecast: Callable[[state.NodeState], peaks.Forecast] | None = None,
        gpus: tuple[usage_figures.Counted, ...] = (),
        interference: tuple[findings.Finding, ...] = (),
    ) -> bool:
        """Report if it is time to; return whether a report was sent."""
        now = self._clock.monotonic()
        policy = self._policy()
        if policy is None:
            self.problem = f"no NodeMetric {self._name} yet; the manager creates it"
            return False
        last = self.reported_at
        if last is not None and now < self.next_after(last, policy.interval_seconds):
            return False
        if now < self._due:
            return False
        if last is None and not picture.settled and now < self._begin + policy.interval_seconds:
            self.problem = "waiting for the kubelet's list of pods and a figure of each"
            return False
        predicted = forecast(picture) if forecast is not None else None
        body = node_metric.status(
            node_metric.Reporting(samples, picture, policy, now, predicted, gpus, interference)
        )
        if body is None:
            self.problem = "no usage of the node measured yet"
            return False
        if (card := self.scorecard()) is not None:
            body["scorecard"] = card
        try:
            await self._kube.patch(
                resources.NODE_METRICS,
                self._name,
                {"status": body},
                subresource="status",
                brief=True,
            )
        except errors.KubeError as error:
            self._failed(now, error)
            return False
        self.reported_at, self._failures, self.problem = now, 0, ""
        self._attempts.labels("sent").inc()
        return True

    def next_after(self, sent: float, interval: float) -> float:
        """Return this node's moment that is nearest to one interval after a report."""
        own = self._place * interval
        return own + math.ceil((sent + interval / 2 - own) / interval) * interval

    def _age(self) -> float:
        since = self._begin if self.reported_at is None else self.reported_at
        return self._clock.monotonic() - since

    def _failed(self, now: float, error: errors.KubeError) -> None:
        self._failures += 1
        pause = self._pause(self._failures)
        self._due = now + pause
        self.problem = f"{type(error).__name__}: {error}"
        self._attempts.labels("failed").inc()
        _logger.warning(
            "report failed node=%s reason=%s next_seconds=%.0f", self._name, self.problem, pause
        )

    def _pause(self, failures: int) -> float:
        # All agents fail together when the server does, and must not come back together.
        longest = min(LONGEST_PAUSE, 2.0 ** min(failures, 10))
        return longest * (0.5 + 0.5 * self._chance())
