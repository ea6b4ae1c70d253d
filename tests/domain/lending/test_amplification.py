"""Nodes that offer more than they have: the ratios, and what a kubelet's report becomes."""

import fractions
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import annotations as payloads
from api.kubernetes import core
from api.wire import base, quantity
from domain.lending import amplification
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
    # What nobody changed stays as it was sent, which the API server stores canonically.
    stored = {name: quantity.canonical(value) for name, value in allocatable.items()}
    return {"annotations": annotations, "allocatable": stored}


def _recorded(case: cases.Case) -> dict[str, Any]:
    if "error" in case.expected:
        return {"error": True}
    return {
        "annotations": case.expected["annotations"] or {},
        "allocatable": case.expected["allocatable"] or {},
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


@pytest.mark.parametrize(
    ("written", "raw", "doubled"),
    [
        pytest.param("193553843k", "193553843k", "387107686k", id="suffix"),
        pytest.param("193553843000", "193553843k", "387107686k", id="no-suffix"),
        pytest.param(193553843000, "193553843k", "387107686k", id="number"),
        pytest.param("64Gi", "64Gi", "128Gi", id="binary"),
        pytest.param("65536Mi", "64Gi", "128Gi", id="binary-not-canonical"),
        pytest.param("1.5Gi", "1536Mi", "3Gi", id="binary-fraction"),
        pytest.param("1e3", "1e3", "2e3", id="exponent"),
        pytest.param("500Ki", "500Ki", "1000Ki", id="binary-below"),
        pytest.param("1", "1", "2", id="one-byte"),
    ],
)
def test_amounts_keep_their_notation(written, raw, doubled) -> None:
    """As a Go Quantity is written: canonical, with the suffix family in which it was read."""
    node = core.Node(
        metadata=core.ObjectMeta(annotations={RATIO: '{"memory":2}'}),
        status=core.NodeStatus(allocatable={"memory": written}),
    )
    change = amplification.amplified(core.Node(), node)
    assert change is not None
    assert change.raw == base.encoded({"memory": raw})
    assert change.allocatable == {"memory": doubled}


@given(
    amount=st.integers(1, 10**6),
    suffix=st.sampled_from(["", "k", "M", "G", "Ki", "Mi", "Gi", "m"]),
    ratio=st.integers(101, 500).map(lambda n: n / 100),
)
def test_what_is_offered_is_the_truncated_product(amount: int, suffix: str, ratio: float) -> None:
    written = f"{amount}{suffix}"
    node = core.Node(
        metadata=core.ObjectMeta(annotations={RATIO: base.encoded({"memory": ratio})}),
        status=core.NodeStatus(allocatable={"memory": written}),
    )
    change = amplification.amplified(core.Node(), node)
    assert change is not None
    # One multiplication in double precision of a number that it holds exactly, then towards zero.
    exact = fractions.Fraction(quantity.milli(written)) * fractions.Fraction(ratio)
    got = quantity.milli(change.allocatable["memory"])
    assert got == int(float(exact))
    assert abs(got - exact) <= max(1, exact / 2**52)
    true = payloads.RAW_ALLOCATABLE.read({names.ANNOTATION_RAW_ALLOCATABLE: change.raw})
    assert quantity.equal(true["memory"], written)


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
