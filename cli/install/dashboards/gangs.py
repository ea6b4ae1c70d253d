"""The dashboard for gangs: which wait, whose plans succeed, and which have lost members."""

from cli.install.dashboards.panels import Dashboard, Row, figure, graph


def _all(expression: str, *labels: str) -> str:
    """Return one gauge; every replica exports it, so the largest counts."""
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"max{by} ({expression})"


def _rate(counter: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (rate({counter}[$__rate_interval]))"


def _quantile(share: str, histogram: str) -> str:
    buckets = f"rate({histogram}_bucket[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (le) ({buckets}))"


PAGE = Dashboard(
    "gangs",
    "Gangs",
    (
        Row(
            "Now",
            (
                figure(
                    "Waiting for a plan",
                    _all("koord_extender_gang_groups_waiting"),
                    about="Complete gang groups. koord explain gang NAME says what one lacks.",
                ),
                figure("Being placed", _all("koord_extender_gang_plans_in_force")),
                figure(
                    "Below their minimum",
                    _all("koord_gangs_below_quorum"),
                    alarm=1,
                    about="koord status --gangs names them; koord explain gang says what is lost.",
                ),
            ),
        ),
        Row(
            "Plans",
            (
                graph(
                    "Gangs by how far they are",
                    (_all("koord_extender_gangs", "phase"), "{{phase}}"),
                ),
                graph(
                    "Plans by what became of them",
                    (_rate("koord_extender_gang_plans_total", "result"), "{{result}}"),
                ),
                graph(
                    "Time to plan a group",
                    (_quantile("0.5", "koord_extender_gang_plan_seconds"), "half"),
                    (_quantile("0.99", "koord_extender_gang_plan_seconds"), "99 %"),
                    unit="s",
                ),
                graph(
                    "From complete to bound",
                    (_quantile("0.5", "koord_extender_gang_bound_seconds"), "half"),
                    (_quantile("0.99", "koord_extender_gang_bound_seconds"), "99 %"),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Loss and repair",
            (
                graph(
                    "Restarts as a whole",
                    (_rate("koord_gang_restarts_total", "result"), "{{result}}"),
                ),
                graph(
                    "Pods evicted for restarts",
                    (_rate("koord_gang_evictions_total", "result"), "{{result}}"),
                ),
                graph(
                    "Pods evicted after interruptions",
                    (_rate("koord_extender_gang_evictions_total", "result"), "{{result}}"),
                    about="Members that were bound without their gang when the extender stopped.",
                ),
            ),
        ),
    ),
)
