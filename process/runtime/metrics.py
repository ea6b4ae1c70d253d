"""Metrics of one process: a registry of its own and one set of naming rules."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import prometheus_client
from prometheus_client import core, exposition, registry

from process.runtime import series

_NAME = re.compile(r"koord_[a-z0-9]+(_[a-z0-9]+)+")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED_LABELS = frozenset({"le", "quantile", "job", "instance"})
_RESERVED_ENDINGS = ("_count", "_sum", "_bucket", "_created")
_BASE_UNITS = {
    "ms": "seconds",
    "millis": "seconds",
    "milliseconds": "seconds",
    "microseconds": "seconds",
    "nanoseconds": "seconds",
    "minutes": "seconds",
    "hours": "seconds",
    "kb": "bytes",
    "mb": "bytes",
    "gb": "bytes",
    "kib": "bytes",
    "mib": "bytes",
    "gib": "bytes",
    "percent": "ratio",
    "millicores": "cores",
}
_HISTOGRAM_UNITS = ("seconds", "bytes", "ratio", "cores", "nodes", "pods", "items")

OTHER: Final = "other"
MOST_SERIES: Final = 10_000
_LONGEST_VALUE: Final = 120

# From half a millisecond, for calls on the loopback interface, to half a minute.
LATENCY_BUCKETS = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)


class MetricError(ValueError):
    """A metric whose name, labels or type break the rules."""


class LabelValues:
    """The values of labels that are free text, or that come and go: the first so many of them.

    All further ones count together, since no series of a counter is ever forgotten.
    """

    def __init__(self, most: int = MOST_SERIES) -> None:
        self._most = most
        self._known: set[tuple[str, ...]] = set()

    def of(self, *values: str) -> tuple[str, ...]:
        """Return the values that a series has."""
        key = tuple(value[:_LONGEST_VALUE] for value in values)
        if key not in self._known:
            if len(self._known) >= self._most:
                return (OTHER,) * len(key)
            self._known.add(key)
        return key


class Table(registry.Collector):
    """A metric whose series are replaced all at once, so that none outlives what it is about."""

    def __init__(self, name: str, description: str, labels: Sequence[str]) -> None:
        self.kind = "counter" if name.endswith("_total") else "gauge"
        self._name, self._description, self._labels = name, description, tuple(labels)
        self._rows: Mapping[tuple[str, ...], float] = {}

    def replace(self, rows: Mapping[tuple[str, ...], float]) -> None:
        """Tell these values from now on, by the values of the labels, and no others."""
        self._rows = rows

    def describe(self) -> Iterator[core.Metric]:
        """Yield the metric without values."""
        yield self._family()

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metric with a value for each row."""
        family = self._family()
        for labels, value in self._rows.items():
            family.add_metric(labels, value)
        yield family

    def _family(self) -> core.CounterMetricFamily | core.GaugeMetricFamily:
        made = core.CounterMetricFamily if self.kind == "counter" else core.GaugeMetricFamily
        return made(self._name, self._description, labels=self._labels)


_Metric = TypeVar(
    "_Metric",
    series.Counter,
    prometheus_client.Gauge,
    series.Histogram,
    Table,
)

_Collector = TypeVar("_Collector", bound=registry.Collector)


class Registry:
    """The metrics of one process or, in development, of one of several in the same process.

    Asking again for a name with the same type and labels returns the same metric, so that two
    clients in one process may share theirs.
    """

    def __init__(self, *, interpreter: bool = False) -> None:
        """Start empty; `interpreter` adds its memory, CPU, open files and garbage figures."""
        self.collector = registry.CollectorRegistry(auto_describe=True)
        self._known: dict[str, tuple[object, tuple[str, ...]]] = {}
        if interpreter:
            prometheus_client.ProcessCollector(registry=self.collector)
            prometheus_client.PlatformCollector(registry=self.collector)
            prometheus_client.GCCollector(registry=self.collector)

    def counter(
        self,
        name: str,
        description: str,
        labels: Sequence[str] = (),
        *,
        known: Iterable[tuple[str, ...]] = (),
    ) -> series.Counter:
        """Return the counter of that name, which only grows and ends in _total.

        Of what is `known` about its labels, a series is exported from the start. One that appears
        with its first event has never grown, for Prometheus: a rate would leave that event out.
        """
        if not name.endswith("_total"):
            raise MetricError(f"counter {name}: end its name in _total")
        found = self._metric(
            series.Counter,
            name,
            labels,
            lambda: self._registered(series.Counter(name, description, labels)),
        )
        for values in known:
            found.labels(*values)
        return found

    def gauge(
        self, name: str, description: str, labels: Sequence[str] = ()
    ) -> prometheus_client.Gauge:
        """Return the gauge of that name, which goes up and down."""
        if name.endswith("_total"):
            raise MetricError(f"gauge {name}: _total is for counters; drop it")
        return self._metric(
            prometheus_client.Gauge,
            name,
            labels,
            lambda: prometheus_client.Gauge(name, description, labels, registry=self.collector),
        )

    def histogram(
        self,
        name: str,
        description: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = LATENCY_BUCKETS,
    ) -> series.Histogram:
        """Return the histogram of that name, which ends in the unit of what it observes."""
        if not name.endswith(tuple(f"_{unit}" for unit in _HISTOGRAM_UNITS)):
            units = ", ".join(f"_{unit}" for unit in _HISTOGRAM_UNITS)
            raise MetricError(f"histogram {name}: end its name in its unit, one of {units}")
        return self._metric(
            series.Histogram,
            name,
            labels,
            lambda: self._registered(series.Histogram(name, description, labels, buckets)),
        )

    def table(self, name: str, description: str, labels: Sequence[str]) -> Table:
        """Return the gauge, or the counter if it ends in _total, that is replaced as a whole."""
        return self._metric(
            Table, name, labels, lambda: self._registered(Table(name, description, labels))
        )

    def value(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        """Return the present value of one sample, None when there is none yet."""
        return self.collector.get_sample_value(name, dict(labels or {}))

    def described(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return the kind and the labels of every metric by its name, without the interpreter's."""
        return {name: (_kind(metric), labels) for name, (metric, labels) in self._known.items()}

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics as text and its content type, as the scraper accepts it."""
        encode, content_type = exposition.choose_encoder(accept)
        return encode(self.collector), content_type

    def _registered(self, metric: _Collector) -> _Collector:
        self.collector.register(metric)
        return metric

    def _metric(
        self,
        kind: type[_Metric],
        name: str,
        labels: Sequence[str],
        create: Callable[[], _Metric],
    ) -> _Metric:
        known, names = self._known.get(name, (None, ()))
        if known is not None:
            if not isinstance(known, kind) or names != tuple(labels):
                raise MetricError(
                    f"metric {name}: already a {_kind(known)} with labels"
                    f" {list(names)}; use another name or the same type and labels"
                )
            return known
        _check(name, labels)
        metric = create()
        self._known[name] = (metric, tuple(labels))
        return metric


def _kind(metric: object) -> str:
    return metric.kind if isinstance(metric, Table) else type(metric).__name__.lower()


def _check(name: str, labels: Sequence[str]) -> None:
    if not _NAME.fullmatch(name):
        raise MetricError(f"metric {name}: names look like koord_<part>_<what>[_<unit>][_total]")
    if name.endswith(_RESERVED_ENDINGS):
        raise MetricError(f"metric {name}: the ending _{name.rpartition('_')[2]} is reserved")
    unit = name.removesuffix("_total").rpartition("_")[2]
    if unit in _BASE_UNITS:
        raise MetricError(f"metric {name}: use the base unit {_BASE_UNITS[unit]}, not {unit}")
    for label in labels:
        if not _LABEL.fullmatch(label) or label in _RESERVED_LABELS:
            raise MetricError(f"metric {name}: label {label} is reserved or not snake_case")
