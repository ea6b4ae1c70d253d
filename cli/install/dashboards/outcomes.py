"""The dashboard for outcomes: what colocation gains, what it costs, and how long pods wait."""

from cli.install.dashboards import queries
from cli.install.dashboards.panels import Dashboard, Panel, Row, figure, graph

_USED = 'sum(koord_agent_node_cpu_cores{by="node"})'
_BEST_EFFORT = 'sum(koord_agent_node_cpu_cores{by="best-effort"})'
_LENT = "max(koord_manager_lent_cores)"
_SAVED = f"{_BEST_EFFORT} / avg(koord_agent_node_cores)"
_ALL = "sum(koord_agent_node_cores)"
_ONLINE_SHARE = f"({_USED} - {_BEST_EFFORT}) / {_ALL}"
_PRESSURE = 'koord_agent_pressure_ratio{container="", resource="cpu", kind="some"}'


def _at(mode: int) -> str:
    """Return how long pods wait for the CPU where suppression observes (1) or enforces (2)."""
    suppresses = f'koord_agent_strategy_mode{{strategy="cpu-suppress"}} == {mode}'
    return f"avg({_PRESSURE} and on (namespace, pod) {suppresses})"


def _late(histogram: str) -> str:
    """Return the 99th percentile of a histogram."""
    return f"histogram_quantile(0.99, sum by (le) (rate({histogram}_bucket{queries.RATE})))"


PAGE = Dashboard(
    "outcomes",
    "Outcomes",
    (
        Row(
            "Gain",
            (
                figure("Cores lent", _LENT),
                figure("Used by best effort", _BEST_EFFORT),
                figure(
                    "Nodes saved",
                    _SAVED,
                    about="Nodes of the present size that best effort would need for itself.",
                ),
                figure("Use of all nodes", f"{_USED} / {_ALL}", "percentunit"),
                figure("Without best effort", _ONLINE_SHARE, "percentunit"),
                figure("Pods slowed down", "sum(koord_agent_interfered_pods)", alarm=1),
                graph("Lent and used", (_LENT, "lent"), (_BEST_EFFORT, "used by best effort")),
                graph(
                    "Use of all nodes",
                    (f"{_USED} / {_ALL}", "with best effort"),
                    (_ONLINE_SHARE, "without"),
                    unit="percentunit",
                ),
                graph("Nodes saved", (_SAVED, "nodes")),
            ),
        ),
        Row(
            "Price",
            (
                graph(
                    "Waiting for the CPU, before and after",
                    (_at(1), "suppression observes"),
                    (_at(2), "suppression enforces"),
                    unit="percentunit",
                    about="The mean pressure of pods on nodes of each mode, with the feature gate"
                    " PSICollector of agents. Before enforcement all nodes observe.",
                ),
                graph(
                    "Suppression",
                    ("sum(koord_agent_best_effort_allowed_cores)", "allowed to best effort"),
                    (_BEST_EFFORT, "used"),
                ),
                graph(
                    "Throttled, by namespace",
                    (
                        "topk(10, avg by (pod_namespace) (koord_agent_throttled_ratio))",
                        "{{pod_namespace}}",
                    ),
                    unit="percentunit",
                    about="Share of periods in which containers with a CPU limit were throttled,"
                    " with the feature gate ThrottlingCollector of agents.",
                ),
                graph(
                    "Online pods that neighbours slow down",
                    ("sum by (resource) (koord_agent_interfered_pods)", "{{resource}}"),
                    about="With the feature gate InterferenceDetection of agents.",
                ),
                Panel(
                    "Evictions",
                    (
                        (
                            queries.rate("koord_agent_evictions_total", "outcome"),
                            "agents: {{outcome}}",
                        ),
                        (
                            queries.rate("koord_descheduler_pods_evicted_total", "result"),
                            "descheduler: {{result}}",
                        ),
                        (
                            queries.rate("koord_quota_evictions_total", "result"),
                            "quotas: {{result}}",
                        ),
                        (
                            queries.rate("koord_extender_preemption_victims_total", "result"),
                            "preemption: {{result}}",
                        ),
                    ),
                    unit="ops",
                    width=16,
                ),
            ),
        ),
        Row(
            "Waiting",
            (
                graph(
                    "Pods that wait, by reason",
                    ("sum(max by (quota) (koord_quota_waiting_pods))", "quota"),
                    ("max(koord_extender_waiting_pods)", "no node takes them"),
                    ("max(koord_extender_held_binds)", "the rest of their gang"),
                    ("max(koord_extender_gang_groups_waiting)", "room for a gang (groups)"),
                    (
                        'max(koord_reservation_objects{phase="Pending"})',
                        "room for a Reservation (Reservations)",
                    ),
                ),
                Panel(
                    "Time, by reason, p99",
                    (
                        (_late("koord_quota_gate_seconds"), "quota: from room to the open gate"),
                        (
                            _late("koord_extender_nudged_retry_seconds"),
                            "no node: from fitting to the next try",
                        ),
                        (
                            _late("koord_extender_gang_bound_seconds"),
                            "gang: from complete to bound",
                        ),
                        (
                            _late("koord_extender_preemption_seconds"),
                            "preemption: from the first eviction to bound",
                        ),
                        (
                            "max(koord_reservation_longest_wait_seconds)",
                            "Reservation: the oldest that is Pending",
                        ),
                    ),
                    unit="s",
                    width=16,
                ),
            ),
        ),
    ),
)
