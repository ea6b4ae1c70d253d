"""A snapshot as `simulation.what_if` plays it: nodes, pods and how long they run. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Final

from api import names
from api.koordinator import scheduling
from api.kubernetes import core
from api.wire import durations
from cli import reading
from cli.quota import cluster as clusters
from cli.reservations import cluster as reservations
from domain.pods import resources as amounts
from domain.quota.simulation import fit, reserved, what_if, what_if_reclaim
from domain.reservations import matching, usage
from domain.reservations import model as reservation_model
from manager.quota import objects
from manager.quota.waiting import gates_pods

_LARGEST: Final = 1 << 52
"""No node offers more of anything; sums of such amounts stay within 64 bits."""
_GRACE: Final = 30.0
"""Seconds that a terminating pod has left where it does not say."""


def nodes(cluster: clusters.Cluster, more: Mapping[str, int] | None = None) -> list[fit.Node]:
    """Return the nodes; `more` that the cluster is said to have comes as one node."""
    found = []
    for name, node in cluster.nodes.items():
        taints = tuple(one for one in node.spec.taints if one.effect in {"NoSchedule", "NoExecute"})
        offered = reading.either({}, amounts.node_allocatable, node)
        offered = {key: max(0, min(amount, _LARGEST)) for key, amount in offered.items()}
        ready = node.ready and not node.spec.unschedulable
        found.append(fit.Node(name, node.metadata.labels, taints, offered, ready))
    added = {key: amount for key, amount in (more or {}).items() if amount > 0}
    if added:
        roomy = {key: 1 << 50 for one in found for key in one.allocatable}
        found.append(fit.Node("what-if", {}, (), roomy | added))
    return found


def pods(cluster: clusters.Cluster, declared: Mapping[str, float]) -> list[what_if.Pod]:
    """Return every pod that takes part; `declared` is how many seconds pods of a quota run."""
    observed = _observed(cluster.raw.values())
    found = []
    for uid, pod in cluster.pods.items():
        if pod.node and pod.node not in cluster.nodes:
            continue
        line = gates_pods.line_pod(pod)
        if line is None:
            continue
        raw = cluster.raw[uid]
        seconds = declared.get(cluster.quota_of(pod))
        if seconds is None:
            seconds = observed.get(_owner(raw), raw.spec.active_deadline_seconds)
        started = pod.started_at or pod.created_at
        if pod.terminating:
            grace = raw.spec.termination_grace_period_seconds
            seconds = cluster.now - started + (_GRACE if grace is None else grace)
        found.append(what_if.Pod(uid, pod.key, line, pod.node, started, seconds, pod.nominated))
    return found


def _owner(pod: core.Pod) -> str:
    controller = pod.metadata.controller
    return controller.uid if controller is not None else ""


def _observed(pods: Iterable[core.Pod]) -> dict[str, float]:
    """Return how long finished pods ran, the median by owner."""
    ran: dict[str, list[float]] = {}
    for pod in pods:
        owner = _owner(pod)
        if pod.status.phase == "Succeeded" and owner:
            seconds = reading.either(None, _ran, pod)
            if seconds is not None and seconds > 0:
                ran.setdefault(owner, []).append(seconds)
    return {owner: statistics.median(found) for owner, found in ran.items()}


def _ran(pod: core.Pod) -> float | None:
    ended = [
        durations.timestamp(str(state["finishedAt"]))
        for status in pod.status.container_statuses
        if (state := status.state.get("terminated") or {}).get("finishedAt")
    ]
    if not ended or not pod.status.start_time:
        return None
    return max(ended) - durations.timestamp(pod.status.start_time)


def reserves(cluster: clusters.Cluster) -> reserved.Reserves:
    """Return what Reservations keep, and which waiting pods may use it.

    One that has no node yet is not played: kube-scheduler chooses it.
    """
    waiting = [
        pod for uid, pod in cluster.raw.items() if uid in cluster.pods and not pod.spec.node_name
    ]
    marked = [reading.either(None, usage.owner_pod, pod) for pod in cluster.raw.values()]
    named = usage.by_reservation(one for one in marked if one is not None)
    found = []
    for raw in cluster.reservations:
        one = reading.either(None, reservations.reserved, raw, named)
        if one is not None and one.usage.phase in (scheduling.AVAILABLE, scheduling.WAITING):
            found.append(_reserve(cluster, one, waiting))
    needing = [
        pod.metadata.uid
        for pod in waiting
        if names.ANNOTATION_RESERVATION_AFFINITY in pod.metadata.annotations
    ]
    return reserved.Reserves(found, needing)


def _reserve(
    cluster: clusters.Cluster, one: reservations.Reserved, waiting: Iterable[core.Pod]
) -> reserved.Reserve:
    used, written = one.usage, one.written
    over = _over(cluster, written)
    # As it will be when the pods have left that run in its place.
    status = written.status.model_copy(update={"phase": scheduling.AVAILABLE})
    one = one._replace(written=written.model_copy(update={"status": status}))
    node = cluster.nodes.get(used.node)
    labels = node.metadata.labels if node is not None else {}
    users = set()
    for pod in waiting:
        suits = reading.either(None, reservations.suitability, one, pod, labels)
        if suits is not None and suits.match is matching.Match.MATCHED:
            users.add(pod.metadata.uid)
    read = reservation_model.read(written) if not used.fault else None
    restricted = read is not None and read.policy is reservation_model.Policy.RESTRICTED
    return reserved.Reserve(
        name=used.name,
        node=used.node,
        amounts=used.reserved,
        users=frozenset(users),
        owners={owner.uid: owner.requests for owner in used.owners},
        restricted=read.charged if restricted and read is not None else frozenset(),
        once=written.spec.allocate_once,
        until=math.inf if used.ends_at is None else used.ends_at,
        over=over,
    )


def _over(
    cluster: clusters.Cluster, written: scheduling.Reservation
) -> dict[str, Mapping[str, int]]:
    """Return what those pods request that run in the place of a Reservation that is Waiting."""
    if written.status.phase != scheduling.WAITING:
        return {}
    named = (cluster.raw.get(one.uid) for one in written.status.current_owners)
    return {
        pod.metadata.uid: amounts.pod_requests(pod)
        for pod in named
        if pod is not None and not pod.finished and pod.spec.node_name == written.status.node_name
    }


def terms(
    cluster: clusters.Cluster, horizon: float, preemptor: what_if.Preemptor | None = None
) -> what_if.Terms:
    """Return by what rules a cluster is played, for so many seconds."""
    reclaimer = what_if_reclaim.Reclaimer(
        cluster.arguments.delay_evict_time,
        revokes=cluster.arguments.monitor_all_quotas,
        exempt=lambda uid: _exempt(cluster.pods[uid]),
    )
    return what_if.Terms(
        horizon=horizon,
        preemptor=preemptor,
        reclaimer=reclaimer if cluster.reclaims else None,
        reserves=reserves(cluster),
    )


def _exempt(pod: objects.QuotaPod) -> bool:
    """Whether a pod is never evicted for quota."""
    return pod.pinned or gates_pods.is_exempt(pod, names.NAMESPACE)


def play(
    cluster: clusters.Cluster,
    terms: what_if.Terms,
    declared: Mapping[str, float],
    more: Mapping[str, int] | None = None,
) -> what_if.Outcome:
    """Play a cluster forward; its forest may have been changed."""
    there = nodes(cluster, more)
    return what_if.play(cluster.forest, there, pods(cluster, declared), cluster.now, terms)
