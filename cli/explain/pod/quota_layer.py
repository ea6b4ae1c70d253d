"""The part of a pod's story that is about its quota: which one, why, and what it waits for."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from api import names
from api.kubernetes import core
from cli.explain import stories
from cli.quota import cluster as clusters
from cli.quota import queue
from domain import wording
from manager.quota import objects

CONDITION: Final = names.CONDITION_QUOTA
_MOST: Final = 5


class Planned(NamedTuple):
    """What the extender's planner says about a pod that its quota has no room for."""

    victims: tuple[tuple[str, int], ...] = ()
    """Namespace/name and priority of those that it would evict, the most important first."""
    node: str = ""
    guarded: bool = False
    """Whether disruption budgets refuse some of that now."""
    reason: str = ""
    """Why it would evict no pod."""


def told(
    cluster: clusters.Cluster | None, pod: core.Pod, planned: Planned | None = None
) -> stories.Chapter:
    """Tell which quota a pod counts in and why, and where it stands in line while it waits."""
    label = pod.metadata.labels.get(names.LABEL_QUOTA_NAME, "")
    if cluster is None:
        unread = (f"It names quota {label}; quotas could not be read.",) if label else ()
        return stories.Chapter("quota", unread, {"quota": label})
    name = cluster.forest.name_of(label, pod.metadata.namespace)
    sentences = list(_membership(cluster, pod, label, name))
    figures: dict[str, Any] = {"quota": name}
    held = cluster.pods.get(pod.metadata.uid)
    if held is not None and not held.node and name:
        sentences += _waiting(cluster, held, name, pod)
        if _is_short(cluster, held, name):
            sentences.append(_preemption(cluster, held, name, planned))
        figures["preempts"] = [key for key, _ in planned.victims] if planned is not None else []
    return stories.Chapter("quota", tuple(sentences), figures)


def _membership(cluster: clusters.Cluster, pod: core.Pod, label: str, name: str) -> Iterator[str]:
    namespace = pod.metadata.namespace
    if not cluster.quotas and not label:
        return
    if label and label != name:
        where = "the default quota" if name == names.DEFAULT_QUOTA else f"quota {name or 'none'}"
        yield f"It names quota {label}, which does not exist: it counts in {where}."
    elif label:
        yield f"It counts in quota {name}, which its label {names.LABEL_QUOTA_NAME} names."
    elif name == names.DEFAULT_QUOTA:
        yield f"It names no quota and namespace {namespace} is bound to none: the default quota."
    elif name:
        yield f"It counts in quota {name}, to which namespace {namespace} is bound."
    if pod.metadata.labels.get(names.LABEL_QUOTA_PREEMPTIBLE) == "false" and name:
        yield "It is never preempted, so it has to fit into the minimum of its quota."


def _waiting(
    cluster: clusters.Cluster, held: objects.QuotaPod, name: str, pod: core.Pod
) -> Iterator[str]:
    use = held.use
    short = cluster.forest.shortage(name, use.requests, preemptible=use.preemptible)
    hold = queue.holds(cluster).get(held.uid)
    if short is not None:
        yield f"Its quota has no room for it: {short.text()}."
    elif hold is not None:
        yield stories.ended(f"It waits behind the gate {names.GATE_QUOTA}: {hold.note}")
    elif cluster.forest.quota(name) is not None:
        yield f"Quota {name} has room for it."
    if hold is not None:
        yield f"It is number {hold.place} of {hold.of} that wait for {name}."
    condition = pod.status.condition(CONDITION)
    if condition is not None and condition.status == "False" and condition.message:
        since = f" since {condition.last_transition_time}" if condition.last_transition_time else ""
        yield f"The manager says{since}: {stories.ended(condition.message)}"


def _is_short(cluster: clusters.Cluster, held: objects.QuotaPod, name: str) -> bool:
    use = held.use
    short = cluster.forest.shortage(name, use.requests, preemptible=use.preemptible)
    return short is not None


def may_preempt(cluster: clusters.Cluster | None, pod: core.Pod) -> bool:
    """Whether anybody could leave for a pod, so that the planner is to be asked."""
    held = cluster.pods.get(pod.metadata.uid) if cluster is not None else None
    if cluster is None or held is None or held.node or not held.preempts:
        return False
    name = cluster.quota_of(held)
    return bool(name and _is_short(cluster, held, name) and preemptible(cluster, held, name))


def _preemption(
    cluster: clusters.Cluster, held: objects.QuotaPod, name: str, planned: Planned | None
) -> str:
    if not held.preempts:
        return "Its preemptionPolicy is Never: it waits until others end."
    if not preemptible(cluster, held, name):
        return f"No preemptible pod of {name} has a lower priority than its {held.priority}."
    if planned is None:
        return "Whom the extender would evict for it could not be planned."
    if not planned.victims:
        return stories.ended(f"No pod is preempted for it now: {planned.reason}")
    listed = ", ".join(f"{key} (priority {number})" for key, number in planned.victims[:_MOST])
    more = len(planned.victims) - _MOST
    listed += f" and {more} more" if more > 0 else ""
    guarded = ", though disruption budgets refuse some of that now" if planned.guarded else ""
    return f"The extender would evict {listed} for it, for node {planned.node}{guarded}."


def preemptible(
    cluster: clusters.Cluster, held: objects.QuotaPod, name: str
) -> list[objects.QuotaPod]:
    """Return the pods among which victims are chosen: of its quota, less important, preemptible."""
    found = [
        pod
        for pod in cluster.pods.values()
        if pod.node
        and pod.use.preemptible
        and not pod.terminating
        and pod.priority < held.priority
        and cluster.quota_of(pod) == name
    ]
    return sorted(found, key=lambda pod: (pod.priority, -pod.started_at, pod.key))


def helps(cluster: clusters.Cluster | None, pod: core.Pod) -> tuple[str, ...]:
    """Return what would let a pod run that waits for quota."""
    held = cluster.pods.get(pod.metadata.uid) if cluster is not None else None
    if cluster is None or held is None or held.node:
        return ()
    name = cluster.quota_of(held)
    short = cluster.forest.shortage(name, held.use.requests, preemptible=held.use.preemptible)
    if short is None:
        return ()
    needs = ", ".join(
        wording.named(key, short.used.get(key, 0) + short.requested.get(key, 0) - short.limit[key])
        for key in short.exceeded
    )
    sentence = (
        f"{needs} less used in quota {short.quota}, or more of it: `koord explain quota "
        f"{short.quota}` has the sum, `koord simulate quota` tries a change"
    )
    return (sentence,)
