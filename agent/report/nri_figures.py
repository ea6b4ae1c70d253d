"""Metrics of the answers to container runtimes."""

from collections.abc import Callable
from typing import Final

from process.runtime import metrics

EVENTS: Final = ("create", "start", "update")
RESULTS: Final = ("adjusted", "unchanged", "held-back", "unrecorded", "late")
BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


class Figures:
    """The metrics; zero where no runtime asks."""

    def __init__(self, registry: metrics.Registry) -> None:
        self._connected = registry.gauge(
            "koord_agent_nri_connected", "1 while the container runtime asks the agent by NRI."
        )
        self._socket = registry.gauge(
            "koord_agent_nri_socket", "1 where the container runtime has a socket for plug-ins."
        )
        self._answers = registry.counter(
            "koord_agent_nri_answers_total",
            "Containers that the runtime asked about, by event and result.",
            ["event", "result"],
        )
        for event in EVENTS:
            for result in RESULTS:
                self._answers.labels(event, result)
        self._seconds = registry.histogram(
            "koord_agent_nri_answer_seconds",
            "Time from a request of the container runtime to the answer.",
            ["method"],
            BUCKETS,
        )
        self._rivals = registry.counter(
            "koord_agent_nri_stand_downs_total",
            "Times at which another NRI plug-in was found to set the same fields.",
        )
        self._problems = registry.counter(
            "koord_agent_nri_hook_problems_total",
            "Values that containers did not start with, since a hook could not give them.",
            ["hook"],
        )

    def show(self, connected: Callable[[], bool], is_there: Callable[[], bool]) -> None:
        """Export whether there is a runtime and whether it asks."""
        self._connected.set_function(lambda: float(connected()))
        self._socket.set_function(lambda: float(is_there()))

    def counted(self, event: str, result: str) -> None:
        """Count the answer about a container."""
        self._answers.labels(event, result).inc()

    def answered(self, method: str, seconds: float) -> None:
        """Take how long an answer took."""
        self._seconds.labels(method or "none").observe(seconds)

    def stood_down(self) -> None:
        """Count that another plug-in was found."""
        self._rivals.inc()

    def failed(self, hook: str) -> None:
        """Count a hook that could not give a container its values."""
        self._problems.labels(hook).inc()
