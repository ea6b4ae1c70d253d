"""QoS classes and priority bands follow the published tables."""

import msgspec
import pytest

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests import builders


def pod(**given):
    return msgspec.convert(builders.a_pod(**given), core.Pod)


@pytest.mark.parametrize("label", ["LSE", "LSR", "LS", "BE", "SYSTEM"])
def test_the_five_classes(label):
    assert qos.qos_of({names.LABEL_QOS: label}) == label


@pytest.mark.parametrize("label", ["be", "other", ""])
def test_any_other_label_is_no_class(label):
    assert qos.qos_of({names.LABEL_QOS: label}) is qos.QoS.NONE
    assert qos.qos_of({}) is qos.QoS.NONE


@pytest.mark.parametrize(
    ("priority", "band"),
    [
        (9000, "koord-prod"),
        (9999, "koord-prod"),
        (10000, ""),
        (8999, ""),
        (8000, ""),
        (7999, "koord-mid"),
        (7000, "koord-mid"),
        (6000, ""),
        (5999, "koord-batch"),
        (5000, "koord-batch"),
        (3999, "koord-free"),
        (3000, "koord-free"),
        (2999, ""),
        (0, ""),
        (None, ""),
        (2000000000, ""),
    ],
)
def test_bands_by_value(priority, band):
    assert qos.band_of(priority, {}) == band


def test_a_present_but_unknown_class_label_hides_the_value():
    assert qos.band_of(9500, {names.LABEL_PRIORITY_CLASS: "gold"}) is qos.Band.NONE
    assert qos.band_of(9500, {names.LABEL_PRIORITY_CLASS: "koord-free"}) is qos.Band.FREE


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, None, "BestEffort"),
        ({"cpu": "0"}, None, "BestEffort"),
        ({"cpu": "0", "memory": "0"}, {"memory": "1Gi"}, "Burstable"),
        ({"cpu": "0"}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
        ({"kubernetes.io/batch-cpu": "1k"}, {"kubernetes.io/batch-cpu": "1k"}, "BestEffort"),
        ({"cpu": "1"}, None, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1000m", "memory": "1Gi"}, {"cpu": 1, "memory": "1024Mi"}, "Guaranteed"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
    ],
)
def test_kubernetes_class_is_computed_while_the_status_is_empty(requests, limits, expected):
    assert qos.kubernetes_qos(pod(requests=requests, limits=limits)) == expected


def test_every_container_must_be_guaranteed():
    equal = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    raw = builders.a_pod()
    raw["spec"]["containers"] = [{"name": "a", "resources": equal}, {"name": "b"}]
    assert qos.kubernetes_qos(msgspec.convert(raw, core.Pod)) == "Burstable"
    raw["spec"]["containers"] = [{"name": "a", "resources": equal}]
    assert qos.kubernetes_qos(msgspec.convert(raw, core.Pod)) == "Guaranteed"
    raw["spec"]["initContainers"] = [{"name": "i"}]
    assert qos.kubernetes_qos(msgspec.convert(raw, core.Pod)) == "Burstable"


@pytest.mark.parametrize(
    ("given", "kind", "band", "priority"),
    [
        ({"requests": {}}, "BE", "koord-batch", 5500),
        ({}, "LS", "koord-prod", 9500),
        ({"labels": {names.LABEL_QOS: "LSE"}}, "LSE", "koord-prod", 9500),
        ({"priority": 7100}, "LS", "koord-mid", 7100),
        ({"priority": 0}, "LS", "koord-prod", 9500),
        ({"priority": 100000}, "LS", "koord-prod", 100000),
        ({"labels": {names.LABEL_PRIORITY_CLASS: "koord-free"}}, "LS", "koord-free", 3500),
    ],
)
def test_classes_with_defaults(given, kind, band, priority):
    made = pod(**given)
    assert (qos.of_pod(made), qos.band_of_pod(made)) == (kind, band)
    labels, kubernetes = made.metadata.labels, qos.kubernetes_qos(made)
    assert qos.band_with_default(made.spec.priority, labels, kubernetes) == band
    assert qos.priority_with_default(made.spec.priority, labels, kubernetes) == priority


def test_legal_pairs_are_the_published_table():
    denied = {(one, other) for one in qos.QoS for other in qos.Band if not qos.legal(one, other)}
    lsr = {(qos.QoS.LSR, band) for band in qos.Band if band is not qos.Band.PROD}
    assert denied == lsr | {(qos.QoS.BE, qos.Band.PROD), (qos.QoS.BE, qos.Band.NONE)}


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("-5", -5), ("+3", 3), ("0x1f", 31), ("017", 15), ("0b11", 3), ("0o17", 15)],
)
def test_sub_priority(text, value):
    assert qos.sub_priority({names.LABEL_PRIORITY: text}) == value


@pytest.mark.parametrize("text", ["", "x", "08", "1.5", " 1", "--1", "2147483648", "0"])
def test_a_bad_sub_priority_counts_as_none(text):
    assert qos.sub_priority({names.LABEL_PRIORITY: text}) == 0


def test_translation_of_native_resources():
    assert qos.TRANSLATION[qos.Band.BATCH] == {"cpu": names.BATCH_CPU, "memory": names.BATCH_MEMORY}
    assert qos.Band.FREE not in qos.TRANSLATION
