"""What `kubectl get` shows of the built-in kinds."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

Object = dict[str, Any]
Cell = Callable[[Object, float], Any]
Columns = tuple[tuple[str, Cell, int], ...]

_NONE = "<none>"


def since(stamp: Any, now: float) -> str:
    """Return the time since a timestamp in the short form of kubectl."""
    if not stamp:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(str(stamp)).timestamp()
    except ValueError:
        return "<invalid>"
    return duration(now - then)


def duration(seconds: float) -> str:
    """Return a duration in at most two units, coarser the longer it is."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    steps = (
        (total < 120, f"{total}s"),
        (minutes < 10, _two(minutes, "m", total % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _two(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (hours < 192, _two(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
        (days < 2920, _two(days // 365, "y", days % 365, "d")),
    )
    return next((text for fits, text in steps if fits), f"{days // 365}y")


def _two(first: int, unit: str, second: int, small: str) -> str:
    return f"{first}{unit}{second}{small}" if second else f"{first}{unit}"


def _at(item: Any, path: str, default: Any = None) -> Any:
    for name in path.split("."):
        item = item.get(name) if isinstance(item, Mapping) else None
    return default if item is None else item


def _field(path: str, default: Any = _NONE) -> Cell:
    return lambda item, _: _at(item, path, default)


def _count(path: str) -> Cell:
    return lambda item, _: len(_at(item, path, ()))


def _age(item: Object, now: float) -> str:
    return since(item["metadata"].get("creationTimestamp"), now)


def _pod_ready(item: Object, _: float) -> str:
    statuses = _at(item, "status.containerStatuses", ())
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(_at(item, 'spec.containers', ()))}"


def _pod_status(item: Object, _: float) -> str:
    status = item.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        told = (state.get("waiting") or state.get("terminated") or {}).get("reason")
        reason = told or reason
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating"
    return str(reason)


def _restarts(item: Object, _: float) -> str:
    return str(sum(s.get("restartCount", 0) for s in _at(item, "status.containerStatuses", ())))


def _gates(item: Object, _: float) -> str:
    gates = _at(item, "spec.readinessGates", ())
    conditions = {c.get("type"): c.get("status") for c in _at(item, "status.conditions", ())}
    passed = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else _NONE


def _node_status(item: Object, _: float) -> str:
    ready = next((c for c in _at(item, "status.conditions", ()) if c.get("type") == "Ready"), None)
    words = [
        "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    ]
    if _at(item, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(item: Object, _: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = item["metadata"].get("labels") or {}
    return ",".join(sorted(k.removeprefix(prefix) for k in labels if k.startswith(prefix))) or _NONE


def _address(kind: str) -> Cell:
    def cell(item: Object, _: float) -> str:
        addresses = _at(item, "status.addresses", ())
        return next((a["address"] for a in addresses if a.get("type") == kind), _NONE)

    return cell


def _ports(item: Object, _: float) -> str:
    shown = [f"{p.get('port')}/{p.get('protocol', 'TCP')}" for p in _at(item, "spec.ports", ())]
    return ",".join(shown) or _NONE


def _selector(path: str) -> Cell:
    def cell(item: Object, _: float) -> str:
        labels = _at(item, path, {})
        return ",".join(f"{k}={v}" for k, v in sorted(labels.items())) or _NONE

    return cell


def _containers(what: str) -> Cell:
    def cell(item: Object, _: float) -> str:
        containers = _at(item, "spec.template.spec.containers", ())
        return ",".join(str(container.get(what, "")) for container in containers)

    return cell


def _last_seen(item: Object, now: float) -> str:
    stamp = (
        _at(item, "series.lastObservedTime")
        or item.get("lastTimestamp")
        or item.get("eventTime")
        or item.get("firstTimestamp")
        or item["metadata"].get("creationTimestamp")
    )
    return since(stamp, now)


def _event_object(item: Object, _: float) -> str:
    about = item.get("involvedObject") or item.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _message(item: Object, _: float) -> str:
    return str(item.get("message") or item.get("note") or "").strip()


def _source(item: Object, _: float) -> str:
    source = item.get("source") or item.get("deprecatedSource") or {}
    component = source.get("component") or item.get("reportingComponent")
    return str(component or item.get("reportingController") or "")


def _ready_of(item: Object, _: float) -> str:
    return f"{_at(item, 'status.readyReplicas', 0)}/{_at(item, 'spec.replicas', 0)}"


def _job_status(item: Object, _: float) -> str:
    for condition in _at(item, "status.conditions", ()):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return str(condition["type"])
    return "Suspended" if _at(item, "spec.suspend") else "Running"


def _completions(item: Object, _: float) -> str:
    return f"{_at(item, 'status.succeeded', 0)}/{_at(item, 'spec.completions', 1)}"


def _job_duration(item: Object, now: float) -> str:
    start, end = _at(item, "status.startTime"), _at(item, "status.completionTime")
    if not start:
        return ""
    return since(start, datetime.fromisoformat(end).timestamp() if end else now)


def _role_ref(item: Object, _: float) -> str:
    return f"{_at(item, 'roleRef.kind', '')}/{_at(item, 'roleRef.name', '')}"


_AGE = ("Age", _age, 0)
_EVENTS: Columns = (
    ("Last Seen", _last_seen, 0),
    ("Type", _field("type", ""), 0),
    ("Reason", _field("reason", ""), 0),
    ("Object", _event_object, 0),
    ("Source", _source, 1),
    ("Message", _message, 0),
    ("Name", _field("metadata.name"), 1),
)
_WEBHOOKS: Columns = (("Webhooks", _count("webhooks"), 0), _AGE)
_CREATED: Columns = (("Created At", _field("metadata.creationTimestamp"), 0),)
_BINDING: Columns = (("Role", _role_ref, 0), _AGE)

BUILT_IN: Mapping[tuple[str, str], Columns] = {
    ("", "pods"): (
        ("Ready", _pod_ready, 0),
        ("Status", _pod_status, 0),
        ("Restarts", _restarts, 0),
        _AGE,
        ("IP", _field("status.podIP"), 1),
        ("Node", _field("spec.nodeName"), 1),
        ("Nominated Node", _field("status.nominatedNodeName"), 1),
        ("Readiness Gates", _gates, 1),
    ),
    ("", "nodes"): (
        ("Status", _node_status, 0),
        ("Roles", _roles, 0),
        _AGE,
        ("Version", _field("status.nodeInfo.kubeletVersion", ""), 0),
        ("Internal-IP", _address("InternalIP"), 1),
        ("External-IP", _address("ExternalIP"), 1),
        ("OS-Image", _field("status.nodeInfo.osImage", "<unknown>"), 1),
        ("Kernel-Version", _field("status.nodeInfo.kernelVersion", "<unknown>"), 1),
        ("Container-Runtime", _field("status.nodeInfo.containerRuntimeVersion", "<unknown>"), 1),
    ),
    ("", "namespaces"): (("Status", _field("status.phase", ""), 0), _AGE),
    ("", "configmaps"): (("Data", _count("data"), 0), _AGE),
    ("", "secrets"): (("Type", _field("type", ""), 0), ("Data", _count("data"), 0), _AGE),
    ("", "serviceaccounts"): (("Secrets", _count("secrets"), 0), _AGE),
    ("", "services"): (
        ("Type", _field("spec.type", ""), 0),
        ("Cluster-IP", _field("spec.clusterIP"), 0),
        ("External-IP", lambda _item, _now: _NONE, 0),
        ("Port(s)", _ports, 0),
        _AGE,
        ("Selector", _selector("spec.selector"), 1),
    ),
    ("", "events"): _EVENTS,
    ("coordination.k8s.io", "leases"): (("Holder", _field("spec.holderIdentity", ""), 0), _AGE),
    ("scheduling.k8s.io", "priorityclasses"): (
        ("Value", _field("value", 0), 0),
        ("Global-Default", _field("globalDefault", False), 0),
        _AGE,
        ("PreemptionPolicy", _field("preemptionPolicy", ""), 0),
    ),
    ("apps", "deployments"): (
        ("Ready", _ready_of, 0),
        ("Up-to-date", _field("status.updatedReplicas", 0), 0),
        ("Available", _field("status.availableReplicas", 0), 0),
        _AGE,
        ("Containers", _containers("name"), 1),
        ("Images", _containers("image"), 1),
        ("Selector", _selector("spec.selector.matchLabels"), 1),
    ),
    ("apps", "replicasets"): (
        ("Desired", _field("spec.replicas", 0), 0),
        ("Current", _field("status.replicas", 0), 0),
        ("Ready", _field("status.readyReplicas", 0), 0),
        _AGE,
        ("Containers", _containers("name"), 1),
        ("Images", _containers("image"), 1),
        ("Selector", _selector("spec.selector.matchLabels"), 1),
    ),
    ("batch", "jobs"): (
        ("Status", _job_status, 0),
        ("Completions", _completions, 0),
        ("Duration", _job_duration, 0),
        _AGE,
        ("Containers", _containers("name"), 1),
        ("Images", _containers("image"), 1),
        ("Selector", _selector("spec.selector.matchLabels"), 1),
    ),
    ("policy", "poddisruptionbudgets"): (
        ("Min Available", _field("spec.minAvailable", "N/A"), 0),
        ("Max Unavailable", _field("spec.maxUnavailable", "N/A"), 0),
        ("Allowed Disruptions", _field("status.disruptionsAllowed", 0), 0),
        _AGE,
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CREATED,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("rbac.authorization.k8s.io", "roles"): _CREATED,
    ("rbac.authorization.k8s.io", "clusterroles"): _CREATED,
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
}
