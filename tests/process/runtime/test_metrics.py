"""Metrics live in their own registry and keep to the naming rules."""

from collections.abc import Callable

import prometheus_client
import pytest

from process.runtime.metrics import LabelValues, MetricError, Registry


def test_registries_share_nothing_with_each_other_or_the_global_one() -> None:
    one, two = Registry(), Registry()
    one.counter("koord_extender_calls_total", "Calls.", ["verb"]).labels("filter").inc()
    two.counter("koord_extender_calls_total", "Calls.", ["verb"])
    assert one.value("koord_extender_calls_total", {"verb": "filter"}) == 1
    assert two.value("koord_extender_calls_total", {"verb": "filter"}) is None
    assert b"koord_" not in prometheus_client.generate_latest()


def test_same_metric_asked_for_twice_is_the_same_metric() -> None:
    registry = Registry()
    first = registry.gauge("koord_kube_stores", "Stores.", ["kind"])
    assert registry.gauge("koord_kube_stores", "Stores.", ["kind"]) is first
    with pytest.raises(MetricError, match="already a gauge with labels \\['kind'\\]"):
        registry.gauge("koord_kube_stores", "Stores.")
    registry.histogram("koord_kube_list_seconds", "Lists.")
    with pytest.raises(MetricError, match="already a histogram"):
        registry.gauge("koord_kube_list_seconds", "Lists.")


@pytest.mark.parametrize(
    ("create", "message"),
    [
        pytest.param(lambda r: r.counter("koord_calls", "x"), "_total", id="counter"),
        pytest.param(lambda r: r.gauge("koord_open_total", "x"), "for counters", id="gauge"),
        pytest.param(lambda r: r.gauge("extender_open", "x"), "look like koord_", id="prefix"),
        pytest.param(lambda r: r.gauge("koord_Open", "x"), "look like koord_", id="capital"),
        pytest.param(lambda r: r.histogram("koord_filter", "x"), "its unit", id="no unit"),
        pytest.param(
            lambda r: r.counter("koord_wait_milliseconds_total", "x"), "unit seconds", id="ms"
        ),
        pytest.param(lambda r: r.gauge("koord_used_percent", "x"), "unit ratio", id="percent"),
        pytest.param(lambda r: r.gauge("koord_memory_mib", "x"), "unit bytes", id="mib"),
        pytest.param(lambda r: r.gauge("koord_a_bucket", "x"), "reserved", id="ending"),
        pytest.param(lambda r: r.gauge("koord_a_b", "x", ["le"]), "label le", id="label"),
        pytest.param(
            lambda r: r.gauge("koord_a_b", "x", ["Kind"]), "label Kind", id="capital label"
        ),
    ],
)
def test_names_that_break_the_rules(create: Callable[[Registry], object], message: str) -> None:
    registry = Registry()
    with pytest.raises(MetricError, match=message):
        create(registry)
    assert registry.exposition()[0].strip() == b""


def test_exposition_is_text_or_open_metrics() -> None:
    registry = Registry()
    registry.histogram("koord_extender_filter_seconds", "Filter.").observe(0.003)
    body, content_type = registry.exposition()
    assert content_type.startswith("text/plain")
    assert b'koord_extender_filter_seconds_bucket{le="0.005"} 1.0' in body
    body, content_type = registry.exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_interpreter_figures_are_optional() -> None:
    body, _ = Registry(interpreter=True).exposition()
    assert b"process_resident_memory_bytes" in body
    assert b"python_gc_objects_collected_total" in body


def test_every_metric_is_described_before_it_has_a_sample() -> None:
    registry = Registry(interpreter=True)
    registry.counter("koord_extender_calls_total", "Calls.", ["verb"])
    registry.gauge("koord_kube_stores", "Stores.")
    assert registry.described() == {
        "koord_extender_calls_total": ("counter", ("verb",)),
        "koord_kube_stores": ("gauge", ()),
    }


def test_a_table_is_replaced_as_a_whole() -> None:
    registry = Registry()
    table = registry.table("koord_a_waiting_ratio", "Waiting.", ["pod_name"])
    grown = registry.table("koord_a_bytes_total", "Bytes.", ["pod_name"])
    assert registry.table("koord_a_bytes_total", "Bytes.", ["pod_name"]) is grown
    assert registry.described() == {
        "koord_a_waiting_ratio": ("gauge", ("pod_name",)),
        "koord_a_bytes_total": ("counter", ("pod_name",)),
    }
    table.replace({("a",): 0.5, ("b",): 1.0})
    grown.replace({("a",): 7.0})
    assert registry.value("koord_a_waiting_ratio", {"pod_name": "b"}) == 1.0
    assert registry.value("koord_a_bytes_total", {"pod_name": "a"}) == 7.0
    table.replace({("a",): 0.25})
    assert registry.value("koord_a_waiting_ratio", {"pod_name": "b"}) is None
    with pytest.raises(MetricError, match="already a counter"):
        registry.table("koord_a_bytes_total", "Bytes.", ["other"])


def test_values_that_others_choose_make_so_many_series_and_no_more() -> None:
    values = LabelValues(2)
    assert values.of("ns", "n" * 500) == ("ns", "n" * 120)
    assert values.of("ns", "n1") == ("ns", "n1")
    assert values.of("ns", "n2") == ("other", "other")
    assert values.of("ns", "n1") == ("ns", "n1")
