"""What the dashboards show, page by page."""

from cli.install.dashboards import (
    devices,
    gangs,
    outcomes,
    queries,
    quotas,
    rebalancing,
    reservations,
)
from cli.install.dashboards.panels import Dashboard, Panel, Row, figure, graph, heat_map

_LEASE = '{lease="koordinator-manager"}'
_LEADS = f"koord_lease_leading{_LEASE}"


def _share(of: str) -> str:
    """Return by node the share of its processors that somebody uses."""
    used = f'koord_agent_node_cpu_cores{{by="{of}"}}'
    return f"{used} / ignoring (by) koord_agent_node_cores"


_OVERVIEW = Dashboard(
    "overview",
    "Overview",
    (
        Row(
            "Now",
            (
                figure("Processes ready", "sum(koord_process_ready)"),
                figure("Not ready", "count(koord_process_ready == 0) or vector(0)", alarm=1),
                figure("Warnings", "sum(koord_process_warnings)", alarm=1),
                figure("Nodes that report", 'max(koord_manager_nodes{report="fresh"})'),
                figure("Nodes late", 'max(koord_manager_nodes{report="late"})', alarm=1),
                figure("Pods past admission", "max(koord_manager_missed_pods_present)", alarm=1),
            ),
        ),
        Row(
            "Colocation",
            (
                graph(
                    "Cores of all nodes",
                    ("max(koord_manager_allocatable_cores)", "allocatable"),
                    ('sum(koord_agent_node_cpu_cores{by="node"})', "used"),
                    ("max(koord_manager_lent_cores)", "lent to batch"),
                    ('sum(koord_agent_node_cpu_cores{by="best-effort"})', "used by best effort"),
                    about="What is allocatable and not used is what colocation is for.",
                ),
                graph("Memory lent", ("max(koord_manager_lent_bytes)", "lent"), unit="bytes"),
                graph(
                    "Best effort held back",
                    ("sum(koord_agent_best_effort_allowed_cores)", "allowed"),
                    ('sum(koord_agent_node_cpu_cores{by="best-effort"})', "used"),
                ),
                graph(
                    "Nodes by last report", ("max by (report) (koord_manager_nodes)", "{{report}}")
                ),
                graph(
                    "Refusals by reason",
                    (
                        queries.rate("koord_extender_refusals_total", "plugin, reason"),
                        "{{plugin}}: {{reason}}",
                    ),
                    about="Nodes refused to pods, by second.",
                ),
                graph(
                    "Binds",
                    (
                        queries.rate("koord_extender_verb_seconds_count", "pod", '{verb="bind"}'),
                        "{{pod}}",
                    ),
                    unit="ops",
                ),
            ),
        ),
        Row(
            "Nodes",
            (
                heat_map(
                    "How busy nodes are",
                    *queries.tenths(_share("node")),
                    about="Nodes by the share of their processors that is used.",
                ),
                heat_map(
                    "How much of them best effort uses",
                    *queries.tenths(_share("best-effort")),
                    about="Nodes by the share of their processors that best-effort pods use.",
                ),
            ),
        ),
    ),
)

_EXTENDER = Dashboard(
    "extender",
    "Extender",
    (
        Row(
            "Calls of kube-scheduler",
            (
                graph(
                    "Calls",
                    (queries.rate("koord_extender_verb_seconds_count", "verb"), "{{verb}}"),
                    unit="ops",
                ),
                graph("Time", *queries.both("koord_extender_verb_seconds", "verb"), unit="s"),
                graph(
                    "Calls answered with an error",
                    (queries.rate("koord_extender_failures_total", "verb"), "{{verb}}"),
                    unit="ops",
                    about="filter: the view is not proven. bind: refused or failed; tried again.",
                ),
            ),
        ),
        Row(
            "Decisions",
            (
                Panel(
                    "Refusals",
                    (
                        (
                            queries.rate("koord_extender_refusals_total", "plugin, reason, mode"),
                            "{{plugin}}: {{reason}} ({{mode}})",
                        ),
                    ),
                    width=16,
                    about="Nodes refused to pods, by second; observe counts what would be refused.",
                ),
                graph(
                    "Bindings written",
                    (
                        queries.rate("koord_kube_requests_total", "code", '{verb="bind"}'),
                        "{{code}}",
                    ),
                    unit="ops",
                ),
            ),
        ),
        queries.process('koord_extender_verb_seconds_count{verb="filter"}'),
    ),
)

# It has no series of its own before the first review.
_OF_WEBHOOK = "koord_webhook_review_seconds_count"
_CONNECTIONS = (
    "sum by (namespace, pod, server) (koord_server_connections)"
    f" and on (namespace, pod) {_OF_WEBHOOK}"
)
_REFUSED = (
    f"{queries.rate('koord_server_refused_connections_total', 'namespace, pod, server')}"
    f" and on (namespace, pod) {_OF_WEBHOOK}"
)
_WEBHOOK = Dashboard(
    "webhook",
    "Webhook",
    (
        Row(
            "Now",
            (
                figure("Withdrawn", "max(koord_manager_webhook_withdrawn)", alarm=1),
                figure(
                    "Served certificate ends in",
                    "min(koord_server_certificate_end_seconds) - time()",
                    "s",
                ),
                figure("Pods past admission", "max(koord_manager_missed_pods_present)", alarm=1),
            ),
        ),
        Row(
            "Reviews",
            (
                graph(
                    "Reviews",
                    (
                        queries.rate("koord_webhook_reviews_total", "path, result"),
                        "{{path}} {{result}}",
                    ),
                    unit="ops",
                ),
                graph("Time", *queries.both("koord_webhook_review_seconds", "path"), unit="s"),
                graph(
                    "Probes by the manager",
                    (queries.rate("koord_manager_webhook_probes_total", "result"), "{{result}}"),
                    unit="ops",
                ),
                graph(
                    "Pods found past admission",
                    (queries.rate("koord_manager_missed_pods_total", "kind"), "{{kind}}"),
                    unit="ops",
                ),
                graph(
                    "Conversions",
                    (queries.rate("koord_webhook_conversions_total", "result"), "{{result}}"),
                    unit="ops",
                ),
                graph(
                    "Connections",
                    (
                        _CONNECTIONS,
                        "{{pod}} {{server}}",
                    ),
                    (_REFUSED, "{{pod}} {{server}} refused"),
                ),
            ),
        ),
        queries.process(_OF_WEBHOOK),
    ),
)


def _of_manager(by: str, figure_of_controllers: str) -> str:
    """Return a sum over the manager's controllers: other processes have some, too."""
    return f"sum by ({by}) ({figure_of_controllers} and on (namespace, pod) {_LEADS})"


def _reconciling(share: str) -> str:
    found = queries.quantile(
        share, "koord_controller_reconcile_seconds", "controller, namespace, pod"
    )
    return f"{found} and on (namespace, pod) {_LEADS}"


_MANAGER = Dashboard(
    "manager",
    "Manager",
    (
        Row(
            "Now",
            (
                figure(
                    "Leaders",
                    f"sum({_LEADS})",
                    about="One, or there is a pause of seconds.",
                ),
                figure("Settings refused", "max(koord_manager_settings_refused)", alarm=1),
                figure(
                    "Nodes without a report", 'max(koord_manager_nodes{report="none"})', alarm=1
                ),
            ),
        ),
        Row(
            "Controllers",
            (
                graph(
                    "Reconciled",
                    (
                        _of_manager(
                            "controller, result",
                            f"rate(koord_controller_reconciles_total{queries.RATE})",
                        ),
                        "{{controller}} {{result}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Time",
                    (_reconciling("0.5"), "{{controller}} p50"),
                    (_reconciling("0.99"), "{{controller}} p99"),
                    unit="s",
                ),
                graph(
                    "Waiting",
                    (_of_manager("controller", "koord_controller_queue_keys"), "{{controller}}"),
                ),
                graph(
                    "Writes",
                    (
                        queries.rate("koord_manager_writes_total", "resource, write"),
                        "{{write}} {{resource}}",
                    ),
                    unit="ops",
                ),
                graph("Leading", (_LEADS, "{{pod}}")),
                graph(
                    "Lease",
                    (queries.rate("koord_lease_renewals_total", "result", _LEASE), "{{result}}"),
                    unit="ops",
                ),
            ),
        ),
        queries.process(_LEADS),
    ),
)

_MOST = 20
"""There is an agent on every node: of a thousand nodes only these are drawn."""
_ANSWER = queries.quantile("0.99", "koord_agent_nri_answer_seconds", "pod")
_TICK = queries.quantile("0.99", "koord_agent_tick_seconds", "pod")
_AGENT = Dashboard(
    "agent",
    "Agents",
    (
        Row(
            "All nodes",
            (
                graph(
                    "Oldest reports",
                    ("topk(10, koord_agent_report_age_seconds)", "{{pod}}"),
                    unit="s",
                ),
                graph(
                    "Reports",
                    (queries.rate("koord_agent_reports_total", "outcome"), "{{outcome}}"),
                    unit="ops",
                ),
                graph(
                    "Ticks that failed",
                    (
                        f"topk({_MOST}, {queries.rate('koord_agent_tick_failures_total', 'pod')})",
                        "{{pod}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Time of a tick",
                    (
                        f"topk({_MOST}, {_TICK})",
                        "{{pod}} p99",
                    ),
                    unit="s",
                ),
                graph(
                    "Edits",
                    (
                        queries.rate("koord_agent_edits_total", "role, outcome"),
                        "{{role}} {{outcome}}",
                    ),
                    unit="ops",
                ),
                graph(
                    "Files to put back",
                    (f"topk({_MOST}, koord_agent_journal_entries)", "{{pod}}"),
                    about="What the agent restores when it stops.",
                ),
                graph(
                    "Cores used",
                    (
                        f'topk({_MOST}, koord_agent_node_cpu_cores{{by="node"}})',
                        "{{pod}}",
                    ),
                    (
                        f'topk({_MOST}, koord_agent_node_cpu_cores{{by="best-effort"}})',
                        "{{pod}} best effort",
                    ),
                    about="Of the nodes that use most.",
                ),
                graph(
                    "Cores allowed to best effort",
                    (f"bottomk({_MOST}, koord_agent_best_effort_allowed_cores)", "{{pod}}"),
                    about="Of the nodes that hold back most.",
                ),
                graph(
                    "Exclusive CPUs not respected",
                    ("topk(10, koord_agent_cpu_drift)", "{{pod}} {{kind}}"),
                    about="Cgroups that were moved, share exclusive CPUs or are pinned elsewhere; "
                    "the event CPUDrift names pod and container.",
                ),
                graph(
                    "Answers to container runtimes",
                    (queries.rate("koord_agent_nri_answers_total", "result"), "{{result}}"),
                    unit="ops",
                    about="Containers that start with their values, by NRI; `unrecorded` could not "
                    "be journalled, so that nothing was adjusted.",
                ),
                graph(
                    "Time of an answer",
                    (f"topk({_MOST}, {_ANSWER})", "{{pod}} p99"),
                    unit="s",
                ),
            ),
        ),
        queries.process("koord_agent_report_age_seconds", _MOST),
    ),
)

PAGES = (
    _OVERVIEW,
    outcomes.PAGE,
    _EXTENDER,
    _WEBHOOK,
    _MANAGER,
    quotas.PAGE,
    devices.PAGE,
    reservations.PAGE,
    rebalancing.PAGE,
    gangs.PAGE,
    _AGENT,
)
