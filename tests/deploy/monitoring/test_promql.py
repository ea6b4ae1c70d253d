"""The reader of queries refuses what Prometheus would."""

import pytest

from tests.deploy.monitoring import promql


@pytest.mark.parametrize(
    "query",
    [
        "sum by (a) (rate(m_total[5m])) / 2 > 0.1",
        'm{a="1", b=~"x.*"} and on (a) n{b!="}"} or vector(0)',
        "histogram_quantile(0.99, sum by (le, pod) (rate(m_bucket[1h30m])))",
        "-m offset 5m + on (a) group_left (b) n",
        "topk(3, m) == bool 1",
        "time() - m",
    ],
)
def test_a_query_is_read(query):
    assert promql.uses(query)


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("sum(rate(m[5m])", id="parenthesis"),
        pytest.param("m{a='1'", id="brace"),
        pytest.param("m{a}", id="matcher"),
        pytest.param("m n", id="no operator"),
        pytest.param("m + ", id="no operand"),
        pytest.param("rate(m[5])", id="no unit"),
        pytest.param("sum by a (m)", id="no list"),
        pytest.param("m ? n", id="letter"),
        pytest.param("unknown(m)", id="function"),
    ],
)
def test_no_query_is_refused(query):
    with pytest.raises(promql.QueryError):
        promql.uses(query)


def test_uses_are_told_with_their_surroundings():
    first, second = promql.uses('sum by (a) (rate(m_total{b="1"}[5m])) and on (c) n')
    assert (first.metric, first.matched, first.grouped) == ("m_total", {"b"}, {"a"})
    assert (first.within, first.ranged) == (("sum", "rate"), True)
    assert (second.metric, second.grouped, second.within) == ("n", {"c"}, ())
