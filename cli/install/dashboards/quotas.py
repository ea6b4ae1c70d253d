"""The dashboard for teams: what each quota may use, uses, borrows, lends and waits for."""

from cli.install.dashboards.panels import Dashboard, Row, figure, graph

_UNLIMITED = "1e18"
"""What quotas without a maximum are entitled to: a line that far up would flatten all others."""


def _by_quota(name: str, resource: str) -> str:
    """Return one gauge of a resource; every replica tells it, so the largest counts."""
    return f'max by (quota) (koord_quota_{name}{{resource="{resource}"}})'


def _shares(resource: str, title: str, unit: str) -> Row:
    """Return what teams have of one resource."""

    def shown(name: str) -> tuple[str, str]:
        return f"topk(20, {_by_quota(name, resource)} < {_UNLIMITED})", "{{quota}}"

    used = _by_quota("used", resource)
    return Row(
        title,
        (
            graph("Used", shown("used"), unit=unit),
            graph(
                "Entitled",
                shown("entitled"),
                unit=unit,
                about="What pods may use now: the guarantee, and a fair part of what is idle.",
            ),
            graph("Borrowed", shown("borrowed"), unit=unit, about="Used beyond the guarantee."),
            graph("Lent", shown("lent"), unit=unit, about="Idle guarantee that others use."),
            graph("Waiting", shown("waiting"), unit=unit, about="Requests of pods without a node."),
            graph(
                "Guarantee in use",
                (
                    f"{used} / ({_by_quota('guaranteed', resource)} > 0)",
                    "{{quota}}",
                ),
                unit="percentunit",
            ),
        ),
    )


PAGE = Dashboard(
    "quota",
    "Quotas of teams",
    (
        Row(
            "Now",
            (
                figure("Pods that wait", "sum(max by (quota) (koord_quota_waiting_pods))"),
                figure(
                    "Waiting below guarantee",
                    "count(max by (quota, resource) (koord_quota_waiting) > 0 and "
                    "max by (quota, resource) (koord_quota_used) < "
                    "max by (quota, resource) (koord_quota_guaranteed)) or vector(0)",
                    alarm=1,
                ),
                figure(
                    "Conflicts",
                    "max(koord_quota_conflicts)",
                    alarm=1,
                    about="The conditions of those ElasticQuotas say which.",
                ),
                figure("Quotas not shown", "max(koord_quota_hidden)"),
            ),
        ),
        _shares("cpu", "Cores", "short"),
        _shares("memory", "Memory", "bytes"),
        _shares("nvidia.com/gpu", "GPUs", "short"),
        Row(
            "Waiting",
            (
                graph(
                    "Pods that wait",
                    ("topk(20, max by (quota) (koord_quota_waiting_pods))", "{{quota}}"),
                ),
            ),
        ),
    ),
)
