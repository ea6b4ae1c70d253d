"""Queries that several dashboards ask, and the row that every process has."""

from typing import Final

from cli.install.dashboards.panels import Row, graph

RATE: Final = "[$__rate_interval]"
"""The span of a rate, which Grafana sets by the width of a panel."""


def quantile(share: str, histogram: str, by: str, only: str = "") -> str:
    """Return the query of a quantile of a histogram by some labels."""
    buckets = f"rate({histogram}_bucket{only}{RATE})"
    return f"histogram_quantile({share}, sum by (le, {by}) ({buckets}))"


def both(histogram: str, by: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return median and 99th percentile of a histogram by a label, each with its legend."""
    legend = f"{{{{{by}}}}}"
    return (
        (quantile("0.5", histogram, by), f"{legend} p50"),
        (quantile("0.99", histogram, by), f"{legend} p99"),
    )


def rate(counter: str, by: str, only: str = "") -> str:
    """Return the query of the rate of a counter, summed by some labels."""
    return f"sum by ({by}) (rate({counter}{only}{RATE}))"


def tenths(share: str) -> tuple[tuple[str, str], ...]:
    """Return how many series of a share from 0 to 1 are in each tenth, the last one open above."""
    lows = [f"{share} >= 0.{tenth}" if tenth else share for tenth in range(10)]
    highs = [f" < 0.{tenth}" if tenth < 10 else "" for tenth in range(1, 11)]
    return tuple(
        (f"count({low}{high}) or vector(0)", f"{10 * tenth} to {10 * tenth + 10} %")
        for tenth, (low, high) in enumerate(zip(lows, highs, strict=True))
    )


def process(of: str, most: int = 0) -> Row:
    """Return what every process shows; `of` is a metric that only this process has.

    Of processes that run on every node only so many are drawn, those that stand out.
    """

    def mine(expression: str, shown: str = "topk") -> str:
        found = f"{expression} and on (namespace, pod) {of}"
        return f"{shown}({most}, {found})" if most else found

    lag = mine(quantile("0.99", "koord_process_loop_lag_seconds", "namespace, pod"))
    return Row(
        "Process",
        (
            graph("Ready", (mine("koord_process_ready", "bottomk"), "{{pod}}")),
            graph("Memory", (mine("process_resident_memory_bytes"), "{{pod}}"), unit="bytes"),
            graph("CPU", (mine(f"rate(process_cpu_seconds_total{RATE})"), "{{pod}}"), unit="short"),
            graph(
                "Event loop late, p99",
                (lag, "{{pod}}"),
                unit="s",
                about="Everything in the process waits that long.",
            ),
            graph(
                "Silence of watches",
                (mine("koord_kube_contact_age_seconds"), "{{pod}} {{resource}}"),
                unit="s",
                about="Bookmarks come about every minute; far more means old news.",
            ),
            graph(
                "Requests to the API server",
                (
                    mine(rate("koord_kube_requests_total", "namespace, pod, verb, code")),
                    "{{pod}} {{verb}} {{code}}",
                ),
                unit="reqps",
            ),
        ),
    )
