import random

import pytest

from api import names
from api.koordinator.metadata import qos
from descheduler.framework.pods import pod_order
from tests.descheduler import builders

_BAND = names.LABEL_PRIORITY_CLASS
_QOS = names.LABEL_QOS
_DELETION = names.ANNOTATION_POD_DELETION_COST
_EVICTION = names.ANNOTATION_EVICTION_COST


def _named(parts):
    return [builders.pod(f"p{number}", "n", **fields) for number, fields in enumerate(parts)]


@pytest.mark.parametrize(
    "first_to_last",
    [
        pytest.param(
            [
                *({"labels": {_BAND: f"koord-{b}"}} for b in ("free", "batch", "mid", "prod")),
                {"kubernetes_qos": ""},
            ],
            id="priority class",
        ),
        pytest.param([{"priority": value} for value in (9000, 9100, 9999)], id="priority"),
        pytest.param(
            [
                {"priority": 0, "kubernetes_qos": "BestEffort"},
                {"priority": 100_000, "labels": {_BAND: "koord-batch"}},
                {"priority": 7500},
                {"priority": 9999},
                {"priority": 10_000, "kubernetes_qos": "BestEffort"},
                {"priority": 100_000, "kubernetes_qos": "BestEffort"},
            ],
            id="above all bands as production, unless a label says otherwise",
        ),
        pytest.param(
            [
                {"kubernetes_qos": each, "labels": {_BAND: "koord-prod"}}
                for each in ("BestEffort", "Burstable", "Guaranteed")
            ],
            id="QoS class of Kubernetes",
        ),
        pytest.param(
            [{"qos": each, "priority": 9000} for each in ("BE", "", "LSR", "SYSTEM")],
            id="QoS class, LS where a Burstable pod has none",
        ),
        pytest.param(
            [{"annotations": {_DELETION: text}} for text in ("-5", "none", "7")],
            id="deletion cost, 0 where it is no number",
        ),
        pytest.param(
            [{"annotations": {_EVICTION: text}} for text in ("-1", "+1", "1", "2147483647")],
            id="eviction cost, 0 where it is no number",
        ),
        pytest.param(
            [
                {"annotations": {_DELETION: "1", _EVICTION: "9"}},
                {"annotations": {_DELETION: "2", _EVICTION: "1"}},
            ],
            id="deletion cost before eviction cost",
        ),
        pytest.param([{"created": 300.0}, {"created": 200.0}], id="newest first"),
        pytest.param([{}, {}, {}], id="by name where all is equal"),
    ],
)
def test_pods_leave_in_order(first_to_last):
    for fields in first_to_last:
        if "qos" in fields:
            fields["qos"] = qos.QoS(fields["qos"])
    pods = _named(first_to_last)
    for seed in range(5):
        shuffled = random.Random(seed).sample(pods, len(pods))
        assert [pod.name for pod in pod_order.ordered(shuffled)] == [pod.name for pod in pods]


def test_what_helps_most_leaves_first_and_what_was_not_measured_last():
    pods = _named([{"created": 100.0}, {"created": 200.0}, {"created": 300.0}])
    scores = {"uid-p0": 0.5, "uid-p1": 1.7}
    assert [pod.name for pod in pod_order.ordered(pods, scores)] == ["p1", "p0", "p2"]


def test_costs_count_before_usage():
    cheap, hungry = _named([{"annotations": {_EVICTION: "-1"}}, {}])
    assert pod_order.ordered([hungry, cheap], {hungry.uid: 2.0, cheap.uid: 0.1}) == [cheap, hungry]


@pytest.mark.parametrize("text", ["9" * 5000, "\x00", "0x10", "-", " 1"])
def test_hostile_costs_count_as_none(text):
    pods = _named([{"annotations": {_DELETION: text, _EVICTION: text}}, {}])
    assert pod_order.ordered(reversed(pods)) == pods
