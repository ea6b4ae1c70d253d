"""What is predicted of pods, and what may be lent because of it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.store import peaks
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.usage import histogram

NOW = 1.75e9
DAY = 86_400.0
GIB = 1 << 30
PLENTY = peaks.Amount(64_000, 256 * GIB)


def trained(used, minutes=60, rules=None, start=NOW, node=None):
    models = peaks.Models(rules or peaks.Rules())
    for minute in range(minutes):
        models.train(peaks.Round(start + 60 * minute, used, node))
    return models


def one(cores=1.0, size=GIB, band=qos.Band.PROD):
    return {"a": (peaks.Sample(cores, size), band)}


def pod(**changes):
    asked = peaks.Amount(4000, 4 * GIB)
    return msgspec.structs.replace(peaks.Lender("a", qos.Band.PROD, asked, 2 * DAY), **changes)


def test_a_pod_lends_what_it_requests_beyond_its_peak_and_a_margin():
    found = peaks.forecast(trained(one(), node=peaks.Sample(1.0, GIB)), PLENTY, [pod()])
    peak = 1.1 * 1.05
    assert 4000 - 1000 * peak - 60 <= found.reclaimable.cpu <= 4000 - 1100
    assert 4 * GIB - GIB * peak - 6.1e6 <= found.reclaimable.memory <= 4 * GIB - 1.1 * GIB
    assert found.peak.cpu >= 1100


@pytest.mark.parametrize(
    ("changed", "counted"),
    [
        ({"age_seconds": 3600.0}, True),
        ({"age_seconds": DAY}, True),
        ({"ending": True}, False),
        ({"finished": True}, False),
        ({"band": qos.Band.BATCH}, False),
        ({"band": qos.Band.MID}, False),
    ],
    ids=["young", "a day old", "ending", "finished", "batch", "mid"],
)
def test_what_lends_nothing(changed, counted):
    found = peaks.forecast(trained(one(cores=0.1)), PLENTY, [pod(**changed)])
    assert found.reclaimable == peaks.NOTHING
    # A pod of which too little is known is taken for what it requests.
    assert (found.peak.cpu == 4000) == counted


def test_a_pod_without_figures_stays_out_of_both_sums():
    models = trained({}, node=peaks.Sample(0.0, 0.0))
    assert peaks.unknown(models, pod())
    found = peaks.forecast(models, PLENTY, [pod()])
    assert found.reclaimable == peaks.NOTHING
    assert found.peak == peaks.Amount(4000, 4 * GIB)


def test_nothing_is_promised_beyond_what_the_node_offers():
    small = peaks.Amount(1500, 2 * GIB)
    found = peaks.forecast(trained(one(), node=peaks.Sample(1.0, GIB)), small, [pod()])
    assert found.reclaimable.cpu <= 1500 - 1100
    assert found.reclaimable.memory <= 2 * GIB - 1.1 * GIB


@pytest.mark.parametrize(
    ("models", "offered"),
    [(peaks.Models(peaks.Rules()), PLENTY), (trained(one()), None)],
    ids=["untrained", "unknown node"],
)
def test_what_cannot_be_told_is_said(models, offered):
    found = peaks.forecast(models, offered, [pod()])
    assert found.reclaimable is None
    assert found.problem


def test_the_system_is_what_pods_do_not_account_for():
    models = trained(one(2.0, GIB), node=peaks.Sample(5.0, 3 * GIB))
    assert 3000 <= models.get(peaks.SYSTEM).peak().cpu <= 3200
    assert 2 * GIB <= models.get(peaks.SYSTEM).peak().memory <= 2.2 * GIB


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 30 * DAY, -30 * DAY])
def test_a_clock_that_is_set_does_not_spoil_what_was_learned(jump):
    models = trained(one(2.0), minutes=600)
    for minute in range(30):
        models.train(peaks.Round(NOW + 36_000 + jump + 60 * minute, one(2.0)))
    assert 2000 <= models.get("a").peak().cpu <= 2200
    for minute in range(3000):
        models.train(peaks.Round(NOW + 40_000 + jump + 60 * minute, one(0.5)))
    assert models.get("a").peak().cpu <= 2200


def test_a_clock_set_back_far_does_not_freeze_a_model():
    models = trained(one(8.0), minutes=60, start=NOW + 3650 * DAY)
    for minute in range(5 * 1440):
        models.train(peaks.Round(NOW + 60 * minute, one(0.5)))
    assert models.get("a").peak().cpu <= 600


def test_a_figure_that_is_none_is_not_learned():
    models = trained({"a": (peaks.Sample(float("nan"), GIB), qos.Band.PROD)})
    assert "a" not in models
    assert models.get(peaks.band_model(qos.Band.PROD)).peak().cpu == 25


def test_models_of_pods_that_went_expire():
    models = trained(one())
    models.train(peaks.Round(NOW + 3 * DAY, {}, peaks.Sample(1.0, GIB)))
    assert models.expired(NOW + 3 * DAY) == ["a"]
    assert len(models) == len(peaks.SHARED)


def test_models_from_the_future_expire_as_well():
    models = trained(one(), start=NOW + 100 * DAY)
    models.train(peaks.Round(NOW, {}, peaks.Sample(1.0, GIB)))
    assert models.expired(NOW) == ["a"]


def test_the_number_of_models_is_bounded():
    many = {str(n): (peaks.Sample(1.0, GIB), qos.Band.PROD) for n in range(peaks.MOST_MODELS + 50)}
    models = trained(many, minutes=1)
    assert len(models) <= peaks.MOST_MODELS + len(peaks.SHARED)
    assert peaks.SYSTEM in models


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e12)), min_size=1, max_size=30))
def test_a_checkpoint_keeps_what_was_learned(samples):
    models = peaks.Models(peaks.Rules())
    for minute, sample in enumerate(samples):
        used = {"a": (peaks.Sample(*sample), qos.Band.PROD)}
        models.train(peaks.Round(NOW + 60 * minute, used))
    written = json.loads(json.dumps(models.get("a").written("a")))
    again = peaks.read("a", written, peaks.Rules())
    assert again.written("a") == written


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: None,
        lambda body: [],
        lambda body: {**body, "UID": "b"},
        lambda body: {**body, "LastUpdated": 3},
        lambda body: {**body, "CPU": None},
        lambda body: {**body, "Memory": {"referenceTimestamp": "x"}},
        lambda body: {key: value for key, value in body.items() if key != "LastUpdated"},
    ],
)
def test_a_damaged_checkpoint_is_refused(damage):
    body = trained(one()).get("a").written("a")
    with pytest.raises(histogram.HistogramError):
        peaks.read("a", damage(body), peaks.Rules())


@pytest.mark.parametrize(
    ("annotation", "cpu"),
    [(None, 8000), ('{"cpu":"4","memory":"1Gi"}', 4000), ("nonsense", 8000), ('{"cpu":"x"}', 8000)],
)
def test_a_node_offers_what_it_had_before_amplification(node, annotation, cpu):
    key = "node.koordinator.sh/raw-allocatable"
    annotations = {} if annotation is None else {key: annotation}
    annotated = core.Node(
        metadata=core.ObjectMeta(name="n", annotations=annotations), status=node.status
    )
    assert peaks.offered(annotated).cpu == cpu
    assert peaks.offered(None) is None


def test_a_node_that_says_nonsense_offers_nothing_known():
    status = core.NodeStatus(allocatable={"cpu": "many", "memory": "1Gi"})
    assert peaks.offered(core.Node(status=status)) is None


def test_a_pod_is_looked_at_as_a_lender(new_pod):
    seen = peaks.lender(new_pod("a"), NOW)
    assert seen.request == peaks.Amount(1000, GIB)
    assert (seen.uid, seen.band, seen.age_seconds) == ("a", qos.Band.PROD, 0.0)


@pytest.mark.parametrize("created", [None, "", "yesterday", "2026-13-01T00:00:00Z", "9" * 5000])
def test_a_pod_that_does_not_say_how_old_it_is_counts_as_new(new_pod, created):
    pod = new_pod("p")
    meta = msgspec.structs.replace(pod.metadata, creation_timestamp=created)
    assert peaks.lender(msgspec.structs.replace(pod, metadata=meta), 1e9).age_seconds == 0.0
