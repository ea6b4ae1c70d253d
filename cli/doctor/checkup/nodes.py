"""Whether every node has an agent that reports, a policy, and a clock that is right."""

import json
from collections.abc import Iterator
from typing import Final

from api import names
from api.wire import durations
from cli.doctor import live_switches
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain import wording

MANAGER: Final = "koord-manager"
SKEW_SECONDS: Final = 5.0
LONG_SKEW_SECONDS: Final = 60.0
STALE_SECONDS: Final = 180.0
"""After this the extender no longer trusts a report, unless set otherwise."""

SKEW_HERE = Trap(
    "clock.here", Severity.INFO, "The clock of this machine differs from the API server's by more "
    "than 5 s", "ages in this report are counted by the API server's clock; set this one right",
)  # fmt: skip
SKEW_NODE = Trap(
    "clock.node", Severity.WARNING, "The clock of a node differs from the API server's by more "
    "than 5 s", "let the node synchronise its clock (chrony, systemd-timesyncd)",
)  # fmt: skip
SKEW_NODE_LONG = Trap(
    "clock.node-far", Severity.ERROR, "The clock of a node differs from the API server's by more "
    "than a minute: its reports count as too old or as of the future",
    "let the node synchronise its clock (chrony, systemd-timesyncd)",
)  # fmt: skip
NO_AGENT = Trap(
    "agent.missing", Severity.WARNING,
    "A node has no report and lends nothing: no agent runs there",
    "let the DaemonSet koord-agent tolerate the taints of the node, or leave the node out of "
    "colocation on purpose",
)  # fmt: skip
STALE = Trap(
    "agent.stale", Severity.ERROR,
    "A node's report is too old: it lends nothing and its load is unknown",
    "look at the agent's pod on that node",
)  # fmt: skip
VIRTUAL = Trap(
    "agent.virtual-node", Severity.INFO, "A virtual node has no agent and lends nothing",
    "nothing: colocation leaves it out",
)  # fmt: skip
NO_SLO = Trap(
    "agent.no-policy", Severity.WARNING, "A node has a report and no NodeSLO: its agent enforces "
    "defaults", "look at the manager's log and Lease",
)  # fmt: skip
HELD = Trap(
    "agent.fields-held", Severity.ERROR,
    "Fields of a NodeMetric or NodeSLO were written by another program under our manager's name, "
    "as Koordinator's does: ours leaves them as they are",
    "delete the objects once, the manager makes them anew: `kubectl delete nodeslo,nodemetric "
    "--all`; see docs/takeover-from-koordinator.md",
)  # fmt: skip
NO_LEADER = Trap(
    "manager.no-leader", Severity.ERROR, "No manager holds the Lease: nothing is computed",
    "look at the pods of Deployment koord-manager",
)  # fmt: skip
SETTINGS = Trap(
    "manager.settings", Severity.INFO,
    "slo-controller-config does not switch colocation on for the cluster: nothing is lent where no "
    "node says otherwise",
    "set enable: true in key colocation-config of ConfigMap slo-controller-config",
)  # fmt: skip
SETTINGS_UNREADABLE = Trap(
    "manager.settings-unreadable", Severity.ERROR,
    "slo-controller-config is no JSON: the manager keeps the settings it had",
    "correct the key that is named; the manager's events say when it is read again",
)  # fmt: skip
SWITCHED = Trap(
    "switch.not-enforcing", Severity.INFO,
    "A process observes or is switched off",
    "nothing, if this is meant; else remove the key from ConfigMap koord-switches, or the setting",
)  # fmt: skip
SWITCH_UNKNOWN = Trap(
    "switch.unreadable", Severity.WARNING, "A switch says something that no process understands",
    "correct the key that is named; docs/break-glass.md lists the switches",
)  # fmt: skip

CLOCK_TRAPS = (SKEW_HERE, SKEW_NODE, SKEW_NODE_LONG)
AGENT_TRAPS = (NO_AGENT, STALE, VIRTUAL, NO_SLO, HELD)
MANAGER_TRAPS = (NO_LEADER, SETTINGS, SETTINGS_UNREADABLE)
SWITCH_TRAPS = (SWITCHED, SWITCH_UNKNOWN)


def clocks(known: facts.Facts) -> Iterator[findings.Finding]:
    """Compare all clocks with the API server's."""
    for report in facts.given(known.node_metrics):
        skew = skew_of(report)
        if skew is None or abs(skew) <= SKEW_SECONDS:
            continue
        node = facts.name(report)
        way = "ahead of" if skew > 0 else "behind"
        trap = SKEW_NODE_LONG if abs(skew) > LONG_SKEW_SECONDS else SKEW_NODE
        yield trap.found(f"the clock of {node} is {abs(skew):.0f} s {way} the API server's", node)
    clock = facts.given(known.clock)
    skew = clock.ours - clock.server
    if abs(skew) > SKEW_SECONDS:
        yield SKEW_HERE.found(f"the clock of this machine is {skew:+.0f} s off the API server's")


def skew_of(report: facts.Raw) -> float | None:
    """Return how far a node's clock is ahead: what the agent wrote against when it was written."""
    written = updated_at(report)
    moments = [
        str(entry["time"])
        for entry in facts.stated(report.get("metadata") or {}, "managedFields")
        if entry.get("subresource") == "status" and entry.get("time")
        and "f:updateTime" in ((entry.get("fieldsV1") or {}).get("f:status") or {})
    ]  # fmt: skip
    if written is None or not moments:
        return None
    return written - max(durations.timestamp(moment) for moment in moments)


def updated_at(report: facts.Raw) -> float | None:
    """Return the moment of a NodeMetric's last update, None where there was none."""
    written = (report.get("status") or {}).get("updateTime")
    try:
        return durations.timestamp(str(written)) if written else None
    except ValueError:
        return None


def is_virtual(node: facts.Raw) -> bool:
    """Whether a node is no machine."""
    taints = {str(t.get("key")) for t in facts.stated(node.get("spec") or {}, "taints")}
    kind = facts.meta(node, "labels").get(names.LABEL_VIRTUAL_NODE)
    return kind == "virtual-kubelet" or "virtual-kubelet.io/provider" in taints


def agents(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether every node reports, and has its policy."""
    nodes = facts.given(known.nodes)
    reports = {facts.name(r): r for r in facts.given(known.node_metrics)}
    silent: list[str] = []
    virtual: list[str] = []
    stale: list[tuple[str, float]] = []
    for node in nodes:
        name = facts.name(node)
        at = updated_at(reports.get(name) or {})
        if at is None:
            (virtual if is_virtual(node) else silent).append(name)
        elif known.now - at > STALE_SECONDS:
            stale.append((name, known.now - at))
    if silent:
        yield NO_AGENT.found(
            f"{len(silent)} of {wording.count(len(nodes), 'node', 'nodes')} "
            f"{wording.form(len(silent), 'reports', 'report')} nothing: {findings.some(silent)}",
            silent[0],
        )
    for name, age in stale:
        minutes = wording.count(f"{age / 60:.0f}", "minute", "minutes")
        yield STALE.found(f"the last report of {name} is {minutes} old", name)
    if virtual:
        yield VIRTUAL.found(f"virtual nodes without an agent: {findings.some(virtual)}", virtual[0])
    slos = facts.given(known.node_slos)
    held = sorted({facts.name(thing) for thing in (*reports.values(), *slos) if is_held(thing)})
    if held:
        yield HELD.found(f"NodeMetric or NodeSLO of {findings.some(held)}", held[0])
    policies = {facts.name(slo) for slo in slos}
    without = [
        facts.name(n) for n in nodes if facts.name(n) in reports and facts.name(n) not in policies
    ]
    if without:
        yield NO_SLO.found(f"nodes without a NodeSLO: {findings.some(without)}", without[0])


def is_held(thing: facts.Raw) -> bool:
    """Whether our manager's name owns fields of a spec that it did not apply itself."""
    return any(
        entry.get("manager") == MANAGER
        and entry.get("operation") == "Update"
        and not entry.get("subresource")
        and "f:spec" in (entry.get("fieldsV1") or {})
        for entry in facts.stated(thing.get("metadata") or {}, "managedFields")
    )


def managers(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether there is a leader, and whether colocation is configured."""
    if why := facts.leaderless(known):
        yield NO_LEADER.found(why, f"{known.namespace}/{facts.MANAGER_LEASE}")
    where = f"{known.namespace}/{names.CONFIG_MAP_SLO}"
    settings = facts.given(known.config_maps).get(names.CONFIG_MAP_SLO)
    if settings is None:
        yield SETTINGS.found(f"ConfigMap {where} does not exist", where)
        return
    try:
        written = json.loads((settings.get("data") or {}).get("colocation-config") or "{}")
    except ValueError as error:
        yield SETTINGS_UNREADABLE.found(f"ConfigMap {where}: colocation-config: {error}", where)
        return
    if isinstance(written, dict) and written.get("enable") is not True:
        yield SETTINGS.found(f"ConfigMap {where}: colocation-config does not say enable", where)


def switches(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether every process enforces what it decides."""
    maps = facts.given(known.config_maps)
    written = (maps.get(names.CONFIG_MAP_SWITCHES) or {}).get("data") or {}
    where = f"{known.namespace}/{names.CONFIG_MAP_SWITCHES}"
    nodes = () if isinstance(known.nodes, facts.Unknown) else known.nodes
    labels = {facts.name(one): (one.get("metadata") or {}).get("labels") or {} for one in nodes}
    said, unknown = live_switches.told(written, labels)
    for sentence in unknown:
        yield SWITCH_UNKNOWN.found(f"{where}: {sentence}", where)
    for sentence in said:
        yield SWITCHED.found(f"{where}: {sentence}", where)
    for process in ("webhook", "agent"):
        if facts.settings(maps, process).get("mode") == "observe":
            yield SWITCHED.found(f"the settings of the {process} say observe", f"koord-{process}")
    if facts.settings(maps, "extender").get("observe"):
        yield SWITCHED.found("the settings of the extender say observe", "koord-extender")


CHECKS = (
    findings.Check("clock", "all clocks agree", CLOCK_TRAPS, clocks),
    findings.Check("agent", "every node reports and has its policy", AGENT_TRAPS, agents),
    findings.Check("manager", "a manager leads", MANAGER_TRAPS, managers),
    findings.Check("switch", "every process enforces what it decides", SWITCH_TRAPS, switches),
)
