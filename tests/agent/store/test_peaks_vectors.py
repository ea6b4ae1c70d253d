"""Predicted peaks and what they leave agree with the recorded ones."""

from typing import Any

import msgspec
import pytest

from agent.store import peaks
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests.reference import cases


class Node:
    """A node whose agent was trained by the rounds of a case."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.models = peaks.Models(
            peaks.Rules(
                safety_margin_percent=given["safetyMarginPercent"],
                cold_start_seconds=given["coldStartSeconds"],
                cpu_half_life=given["cpuHalfLifeSeconds"],
                memory_half_life=given["memoryHalfLifeSeconds"],
            )
        )
        node = msgspec.convert(given["node"], core.Node) if given["node"] else None
        self.offered = peaks.offered(node)
        self.lenders = [lender(entry) for entry in given["pods"]]
        pods = [msgspec.convert(entry["pod"], core.Pod) for entry in given["pods"]]
        known = {pod.metadata.name: (pod.metadata.uid, qos.band_of_pod(pod)) for pod in pods}
        for training in given["rounds"]:
            used = {
                known[name][0]: (peaks.Sample(*figures), known[name][1])
                for name, figures in training["pods"].items()
            }
            node_used = peaks.Sample(*training["node"]) if "node" in training else None
            self.models.train(peaks.Round(training["unixSeconds"], used, node_used))


def lender(entry: dict[str, Any]) -> peaks.Lender:
    found = peaks.lender(msgspec.convert(entry["pod"], core.Pod), 0.0)
    ending = bool(entry.get("deleting"))
    return msgspec.structs.replace(found, age_seconds=entry["ageSeconds"], ending=ending)


def answer(case: cases.Case) -> dict[str, Any]:
    node = Node(case.given)
    found = peaks.forecast(node.models, node.offered, node.lenders)
    return {
        "models": {uid: sorted(model.peaks()) for uid, model in node.models.items()},
        "unknown": [peaks.unknown(node.models, pod) for pod in node.lenders],
        "figures": [
            part
            for _, model in sorted(node.models.items())
            for _, amount in sorted(model.peaks().items())
            for part in amount
        ],
        "reclaimable": found.reclaimable and list(found.reclaimable),
        "peak": found.peak and list(found.peak),
    }


def expected(case: cases.Case) -> dict[str, Any]:
    out = case.expected
    figures = [
        part
        for _, peaks_ in sorted(out["predictions"].items())
        for _, amount in sorted(peaks_.items())
        for part in amount
    ]
    # A bound of a bucket may come out on either side of a whole number.
    off = 1 + 2 * len(case.given["pods"])
    return {
        "models": {uid: sorted(peaks_) for uid, peaks_ in out["predictions"].items()},
        "unknown": [bool(error) for error in out["addPodErrors"]],
        "figures": pytest.approx(figures, rel=0, abs=1),
        "reclaimable": near(out.get("reclaimable"), off),
        "peak": near(out.get("peak"), off),
    }


def near(amount: list[int] | None, off: int) -> Any:
    return None if amount is None else pytest.approx(amount, rel=0, abs=off)


@pytest.mark.vectors
def test_predictions_agree_with_the_recorded_ones():
    cases.check("peak_prediction", answer, expected, {})
