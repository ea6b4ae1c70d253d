"""Counters and histograms of our own are exported as those of prometheus_client are."""

import concurrent.futures
import subprocess
import sys
from collections.abc import Sequence

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import core, exposition, registry

from process.runtime import series

BUCKETS = (0.0005, 0.25, 1.0, 30.0)
TEXTS = ("", "application/openmetrics-text; version=1.0.0")
amounts = st.one_of(st.sampled_from((0.0, *BUCKETS)), st.floats(0, 100), st.integers(0, 40))


class At(registry.Collector):
    """Shows a metric as if every series had counted since the same moment."""

    def __init__(self, metric: registry.Collector) -> None:
        self._metric = metric

    def collect(self) -> list[core.Metric]:
        found = list(self._metric.collect())
        for family in found:
            family.samples = [
                one._replace(value=1.5) if one.name.endswith("_created") else one
                for one in family.samples
            ]
        return found


def shown(metric: registry.Collector) -> list[bytes]:
    collector = registry.CollectorRegistry()
    collector.register(At(metric))
    return [exposition.choose_encoder(accept)[0](collector) for accept in TEXTS]


@given(counted=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9))), bare=st.booleans())
def test_a_counter(counted: Sequence[tuple[str, float]], bare: bool) -> None:
    labels = () if bare else ("verb", "code")
    ours = series.Counter("koord_a_calls_total", 'Calls,\n"all".', labels)
    theirs = prometheus_client.Counter(
        "koord_a_calls_total", 'Calls,\n"all".', labels, registry=None
    )
    assert shown(ours) == shown(theirs)
    for verb, amount in counted:
        for one in (ours, theirs):
            (one if bare else one.labels(verb, 200)).inc(amount)
            (one if bare else one.labels(verb, 404)).inc()
    assert shown(ours) == shown(theirs)


@given(observed=st.lists(st.tuples(st.sampled_from("ab"), amounts)), bare=st.booleans())
def test_a_histogram(observed: Sequence[tuple[str, float]], bare: bool) -> None:
    labels = () if bare else ("verb",)
    ours = series.Histogram("koord_a_seconds", "Time.", labels, BUCKETS)
    theirs = prometheus_client.Histogram(
        "koord_a_seconds", "Time.", labels, buckets=BUCKETS, registry=None
    )
    assert shown(ours) == shown(theirs)
    for verb, amount in observed:
        for one in (ours, theirs):
            (one if bare else one.labels(verb)).observe(amount)
    assert shown(ours) == shown(theirs)


@pytest.mark.parametrize("setting", ["", "True"])
def test_the_start_of_a_series_is_left_out_where_the_library_leaves_it_out(setting: str) -> None:
    program = """if True:
        import prometheus_client
        from process.runtime import series
        for one in (
            series.Counter("koord_a_calls_total", "", ()),
            prometheus_client.Counter("koord_a_calls_total", "", registry=None),
            series.Histogram("koord_a_seconds", "", (), (1,)),
            prometheus_client.Histogram("koord_a_seconds", "", buckets=(1,), registry=None),
        ):
            print(*(sample.name for family in one.collect() for sample in family.samples))
    """
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={"PROMETHEUS_DISABLE_CREATED_SERIES": setting, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert ("koord_a_calls_created" in told[0]) is (not setting)


def test_series_are_the_same_every_time() -> None:
    counter = series.Counter("koord_a_calls_total", "Calls.", ("code",))
    assert counter.labels(200) is counter.labels("200")
    with pytest.raises(ValueError, match="2 values"):
        counter.labels("a", "b")
    with pytest.raises(ValueError, match="0 values"):
        counter.inc()


def test_a_counter_only_grows() -> None:
    with pytest.raises(ValueError, match="only grows"):
        series.Counter("koord_a_calls_total", "Calls.").inc(-1)


@pytest.mark.parametrize("buckets", [(), (1.0, 0.5), (-1.0, 1.0)])
def test_bounds_grow_from_zero(buckets: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="koord_a_seconds"):
        series.Histogram("koord_a_seconds", "Time.", (), buckets)


def test_nothing_is_lost_between_threads() -> None:
    counter = series.Counter("koord_a_calls_total", "Calls.", ("verb",))
    times = series.Histogram("koord_a_seconds", "Time.", (), (0.5,))

    def work(_: int) -> None:
        for _ in range(2000):
            counter.labels("filter").inc()
            times.observe(1.0)

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert counter.labels("filter").value == 8000
    assert times.labels().read() == ([0, 8000], 8000.0)
