"""Pods that leave because more is requested of what is lent than the node lends. Pure."""

from collections.abc import Mapping

import msgspec

from agent.decide import eviction
from agent.model import state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources

_LENT: Mapping[str, Mapping[qos.Band, str]] = {
    names.CPU: {qos.Band.MID: names.MID_CPU, qos.Band.BATCH: names.BATCH_CPU},
    names.MEMORY: {qos.Band.MID: names.MID_MEMORY, qos.Band.BATCH: names.BATCH_MEMORY},
}


class Question(msgspec.Struct, frozen=True):
    """What is asked about one native resource."""

    feature: str
    native: str
    fields: str
    """What the settings of this feature begin with, to name them in an answer."""
    bounds: strategy_settings.Bounds
    highest_priority: int | None


def check(question: Question) -> eviction.Idle | None:
    """Return what is wrong with the settings, None where they can be used."""
    bounds, feature = question.bounds, question.feature
    return eviction.check_bounds(
        feature, bounds.threshold, bounds.lower, question.fields
    ) or eviction.check_lent(feature, question.highest_priority)


def task(picture: state.NodeState, question: Question) -> eviction.Task | eviction.Idle:
    """Return what has to be given back, by whom; or why nothing has to."""
    bounds, feature = question.bounds, question.feature
    wrong = check(question)
    if wrong is not None:
        return wrong
    highest = question.highest_priority or 0
    threshold, lower = bounds.threshold, bounds.lower
    asked = {
        pod.pod.metadata.uid: of_pod(pod, question.native)
        for pod in picture.pods
        if eviction.priority(pod) <= highest
    }
    totals: dict[str, int] = {}
    for resource, amount in asked.values():
        totals[resource] = totals.get(resource, 0) + amount
    lent = resources.node_allocatable(picture.node) if picture.node else {}
    found = {
        resource: excess(question.native, total, lent.get(resource, 0), bounds)
        for resource, total in totals.items()
    }
    to_release = {name: amount for name, amount in found.items() if amount is not None}
    if not to_release:
        return eviction.Idle(feature, f"nothing is requested above {threshold} % of allocatable")
    parts = "; ".join(f"{name}: {totals[name]} of {lent.get(name, 0)}" for name in to_release)
    return eviction.Task(
        feature=feature,
        target=eviction.Target.REQUESTED,
        to_release=to_release,
        victims=_victims(picture, question, highest),
        released={
            uid: {resource: amount}
            for uid, (resource, amount) in asked.items()
            if resource in to_release
        },
        reason=(
            f"more is requested than {threshold} % of what the node lends ({parts}), "
            f"back to {lower} %"
        ),
        figures={"threshold-percent": threshold or 0, "lower-percent": lower or 0}
        | {f"requested-{name}": float(totals[name]) for name in to_release},
    )


def _victims(
    picture: state.NodeState, question: Question, highest: int
) -> tuple[state.PodState, ...]:
    native = question.native
    return eviction.willing(
        picture.pods,
        question.feature,
        highest,
        lambda pod: of_pod(pod, native)[1],
        lambda pod: _used(pod, native) is not None,
    )


def helpful(task: eviction.Task) -> eviction.Task:
    """Leave out the victims whose eviction would give back nothing of what is wanted."""
    victims = tuple(
        pod for pod in task.victims if any(task.released.get(pod.pod.metadata.uid, {}).values())
    )
    return msgspec.structs.replace(task, victims=victims)


def of_pod(pod: state.PodState, native: str) -> tuple[str, int]:
    """Return the resource that a pod takes in place of a native one, and how much it requests."""
    lent = _LENT[native].get(eviction.band(pod))
    if lent is None:
        return native, resources.pod_requests(pod.pod).get(native, 0)
    return lent, of_lasting(pod.pod, lent)


def of_lasting(pod: core.Pod, resource: str) -> int:
    """Return what the containers that run as long as a pod does request of one resource."""
    lasting = resources.lasting(pod.spec)
    return sum(state.core_amount(one.resources.requests, resource) for one in lasting)


def excess(
    native: str, total: int, allocatable: int, bounds: strategy_settings.Bounds
) -> int | None:
    """Return how much more is requested than the lower bound; None below the threshold.

    In double precision, and for memory by way of the share of allocatable that is requested: this
    is what Koordinator answers to the byte.
    """
    if allocatable <= 0:
        return total
    share, lower = total / allocatable, (bounds.lower or 0) / 100
    if share <= (bounds.threshold or 0) / 100:
        return None
    if native == names.MEMORY:
        return int((share - lower) * allocatable)
    return int(total - lower * allocatable)


def _used(pod: state.PodState, native: str) -> float | None:
    return pod.usage.cpu if native == names.CPU else pod.usage.memory
