"""What the stock scheduler itself checks and scores, as far as the simulator has it; pure."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from api.kubernetes import selectors
from api.wire import quantity

Object = Mapping[str, Any]
Amounts = Mapping[str, int]

PODS = "pods"
# The stock scheduler scores a container without requests as if it had asked for this much.
UNSTATED = {"cpu": 100, "memory": 200 * 1024 * 1024}
MAX_SCORE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class PodInfo:
    """What the checks need of a pod, worked out once per version."""

    uid: str
    namespace: str
    name: str
    priority: int
    requests: Amounts
    scored: Amounts
    ports: frozenset[tuple[str, str, int]]
    labels: Mapping[str, str]
    started: str
    raw: Object

    @property
    def key(self) -> str:
        """The name that the queue uses."""
        return f"{self.namespace}/{self.name}"

    @property
    def node(self) -> str:
        """The node it is on, empty while it waits."""
        return str(self.raw["spec"].get("nodeName", ""))

    @property
    def nominated(self) -> str:
        """The node it was promised, if any."""
        return str(self.raw.get("status", {}).get("nominatedNodeName", ""))


@dataclasses.dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node and the pods on it, promised ones included."""

    name: str
    raw: Object
    allocatable: Amounts
    pods: Mapping[str, PodInfo]
    used: Amounts

    def with_pods(self, pods: Mapping[str, PodInfo]) -> "NodeInfo":
        """The same node with other pods on it."""
        return dataclasses.replace(self, pods=pods, used=total(pods.values()))


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod cannot go to a node, and whether evicting other pods could change that."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = True


def read_pod(raw: Object) -> PodInfo:
    """Work out what the checks need of a pod."""
    meta, spec = raw["metadata"], raw["spec"]
    return PodInfo(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        priority=int(spec.get("priority") or 0),
        requests=_requests(spec),
        scored=_scored(spec),
        ports=_ports(spec),
        labels=meta.get("labels") or {},
        started=raw.get("status", {}).get("startTime") or meta.get("creationTimestamp", ""),
        raw=raw,
    )


def read_node(raw: Object, pods: Mapping[str, PodInfo]) -> NodeInfo:
    """Work out what the checks need of a node."""
    listed = raw.get("status", {}).get("allocatable") or {}
    amounts = {name: quantity.amount(name, value) for name, value in listed.items()}
    return NodeInfo(raw["metadata"]["name"], raw, amounts, pods, total(pods.values()))


def total(pods: Iterable[PodInfo]) -> dict[str, int]:
    """The requests of pods together; `pods` counts them."""
    used = {PODS: 0}
    for pod in pods:
        used[PODS] += 1
        for name, amount in pod.requests.items():
            used[name] = used.get(name, 0) + amount
    return used


def check(pod: PodInfo, node: NodeInfo, nominated: Iterable[PodInfo] = ()) -> Refusal | None:
    """Return the first refusal in the order of the stock plug-ins, None when the pod fits.

    `nominated` are pods of at least the same priority that were promised room on this node.
    """
    for rule in (_unschedulable, _node_name, _taints, _affinity):
        refusal = rule(pod, node)
        if refusal is not None:
            return refusal
    extra = [other for other in nominated if other.uid not in node.pods and other.uid != pod.uid]
    return _free_ports(pod, node) or _fit(pod, node, extra)


def score(pod: PodInfo, node: NodeInfo) -> int:
    """Score 0 to 100 by how much of cpu and memory stays free."""
    scores = []
    for name in UNSTATED:
        allocatable = node.allocatable.get(name, 0)
        if allocatable <= 0:
            continue
        wanted = pod.scored[name] + sum(other.scored[name] for other in node.pods.values())
        scores.append(max(0, allocatable - wanted) * MAX_SCORE // allocatable)
    return sum(scores) // len(scores) if scores else 0


def sample_size(nodes: int, percentage: int = 0) -> int:
    """How many feasible nodes the stock scheduler looks for before it stops looking."""
    if nodes < 100:
        return nodes
    percent = percentage or max(5, 50 - nodes // 125)
    return min(nodes, max(100, nodes * percent // 100))


def _unschedulable(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if not node.raw.get("spec", {}).get("unschedulable"):
        return None
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if _tolerated(pod, taint):
        return None
    return Refusal("NodeUnschedulable", ("node(s) were unschedulable",), resolvable=False)


def _node_name(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if pod.node in ("", node.name):
        return None
    reason = "node(s) didn't match the requested node name"
    return Refusal("NodeName", (reason,), resolvable=False)


def _taints(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    for taint in node.raw.get("spec", {}).get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _tolerated(pod, taint):
            reason = "node(s) had untolerated taint(s)"
            return Refusal("TaintToleration", (reason,), resolvable=False)
    return None


def _tolerated(pod: PodInfo, taint: Mapping[str, Any]) -> bool:
    tolerations = pod.raw["spec"].get("tolerations") or ()
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def is_selected(pod: PodInfo, node: NodeInfo) -> bool:
    """Whether a node satisfies node selector and required node affinity of a pod."""
    spec = pod.raw["spec"]
    labels = node.raw["metadata"].get("labels") or {}
    fits = all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if fits and required is not None:
        terms = required.get("nodeSelectorTerms") or ()
        fits = selectors.matches_any_term(terms, labels, {"metadata.name": node.name})
    return fits


def _affinity(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if is_selected(pod, node):
        return None
    reason = "node(s) didn't match Pod's node affinity/selector"
    return Refusal("NodeAffinity", (reason,), resolvable=False)


def _free_ports(pod: PodInfo, node: NodeInfo) -> Refusal | None:
    if not pod.ports:
        return None
    for other in node.pods.values():
        if any(_clash(mine, theirs) for mine in pod.ports for theirs in other.ports):
            reason = "node(s) didn't have free ports for the requested pod ports"
            return Refusal("NodePorts", (reason,))
    return None


def _clash(mine: tuple[str, str, int], theirs: tuple[str, str, int]) -> bool:
    anywhere = "0.0.0.0"  # noqa: S104 - a host port without an address is on every address
    return mine[1:] == theirs[1:] and (mine[0] == theirs[0] or anywhere in (mine[0], theirs[0]))


def _fit(pod: PodInfo, node: NodeInfo, nominated: Iterable[PodInfo]) -> Refusal | None:
    promised = total(nominated)
    reasons = []
    resolvable = True
    wanted = {PODS: 1, **pod.requests}
    for name, amount in wanted.items():
        allocatable = node.allocatable.get(name, 0)
        used = node.used.get(name, 0) + promised.get(name, 0)
        if amount > 0 and amount > allocatable - used:
            reasons.append("Too many pods" if name == PODS else f"Insufficient {name}")
            resolvable = resolvable and amount <= allocatable
    return Refusal("NodeResourcesFit", tuple(reasons), resolvable) if reasons else None


def _requests(spec: Object) -> dict[str, int]:
    """The larger of all containers together and the largest step of initialisation, and overhead.

    A restartable init container runs beside everything that starts after it.
    """
    together: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, amounts)
            _raise(largest, sidecars)
        else:
            _raise(largest, _sum(sidecars, amounts))
    for container in spec.get("containers") or ():
        _add(together, _amounts(container))
    together = _sum(together, sidecars)
    _raise(together, largest)
    overhead = spec.get("overhead") or {}
    return _sum(together, {k: quantity.amount(k, v) for k, v in overhead.items()})


def _scored(spec: Object) -> dict[str, int]:
    scored = dict.fromkeys(UNSTATED, 0)
    for container in spec.get("containers") or ():
        amounts = _amounts(container)
        for name, unstated in UNSTATED.items():
            scored[name] += amounts.get(name, unstated)
    return scored


def _amounts(container: Object) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: quantity.amount(name, value) for name, value in requests.items()}


def _ports(spec: Object) -> frozenset[tuple[str, str, int]]:
    return frozenset(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])  # noqa: S104 - as above
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )


def _add(target: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        target[name] = target.get(name, 0) + amount


def _raise(target: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        target[name] = max(target.get(name, 0), amount)


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    result = dict(left)
    _add(result, right)
    return result
