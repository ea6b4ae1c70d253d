"""What becomes of a node's status on its way to the store."""

from typing import Any

import pytest

from api import names
from webhook import review
from webhook.rules.nodes import node_amplification

RATIO = names.ANNOTATION_AMPLIFICATION
RAW = names.ANNOTATION_RAW_ALLOCATABLE
PICTURE = review.Picture((), {}, {}, draw=lambda _: 0)


def node(cpu: str | None = "8", **annotations: str) -> dict[str, Any]:
    keys = {"ratio": RATIO, "raw": RAW}
    marks = {keys[name]: value for name, value in annotations.items()}
    status = {} if cpu is None else {"allocatable": {"cpu": cpu, "pods": "110"}}
    return {"metadata": {"name": "n1", "annotations": marks}, "status": status}


def decide(old: dict[str, Any] | None, new: dict[str, Any]) -> review.Decision:
    return node_amplification.apply(review.Review("UPDATE", "", new, old), PICTURE)


def test_a_report_of_the_kubelet_is_multiplied() -> None:
    reported = node("8", ratio='{"cpu":1.5}')
    made = decide(node("12", ratio='{"cpu":1.5}', raw='{"cpu":"8"}'), reported).object
    assert made is not None
    assert made["status"]["allocatable"] == {"cpu": "12", "pods": "110"}
    assert made["metadata"]["annotations"][RAW] == '{"cpu":"8"}'
    assert reported["status"]["allocatable"]["cpu"] == "8", "what was sent is not touched"


def test_what_others_write_is_left_as_it_is() -> None:
    same = node("12", ratio='{"cpu":1.5}', raw='{"cpu":"8"}')
    assert decide(same, same).object == same


def test_without_ratios_nothing_is_remembered() -> None:
    made = decide(node("8", raw='{"cpu":"8"}'), node("8", raw='{"cpu":"8"}')).object
    assert made == {"metadata": {"name": "n1"}, "status": node("8")["status"]}


def test_a_node_without_amounts_is_left_alone() -> None:
    assert decide(None, node(None, ratio='{"cpu":1.5}')) == review.Decision()


def test_whoever_writes_bad_ratios_is_refused() -> None:
    refusal = decide(node("8"), node("8", ratio='{"cpu":"x"}')).refusal
    assert refusal is not None
    assert RATIO in refusal.message
    assert "must be a number" in refusal.message


def test_a_kubelet_that_finds_bad_ratios_may_report() -> None:
    bad = node("8", ratio="bad")
    decision = decide(bad, bad)
    assert (decision.refusal, decision.object) == (None, None)
    assert RATIO in decision.warnings[0]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"allocatable": ["x"]}, id="list"),
        pytest.param({"allocatable": {"cpu": {}}}, id="object"),
        pytest.param({"allocatable": {"cpu": "many"}}, id="no-quantity"),
    ],
)
def test_what_is_no_node_is_answered(status) -> None:
    odd = {**node("8", ratio='{"cpu":1.5}'), "status": status}
    assert node_amplification.apply(review.Review("UPDATE", "", odd, odd), PICTURE).warnings
