"""Decaying histograms agree with the recorded ones, step by step."""

from typing import Any

import pytest

from api.wire import durations
from domain.usage import histogram
from tests.domain.usage import linear_buckets
from tests.reference import cases

SHARES = {"p60": 0.6, "p90": 0.9, "p95": 0.95, "p98": 0.98, "max": 1.0}
Row = list[Any]


def made(options: dict[str, Any]) -> histogram.Histogram:
    scheme: histogram.Buckets = (
        linear_buckets.Linear(options["maxValue"], options["bucketSize"])
        if options["type"] == "linear"
        else histogram.Exponential(
            options["maxValue"], options["firstBucketSize"], options["ratio"]
        )
    )
    return histogram.Histogram(scheme, options["epsilon"], options.get("halfLifeSeconds")), scheme


class Played:
    """A histogram to which recorded steps are done."""

    def __init__(self, options):
        self.options = options
        self.histogram, self.scheme = made(options)
        self.kept = None

    def step(self, step) -> Row:
        match step["op"]:
            case "add":
                self.histogram.add(step["value"], step["weight"], step["unixSeconds"])
            case "subtract":
                self.histogram.subtract(step["value"], step["weight"], step["unixSeconds"])
            case "percentile":
                return [self.histogram.empty, *self.histogram.percentiles(step["percentiles"])]
            case "checkpoint":
                self.kept = self.histogram.checkpoint().written()
                return checkpoint(self.kept)
            case "reload":
                self.histogram, _ = made(self.options)
                self.histogram.restore(histogram.read(self.kept))
        return []


def checkpoint(written: dict[str, Any]) -> Row:
    weights = written.get("bucketWeights", {})
    row: Row = [durations.timestamp(written["referenceTimestamp"]), "totalWeight" in written]
    row += [written.get("totalWeight", 0)]
    for bucket in sorted(weights, key=int):
        row += [int(bucket), weights[bucket]]
    return row


def answer(case: cases.Case) -> Row:
    played = Played(case.given["options"])
    row: Row = [played.scheme.count]
    row += [played.scheme.start(index) for index, _ in case.expected["bucketStarts"]]
    for step in case.given["steps"]:
        row += played.step(step)
    return row + played.histogram.percentiles(SHARES.values())


def expected(case: cases.Case) -> Any:
    out = case.expected
    row: Row = [out["numBuckets"], *(start for _, start in out["bucketStarts"])]
    for step in out["steps"]:
        if "values" in step:
            row += [step["empty"], *step["values"]]
        elif "referenceTimestamp" in step:
            row += checkpoint(step)
    row += [out["final"][name] for name in SHARES]
    return pytest.approx(row, rel=1e-9, abs=1e-300)


@pytest.mark.vectors
def test_histograms_agree_with_the_recorded_ones():
    cases.check("histogram", answer, expected, {})
