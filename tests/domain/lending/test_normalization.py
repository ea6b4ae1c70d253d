"""The ratio by which the cpu of a node is faster than that of others."""

import pytest

from api import names
from api.koordinator.metadata import node_payloads
from api.koordinator.settings import configuration
from domain.lending import normalization

MODEL = configuration.ModelRatios(
    base_ratio=1.1,
    hyper_thread_enabled_ratio=1.2,
    turbo_enabled_ratio=1.3,
    hyper_thread_turbo_enabled_ratio=1.456,
)
MODELS = {"fast": MODEL, "partly": configuration.ModelRatios(base_ratio=2)}


def info(model: str = "fast", *, threads: bool = False, turbo: bool = False):
    return node_payloads.CpuBasicInfo(
        cpu_model=model, hyper_thread_enabled=threads, turbo_enabled=turbo
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(info(), "1.10", id="base"),
        pytest.param(info(threads=True), "1.20", id="hyper-threading"),
        pytest.param(info(turbo=True), "1.30", id="turbo"),
        pytest.param(info(threads=True, turbo=True), "1.46", id="both-with-two-decimals"),
        pytest.param(info("partly"), "2.00", id="state-of-the-model-that-is-listed"),
        pytest.param(info("partly", turbo=True), "1.50", id="state-that-is-not-listed"),
        pytest.param(info("slow"), "1.50", id="model-that-is-not-listed"),
    ],
)
def test_ratio_by_model(found, expected: str) -> None:
    result = normalization.settled(True, 1.5, MODELS, {}, found)
    assert (result.text, result.problem) == (expected, "")


@pytest.mark.parametrize(
    ("enable", "default", "label", "found", "text", "problem"),
    [
        pytest.param(False, 1.5, "", info(), "1.00", "", id="off"),
        pytest.param(True, 1.5, "false", info(), "1.00", "", id="label-switches-off"),
        pytest.param(False, 1.5, "true", info(), "1.10", "", id="label-switches-on"),
        pytest.param(True, 1.5, "yes", info(), "", "neither true", id="unreadable-label"),
        pytest.param(True, 1.5, "", None, "", "has not said", id="nothing-known"),
        pytest.param(True, None, "", info("slow"), "", "list the model", id="no-ratio"),
        pytest.param(True, 5.1, "", info("slow"), "", "must lie in 1..5", id="too-large"),
        pytest.param(True, 0.9, "", info("slow"), "", "must lie in 1..5", id="too-small"),
        pytest.param(True, float("nan"), "", info("slow"), "", "must lie in", id="no-number"),
        pytest.param(True, 5.0, "", info("slow"), "5.00", "", id="largest"),
    ],
)
def test_whether_a_node_is_normalized(enable, default, label, found, text, problem) -> None:
    marks = {names.LABEL_CPU_NORMALIZATION: label} if label else {}
    result = normalization.settled(enable, default, MODELS, marks, found)
    assert result.text == text
    assert problem in result.problem
    assert bool(result.problem) is not bool(text)


@pytest.mark.parametrize(
    ("written", "wanted", "expected"),
    [
        pytest.param(None, "1.00", True, id="appears"),
        pytest.param("1.00", "1.00", False, id="same"),
        pytest.param("1.20", "1.205", False, id="hardly"),
        pytest.param("1.20", "1.25", True, id="changed"),
        pytest.param("fast", "1.00", True, id="unreadable"),
        pytest.param("nan", "1.00", True, id="no-number"),
    ],
)
def test_is_news(written: str | None, wanted: str, expected: bool) -> None:
    assert normalization.is_news(written, wanted) is expected
