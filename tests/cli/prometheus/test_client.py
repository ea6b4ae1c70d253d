"""Ranges of a Prometheus: figures with their moments, and the bounds of an answer."""

import pytest

from cli.prometheus import client, samples
from tests.cli.prometheus import served

SPAN = samples.Range(1000.0, 3, 60.0)


@pytest.fixture
async def made():
    return served.Prometheus()


async def over(made, query="up", span=SPAN):
    async with served.serving(made) as url, client.opened(url, None, None) as source:
        found = await source.over(query, span)
        return found, source.received


async def test_a_range_is_asked_with_both_ends(made):
    made.series = {"up": [({"pod": "a"}, lambda at: at / 1000)]}
    (series,), received = await over(made)
    assert series.labels == {"pod": "a"}
    assert series.points == [(1000.0, 1.0), (1060.0, 1.06), (1120.0, 1.12)]
    assert received > 50


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "1e31", "x"])
async def test_moments_without_a_number_are_left_out(made, odd):
    made.series = {"up": [({}, lambda at: odd if at == 1060 else 2)]}
    (series,), _ = await over(made)
    assert series.points == [(1000.0, 2.0), (1120.0, 2.0)]


async def test_a_range_that_is_too_much_is_told_from_other_errors(made):
    made.most_points = 2
    with pytest.raises(client.RangeTooLargeError, match="too many samples"):
        await over(made)
    made.text = '{"status": "error", "errorType": "bad_data", "error": "parse error"}'
    with pytest.raises(client.PrometheusError, match="parse error") as raised:
        await over(made)
    assert not isinstance(raised.value, client.RangeTooLargeError)


async def test_an_answer_beyond_the_bound_is_not_read_to_its_end(made):
    made.text = " " * (client.MOST_RANGE_BYTES + (4 << 20))
    with pytest.raises(client.RangeTooLargeError, match="an answer of 3 moments is larger than 16"):
        await over(made)


@pytest.mark.parametrize("text", ['{"status": "success", "data": {"result": [1]}}', "[", "\xff"])
async def test_what_is_no_answer_is_named(made, text):
    made.text = text
    with pytest.raises(client.PrometheusError, match="no figures: name the address"):
        await over(made)
