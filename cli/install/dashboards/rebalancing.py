"""The dashboard for rebalancing: what rounds decide, how migrations end, and what they cost."""

from cli.install.dashboards.panels import Dashboard, Row, figure, graph

_RATE = "[$__rate_interval]"
_ENDED = "koord_migration_ended_total"
_SPREAD = "max by (when) (koord_descheduler_load_spread_ratio)"


def _rate(counter: str, *labels: str, only: str = "") -> str:
    return f"sum by ({', '.join(labels)}) (rate({counter}{only}{_RATE}))"


def _quantile(share: str, histogram: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({histogram}_bucket{_RATE})))"


PAGE = Dashboard(
    "rebalancing",
    "Rebalancing",
    (
        Row(
            "Now",
            (
                figure("Pending", 'sum(koord_migration_jobs{phase="Pending"})'),
                figure(
                    "Running",
                    'sum(koord_migration_jobs{phase="Running"})',
                    about="koord explain migration NAME says what one waits for.",
                ),
                figure(
                    "Last round",
                    "time() - max(koord_descheduler_last_round_timestamp_seconds)",
                    "s",
                    about="Seconds ago; one replica runs rounds.",
                ),
                figure(
                    "Plug-ins that fail",
                    "sum(koord_descheduler_plugin_failures_total) or vector(0)",
                ),
            ),
        ),
        Row(
            "Rounds",
            (
                graph(
                    "Spread of load",
                    (_SPREAD, "{{when}}"),
                    unit="percentunit",
                    about="Of the last round: as it was, and as it is once the moves are made.",
                ),
                graph(
                    "Moves",
                    (
                        _rate("koord_descheduler_moves_total", "profile", "plugin", "result"),
                        "{{profile}} {{plugin}}: {{result}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Suggestions that became no move",
                    (
                        _rate("koord_descheduler_refusals_total", "plugin", "reason"),
                        "{{plugin}}: {{reason}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Pods that filters keep",
                    (
                        "max by (profile, reason) (koord_descheduler_kept_pods)",
                        "{{profile}}: {{reason}}",
                    ),
                    about="Of those that plug-ins asked about in the last round.",
                ),
                graph(
                    "Rounds by result",
                    (_rate("koord_descheduler_rounds_total", "result"), "{{result}}"),
                    unit="ops",
                ),
                graph(
                    "Time to decide",
                    (_quantile("0.5", "koord_descheduler_round_seconds"), "p50"),
                    (_quantile("0.99", "koord_descheduler_round_seconds"), "p99"),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Migrations",
            (
                graph("Jobs", ("sum by (phase) (koord_migration_jobs)", "{{phase}}")),
                graph(
                    "How they end",
                    (_rate(_ENDED, "phase", "reason"), "{{phase}} {{reason}}"),
                    unit="ops",
                ),
                graph(
                    "Evictions",
                    (
                        _rate("koord_descheduler_pods_evicted_total", "strategy", "result"),
                        "{{strategy}}: {{result}}",
                    ),
                    unit="ops",
                    about="An error is an eviction that the API server refused, as for a budget.",
                ),
                graph(
                    "Time of a migration, p99",
                    (_quantile("0.99", "koord_migration_seconds", "mode", "phase"),
                     "{{mode}} {{phase}}"),
                    unit="s",
                ),
            ),
        ),
        Row(
            "Receipts",
            (
                graph(
                    "Moves that are settled",
                    (
                        _rate("koord_descheduler_moves_settled_total", "profile", "verdict"),
                        "{{profile}}: {{verdict}}",
                    ),
                    unit="ops",
                    about="Minutes after a move: whether it has paid.",
                ),
                graph(
                    "Points expected, gained and lost",
                    (
                        _rate("koord_descheduler_gain_points_total", "profile", "kind"),
                        "{{profile}}: {{kind}}",
                    ),
                ),
                graph(
                    "Halted profiles",
                    ("max by (profile) (koord_descheduler_profile_halted)", "{{profile}}"),
                    about="1 while a profile is halted because its moves do not pay.",
                ),
            ),
        ),
    ),
)  # fmt: skip
