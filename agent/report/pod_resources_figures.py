"""Metrics of the PodResources API that the agent serves."""

from collections.abc import Callable, Iterable, Mapping

from process.runtime import metrics


class Figures:
    """The metrics; they exist where the API is served."""

    def __init__(
        self, registry: metrics.Registry, calls: Iterable[tuple[str, str]], resources: Iterable[str]
    ) -> None:
        self._listening = registry.gauge(
            "koord_agent_pod_resources_listening", "1 while the PodResources API is served."
        )
        self._calls = registry.counter(
            "koord_agent_pod_resources_calls_total",
            "Calls of the PodResources API by method and outcome.",
            ["method", "outcome"],
        )
        for method, outcome in calls:
            self._calls.labels(method, outcome)
        self._devices = registry.gauge(
            "koord_agent_pod_resources_devices",
            "Devices that the latest list has beyond those of the kubelet, by resource.",
            ["resource"],
        )
        self._faults = registry.gauge(
            "koord_agent_pod_resources_faults",
            "Pods of the latest list whose allocated devices were not, or not all, added.",
        )
        self._resources = tuple(resources)
        for resource in self._resources:
            self._devices.labels(resource)

    def show(self, listening: Callable[[], bool]) -> None:
        """Export whether the API is served."""
        self._listening.set_function(lambda: float(listening()))

    def counted(self, method: str, outcome: str) -> None:
        """Count a call."""
        self._calls.labels(method, outcome).inc()

    def added(self, devices: Mapping[str, int], faults: int) -> None:
        """Take what a list has gained, by resource, and how many pods have a fault."""
        for resource in self._resources:
            self._devices.labels(resource).set(devices.get(resource, 0))
        self._faults.set(faults)
