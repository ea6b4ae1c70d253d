"""Nodes that offer more than they have: the ratios, and what a kubelet's report becomes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import base, core, names, quantity
from domain import amplification
from tests.reference import cases, differences


@pytest.mark.parametrize(
    ("enable", "written", "normalization", "text", "problem"),
    [
        pytest.param(False, {"cpu": 2.0}, 1.0, "", "", id="off"),
        pytest.param(True, {}, 1.0, "", "", id="nothing-set"),
        pytest.param(True, {"cpu": 1.5}, 1.0, '{"cpu":1.50}', "", id="set"),
        pytest.param(True, {"cpu": 1.5}, 1.2, '{"cpu":1.80}', "", id="faster-counts-on-top"),
        pytest.param(False, {"cpu": 1.5}, 1.2, '{"cpu":1.20}', "", id="faster-counts-alone"),
        pytest.param(
            True, {"memory": 1.255, "cpu": 2.0}, 1.0, '{"cpu":2.00,"memory":1.25}', "", id="sorted"
        ),
        pytest.param(True, {"memory": 0.5}, 1.0, "", "memory: 0.5 must be", id="too-small"),
        pytest.param(True, {"cpu": 0.5}, 1.0, "", "cpu: 0.5 must be", id="cpu-too-small"),
        pytest.param(True, {"cpu": -1.0}, 1.5, '{"cpu":1.50}', "", id="only-the-faster-one"),
    ],
)
def test_ratios(enable, written, normalization, text, problem) -> None:
    found = amplification.ratios(enable, written, normalization)
    assert found.text == text
    assert problem in found.problem


def amplified(given_: dict[str, Any]) -> dict[str, Any]:
    """The reaction to an update, in the shape of the recorded cases."""
    before, after = (msgspec.convert(given_[key], core.Node) for key in ("oldNode", "node"))
    try:
        change = amplification.amplified(before, after)
    except base.ReadError:
        return {"error": True}
    annotations = dict(after.metadata.annotations)
    allocatable = dict(after.status.allocatable)
    if change is not None:
        annotations.pop(names.ANNOTATION_RAW_ALLOCATABLE, None)
        allocatable.update(change.allocatable)
        if change.raw is not None:
            annotations[names.ANNOTATION_RAW_ALLOCATABLE] = change.raw
    return {"annotations": annotations, "allocatable": _milli(allocatable)}


def _milli(written: dict[str, Any]) -> dict[str, int]:
    return {name: quantity.milli(value) for name, value in written.items()}


def _recorded(case: cases.Case) -> dict[str, Any]:
    if "error" in case.expected:
        return {"error": True}
    return {
        "annotations": case.expected["annotations"] or {},
        "allocatable": _milli(case.expected["allocatable"] or {}),
    }


@pytest.mark.vectors
def test_recorded_cases() -> None:
    cases.check(
        "node_amplification",
        lambda case: amplified(case.given),
        _recorded,
        differences.of("node_amplification"),
    )


RATIO = names.ANNOTATION_AMPLIFICATION


def test_absurd_ratios_offer_no_more_than_can_be_written() -> None:
    node = core.Node(
        metadata=core.ObjectMeta(annotations={RATIO: '{"cpu":1e308}'}),
        status=core.NodeStatus(allocatable={"cpu": "64"}),
    )
    change = amplification.amplified(node, node)
    assert change is not None
    assert quantity.milli(change.allocatable["cpu"]) == 2**62


@given(
    reported=st.integers(1, 512_000),
    ratio=st.integers(100, 500).map(lambda n: n / 100),
    others=st.integers(1, 3),
)
def test_what_others_write_does_not_amplify_again(reported: int, ratio: float, others: int) -> None:
    """A kubelet reports once; every later write of somebody else leaves the amounts alone."""
    marks = {RATIO: base.encoded({"cpu": ratio})}
    node: dict[str, Any] = {
        "metadata": {"name": "n", "annotations": marks},
        "status": {"allocatable": {"cpu": f"{reported}m"}},
    }
    old = {"metadata": {"name": "n"}, "status": {"allocatable": {}}}
    first = _applied(old, node)
    assert quantity.milli(first["status"]["allocatable"]["cpu"]) == int(reported * ratio)
    now = first
    for _ in range(others):
        now = _applied(now, now)
        assert now == first


def _applied(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    change = amplification.amplified(
        msgspec.convert(old, core.Node), msgspec.convert(new, core.Node)
    )
    assert change is not None
    annotations = {
        **new["metadata"]["annotations"],
        names.ANNOTATION_RAW_ALLOCATABLE: change.raw,
    }
    allocatable = {**new["status"]["allocatable"], **change.allocatable}
    return {
        "metadata": {"name": "n", "annotations": annotations},
        "status": {"allocatable": allocatable},
    }
