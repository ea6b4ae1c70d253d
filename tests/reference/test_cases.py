"""A listed difference answers for the cases that it is about, and excuses nothing else."""

import json

import pytest

from tests.domain.cluster_settings import test_vectors
from tests.reference import cases, differences

FILE = "made"
EVEN = cases.Difference(
    "even numbers are doubled here",
    lambda case, _: case.given["n"] * 2 if case.given["n"] % 2 == 0 else cases.UNSTATED,
)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Cases of numbers, of which the reference says what they are."""
    lines = [json.dumps({"in": {"n": n}, "out": {"is": n}}) for n in range(4)]
    (tmp_path / f"{FILE}.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(cases, "_HERE", tmp_path)
    monkeypatch.setattr(cases, "_NAMED", None)


def recorded(case):
    return case.expected["is"]


def test_a_difference_supplies_the_answer(made):
    def answer(case):
        n = case.given["n"]
        return n * 2 if n % 2 == 0 else n

    counted = cases.check(FILE, answer, recorded, {"even": EVEN})
    assert counted == {"": 3, "even": 1}


@pytest.mark.parametrize("wrong", [0, 2, 3, 5])
def test_no_other_answer_is_excused(made, wrong):
    """Neither a third answer nor the recorded one where the difference states another."""

    def answer(case):
        return wrong if case.given["n"] == 2 else case.given["n"]

    with pytest.raises(AssertionError, match="1 of made differ"):
        cases.check(FILE, answer, recorded, {"even": EVEN})


def test_an_idle_difference_is_named(made):
    idle = cases.Difference("never", lambda case, _: cases.UNSTATED)
    with pytest.raises(AssertionError, match="answer nothing any more"):
        cases.check(FILE, recorded, recorded, {"idle": idle})


def requests(**classes):
    parts = {name: {"networkQOS": part} for name, part in classes.items()}
    return json.dumps({"clusterStrategy": parts})


# No committed case shows this difference, so it is held against the review here.
NETWORK = {
    "amounts that fit": (requests(lsClass={"ingressRequest": "50M"}), "100M", True),
    "amounts above the bandwidth": (requests(lsClass={"ingressRequest": "50M"}), "10M", False),
    "no bandwidth": (requests(lsClass={"ingressRequest": "50M"}), "0", True),
    "percentages that fit": (
        requests(lsClass={"egressRequest": 60}, beClass={"egressRequest": 40}), "1M", True,
    ),
    "percentages above 100": (
        requests(lsClass={"egressRequest": 60}, beClass={"egressRequest": 41}), "1M", False,
    ),
    "both kinds": (
        requests(lsClass={"egressRequest": 60}, beClass={"ingressRequest": "1M"}), "9M", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "bandwidth", "allowed"), NETWORK.values(), ids=NETWORK)
def test_network_amounts_are_stated(settings, bandwidth, allowed):
    system = json.dumps({"clusterStrategy": {"totalNetworkBandwidth": bandwidth}})
    case = cases.Case(
        "made",
        {"data": {"resource-qos-config": settings, "system-config": system}, "nodes": []},
        {"allowed": False, "error": "too much"},
    )
    stated = differences.of("configmap_validation")["network amounts"].stated
    due = stated(case, {"allowed": False, "reason": "ConfigParamInvalid"})
    assert due["allowed"] is allowed
    assert test_vectors.answer(case) == due
