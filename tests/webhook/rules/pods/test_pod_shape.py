"""QoS class, priority and requests of a pod must agree."""

from collections.abc import Mapping

import pytest

from api import names
from api.koordinator.metadata import qos
from tests import builders
from webhook import gates, review
from webhook.rules.pods import pod_shape

PRIORITY = {
    qos.Band.PROD: 9000,
    qos.Band.MID: 7000,
    qos.Band.BATCH: 5000,
    qos.Band.FREE: 3000,
    qos.Band.NONE: 0,
}
NO_GATES: frozenset[str] = frozenset()


def _checked(quality: str, priority: int, requests: Mapping[str, int]) -> review.Refusal | None:
    pod = builders.a_pod(labels={names.LABEL_QOS: quality}, priority=priority)
    return pod_shape.check(review.Review("CREATE", "default", pod), requests, NO_GATES)


@pytest.mark.parametrize("quality", list(qos.QoS))
@pytest.mark.parametrize("band", list(qos.Band))
def test_only_legal_pairs_pass(quality: qos.QoS, band: qos.Band) -> None:
    refusal = _checked(quality.value, PRIORITY[band], {"cpu": 2000})
    assert (refusal is None) is qos.legal(quality, band)


@pytest.mark.parametrize(
    ("quality", "cpu", "passes"),
    [
        ("LSE", 2000, True),
        ("LSE", 1500, False),
        ("LSR", 0, False),
        ("LSR", 1000, True),
        ("LS", 1500, True),
    ],
)
def test_classes_that_bind_cpus_need_whole_ones(quality: str, cpu: int, passes: bool) -> None:
    refusal = _checked(quality, 9000, {"cpu": cpu})
    assert (refusal is None) is passes
    if refusal is not None:
        assert "whole number" in refusal.message


@pytest.mark.parametrize("resource", names.BATCH_RESOURCES)
def test_batch_resources_need_the_best_effort_class(resource: str) -> None:
    refusal = _checked("LS", 9000, {resource: 1})
    assert refusal is not None
    assert f"{names.LABEL_QOS}=BE" in refusal.message
    assert _checked("BE", 5000, {resource: 1}) is None


def _changed(gates: frozenset[str], **new: str) -> review.Refusal | None:
    old = builders.a_pod(labels={names.LABEL_QOS: "BE", names.LABEL_PRIORITY: "1"}, priority=5000)
    pod = builders.a_pod(
        labels={
            names.LABEL_QOS: new.get("quality", "BE"),
            names.LABEL_PRIORITY: new.get("order", "1"),
        },
        priority=int(new.get("priority", "5000")),
    )
    return pod_shape.check(review.Review("UPDATE", "default", pod, old), {}, gates)


@pytest.mark.parametrize(
    ("new", "field"),
    [
        ({"quality": "LS"}, f"labels.{names.LABEL_QOS}"),
        ({"priority": "7000"}, "spec.priority"),
        ({"order": "2"}, f"labels.{names.LABEL_PRIORITY}"),
    ],
    ids=["class", "band", "order"],
)
def test_what_was_scheduled_by_stays(new: dict[str, str], field: str) -> None:
    refusal = _changed(NO_GATES, **new)
    assert refusal is not None
    assert any(r.startswith(f"{field}: ") and "immutable" in r for r in refusal.reasons)


def test_a_gate_lets_the_order_change() -> None:
    assert _changed(frozenset({gates.SKIP_PRIORITY}), order="2") is None
    assert _changed(NO_GATES, priority="5999") is None, "within a band the value may change"


def test_the_reserved_annotation_is_ours() -> None:
    pod = builders.a_pod(annotations={names.ANNOTATION_RESERVE_POD: "x"})
    refusal = pod_shape.check(review.Review("CREATE", "default", pod), {"cpu": 1}, NO_GATES)
    assert refusal is not None
    assert refusal.group == pod_shape.RESERVED
