"""Durations and moments are read leniently and written canonically."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.wire import durations
from tests import processor_time


@pytest.mark.parametrize(
    ("text", "seconds", "canonical"),
    [
        ("10m", 600, "10m0s"),
        ("2h", 7200, "2h0m0s"),
        ("24h0m0s", 86400, "24h0m0s"),
        ("1h30m", 5400, "1h30m0s"),
        ("90s", 90, "1m30s"),
        ("1.5h", 5400, "1h30m0s"),
        (".5s", 0.5, "500ms"),
        ("1.s", 1, "1s"),
        ("0", 0, "0s"),
        ("-5m", -300, "-5m0s"),
        ("+5m", 300, "5m0s"),
        ("1ms", 0.001, "1ms"),
        ("1500us", 0.0015, "1.5ms"),
        ("2µs", 2e-6, "2µs"),
        ("7ns", 7e-9, "7ns"),
        ("1m0.25s", 60.25, "1m0.25s"),
    ],
)
def test_durations(text, seconds, canonical):
    assert durations.seconds(text) == pytest.approx(seconds)
    assert durations.text(durations.seconds(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "10", "ten minutes", "m", "1d", "1h 30m", "--1s", "+-1s", "1.2.3s"]
)
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(durations.DurationError, match='such as "90s"'):
        durations.seconds(text)


@pytest.mark.parametrize("text", ["2562048h", "-2562048h", "9" * 400 + "h"])
def test_what_does_not_fit_into_64_bits_is_refused(text):
    with pytest.raises(durations.DurationError, match="292 years"):
        durations.seconds(text)
    assert durations.seconds("2562047h") == 2562047 * 3600


@given(st.integers(0, 10**7), st.integers(0, 999))
def test_durations_survive_writing(whole, millis):
    value = whole + millis / 1000
    assert durations.seconds(durations.text(value)) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-01-01T12:00:00Z", 1704110400),
        ("2024-01-01T13:00:00+01:00", 1704110400),
        ("2024-01-01T12:00:00.250000Z", 1704110400.25),
        ("2024-01-01T12:00:00.123456789Z", 1704110400.123456),
    ],
)
def test_moments(text, seconds):
    assert durations.timestamp(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text", ["", "now", "2024-01-01", "2024-01-01T12:00:00", "2024-13-01T00:00:00Z"]
)
def test_other_moments_are_refused(text):
    with pytest.raises(durations.TimestampError, match="RFC 3339"):
        durations.timestamp(text)


@given(st.integers(0, 4 * 10**9))
def test_moments_survive_writing(seconds):
    assert durations.timestamp(durations.moment(seconds)) == seconds
    assert durations.timestamp(durations.precise_moment(seconds)) == seconds


def test_moments_are_written_as_kubernetes_writes_them():
    assert durations.moment(1704110400.75) == "2024-01-01T12:00:00Z"
    assert durations.precise_moment(1704110400.75) == "2024-01-01T12:00:00.750000Z"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", id="before the year 1"),
        pytest.param("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z", id="after 9999"),
        pytest.param("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z", id="rounded up"),
    ],
)
def test_every_moment_that_is_read_can_be_written(text, written):
    assert durations.moment(durations.timestamp(text)) == written


def test_an_endless_duration_is_none() -> None:
    text = "1s" * 100_000
    with processor_time.below(0.01), pytest.raises(durations.DurationError) as caught:
        durations.seconds(text)
    assert len(str(caught.value)) < 1000


@given(st.floats(-1e9, 4e9, allow_nan=False))
def test_precise_moments_are_those_of_the_standard_library(value):
    exact = datetime.datetime.fromtimestamp(value, tz=datetime.UTC)
    written = exact.isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert durations.precise_moment(value) == written
