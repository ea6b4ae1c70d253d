"""How requests to the API server ended and how long they took."""

from process.runtime import metrics, series


class RequestMetrics:
    """Counts and times of the requests of one client."""

    def __init__(self, registry: metrics.Registry) -> None:
        self.requests = registry.counter(
            "koord_kube_requests_total",
            "Requests to the API server by outcome; code 0 means no answer.",
            ("verb", "resource", "code"),
        )
        self.seconds = registry.histogram(
            "koord_kube_request_seconds",
            "Time from sending a request to the API server to its complete answer.",
            ("verb", "resource"),
        )
        self._series: dict[tuple[str, str, int], tuple[series.Count, series.Observed | None]] = {}

    def note(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count the outcome of one request and, unless it is a watch, how long it took."""
        key = verb, resource, code
        found = self._series.get(key)
        if found is None:
            # Looking labels up takes longer than counting.
            is_timed = verb != "watch"
            found = self._series[key] = (
                self.requests.labels(verb, resource, code),
                self.seconds.labels(verb, resource) if is_timed else None,
            )
        outcomes, times = found
        outcomes.inc()
        if times is not None:
            times.observe(seconds)
