"""What a forgetting histogram is good for, beyond agreeing with recorded ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.usage import histogram
from tests.domain.usage import linear_buckets

HALF_LIFE = 3600.0
NOW = 1.75e9
SCHEMES = {
    "linear": linear_buckets.Linear(100.0, 0.5),
    "exponential": histogram.Exponential(1024.0, 0.025, 1.05),
}
values = st.floats(0, 2000)


def made(scheme="exponential", half_life=HALF_LIFE):
    return histogram.Histogram(SCHEMES[scheme], 0.0001, half_life)


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@given(value=st.floats(-1, 5000))
def test_a_value_lies_in_its_bucket(scheme, value):
    bucket = scheme.find(value)
    assert 0 <= bucket < scheme.count
    if bucket:
        assert scheme.start(bucket) <= value * (1 + 1e-9)
    if bucket < scheme.count - 1:
        assert value * (1 - 1e-9) < scheme.start(bucket + 1)


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_percentile_is_at_most_one_bucket_above_the_sample(samples, share):
    known = made(half_life=None)
    for value in samples:
        known.add(value, 1.0, NOW)
    ordered, exact = sorted(samples), share * len(samples)
    low, high = (ordered[max(0, math.ceil(exact + by) - 1)] for by in (-1e-6, 0))
    assert low * (1 - 1e-9) <= known.percentile(share) <= high * 1.05 + 0.026


@given(st.lists(st.tuples(values, st.floats(-7200, 7200)), max_size=100))
def test_percentiles_grow_with_their_share(samples):
    known = made()
    for value, late in samples:
        known.add(value, 1.0, NOW + late)
    found = known.percentiles([0.1, 0.5, 0.9, 1.0])
    assert found == sorted(found)
    assert found == [known.percentile(share) for share in (0.1, 0.5, 0.9, 1.0)]
    assert known.empty == (not samples)


def test_an_old_sample_weighs_less():
    known = made()
    known.add(1.0, 1.0, NOW)
    known.add(10.0, 0.6, NOW + HALF_LIFE)
    assert known.percentile(0.5) > 10
    known.add(1.0, 1.0, NOW + HALF_LIFE)
    assert known.percentile(0.5) < 1.1


def test_after_a_long_pause_only_what_is_new_counts():
    known = made()
    for _ in range(1000):
        known.add(100.0, 1.0, NOW)
    known.add(1.0, 1.0, NOW + 500 * HALF_LIFE)
    assert known.percentile(1.0) < 1.1
    assert known.total == pytest.approx(1.0, rel=0.5)


@pytest.mark.parametrize("jump", [3600, -3600, 86400 * 365, -86400 * 365, -86400 * 365 * 50])
def test_samples_under_a_clock_that_jumps_do_no_harm(jump):
    known = made()
    for minute in range(100):
        known.add(2.0, 1.0, NOW + 60 * minute)
    known.add(3.0, 1.0, NOW + 6000 + jump)
    assert 2.0 <= known.percentile(0.9) <= 3.2


def test_a_clock_that_was_set_back_is_followed():
    known, straight = made(), made()
    ahead = 1000 * HALF_LIFE
    for minute in range(60):
        known.add(50.0, 1.0, NOW + ahead + 60 * minute)
        straight.add(50.0, 1.0, NOW + 60 * minute)
    known.moved(-ahead)
    for minute in range(60, 240):
        known.add(1.0, 1.0, NOW + 60 * minute)
        straight.add(1.0, 1.0, NOW + 60 * minute)
    assert known.percentiles([0.5, 0.9, 1.0]) == straight.percentiles([0.5, 0.9, 1.0])


@given(st.lists(st.tuples(values, st.floats(0, 86400)), min_size=1, max_size=60))
def test_what_was_added_can_be_taken_back(samples):
    known = made()
    for value, late in samples:
        known.add(value, 1.0, NOW + late)
    for value, late in samples:
        known.subtract(value, 1.0, NOW + late)
    assert known.empty
    assert known.percentile(0.9) == 0.0


@given(st.lists(st.tuples(values, st.floats(0, 3600)), max_size=60))
def test_a_checkpoint_keeps_the_shape(samples):
    known, other = made(), made()
    for value, late in samples:
        known.add(value, 1.0, NOW + late)
    other.restore(histogram.read(known.checkpoint().written()))
    assert other.empty == known.empty
    assert other.checkpoint().weights == known.checkpoint().weights
    assert other.total == pytest.approx(known.total)
    assert other.reference == known.reference


@given(st.lists(st.tuples(values, st.floats(0, 864_000)), max_size=60))
def test_what_is_kept_exactly_goes_on_as_if_nothing_had_been(samples):
    known, other = made(), made()
    for value, late in samples:
        known.add(value, 1.0, NOW + late)
        again = made()
        again.resume(known.exact())
        other = again
    assert other.exact() == known.exact()
    assert other.percentiles([0.1, 0.5, 1.0]) == known.percentiles([0.1, 0.5, 1.0])
    other.add(7.0, 1.0, NOW + 900_000)
    known.add(7.0, 1.0, NOW + 900_000)
    assert other.exact() == known.exact()


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"referenceTimestamp": "soon"},
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "totalWeight": "much"},
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "bucketWeights": {"x": 1}},
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "bucketWeights": [1]},
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "bucketWeights": {"1": math.inf}},
        {
            "referenceTimestamp": "2025-01-01T00:00:00Z",
            "totalWeight": 1,
            "bucketWeights": {"999": 1},
        },
        {
            "referenceTimestamp": "2025-01-01T00:00:00Z",
            "totalWeight": 1,
            "bucketWeights": {"-1": 1},
        },
        {
            "referenceTimestamp": "2025-01-01T00:00:00Z",
            "totalWeight": 1,
            "bucketWeights": {"1": -1},
        },
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "totalWeight": -1},
        {"referenceTimestamp": "2025-01-01T00:00:00Z", "totalWeight": math.nan},
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused(body):
    known = made()
    known.add(1.0, 1.0, NOW)
    before = known.checkpoint()
    with pytest.raises(histogram.HistogramError):
        known.restore(histogram.read(body))
    assert known.checkpoint() == before
