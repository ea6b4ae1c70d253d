"""Evict pods when memory is used or requested too much, down to a lower bound."""

from collections.abc import Callable, Collection, Mapping

from agent.decide import eviction, requested
from agent.model import state, strategy_settings
from api import names
from domain.pods import resources

BE_MEMORY_EVICT = "BEMemoryEvict"
MEMORY_ALLOCATABLE_EVICT = "MemoryAllocatableEvict"
MEMORY_EVICT = "MemoryEvict"
FEATURES = (BE_MEMORY_EVICT, MEMORY_ALLOCATABLE_EVICT, MEMORY_EVICT)
FOR_USE = frozenset({BE_MEMORY_EVICT, MEMORY_EVICT})
"""The features that evict for memory in use, as opposed to what is requested."""
ALL_REQUESTED = "MemoryRequestUtilization"
"""The bound on everything requested; it has no gate of its own and comes with `BEMemoryEvict`."""
ONE_AT_A_TIME = 1000
"""How much more than its usage a victim chosen by priority counts for, so that mostly one leaves
per round and the next look says whether another has to."""
_MEMORY = (names.MEMORY, names.MID_MEMORY, names.BATCH_MEMORY)
Answer = eviction.Task | eviction.Idle


def tasks(
    picture: state.NodeState, settings: strategy_settings.MemoryEviction
) -> Mapping[str, Answer]:
    """Return what every feature wants, in the order in which they have their turn."""
    judges: Mapping[str, Callable[[state.NodeState, strategy_settings.MemoryEviction], Answer]] = {
        BE_MEMORY_EVICT: _best_effort,
        ALL_REQUESTED: _all_requested,
        MEMORY_ALLOCATABLE_EVICT: _requested,
        MEMORY_EVICT: _used,
    }
    return {name: judge(picture, settings) for name, judge in judges.items()}


def evict(answers: Mapping[str, Answer], enabled: Collection[str]) -> tuple[eviction.Task, ...]:
    """Return the tasks of the features that are on, with the victims that help."""
    also = {ALL_REQUESTED} if BE_MEMORY_EVICT in enabled else set()
    return tuple(
        requested.helpful(answer) if name == MEMORY_ALLOCATABLE_EVICT else answer
        for name, answer in answers.items()
        if name in {*enabled, *also} and isinstance(answer, eviction.Task)
    )


def _best_effort(picture: state.NodeState, settings: strategy_settings.MemoryEviction) -> Answer:
    excess = _excess(picture, settings, BE_MEMORY_EVICT)
    if isinstance(excess, eviction.Idle):
        return excess
    release, reason, figures = excess
    victims = eviction.ordered(
        eviction.labelled_best_effort(picture.pods, BE_MEMORY_EVICT), _larger_first
    )
    return eviction.Task(
        feature=BE_MEMORY_EVICT,
        target=eviction.Target.USED,
        to_release={names.MEMORY: release},
        victims=victims,
        released=_used_by(victims, 1),
        reason=reason,
        figures=figures,
    )


def _used(picture: state.NodeState, settings: strategy_settings.MemoryEviction) -> Answer:
    highest = settings.highest_priority
    excess = _excess(picture, settings, MEMORY_EVICT)
    if isinstance(excess, eviction.Idle) and excess.misconfigured:
        return excess
    if highest is None:
        return eviction.misconfigured(MEMORY_EVICT, "evictEnabledPriorityThreshold is not set")
    if isinstance(excess, eviction.Idle):
        return excess
    release, reason, figures = excess
    victims = eviction.willing(
        picture.pods, MEMORY_EVICT, highest, lambda pod: pod.usage.memory, _is_sampled
    )
    return eviction.Task(
        feature=MEMORY_EVICT,
        target=eviction.Target.USED,
        to_release={names.MEMORY: release},
        victims=victims,
        released=_used_by(victims, ONE_AT_A_TIME),
        reason=reason,
        figures=figures,
    )


def check_use(settings: strategy_settings.MemoryEviction, feature: str) -> eviction.Idle | None:
    """Return what is wrong with the bounds of usage, None where they can be used."""
    bounds = eviction.of_use(settings.used)
    return eviction.check_bounds(feature, bounds.threshold, bounds.lower, "memoryEvict")


def _excess(
    picture: state.NodeState, settings: strategy_settings.MemoryEviction, feature: str
) -> tuple[int, str, Mapping[str, float]] | eviction.Idle:
    """Return the bytes that have to be given back, why, and the figures."""
    wrong, bounds = check_use(settings, feature), eviction.of_use(settings.used)
    threshold, lower = bounds.threshold, bounds.lower
    if wrong is not None or threshold is None or lower is None:
        return wrong or eviction.Idle(feature, "no bounds")
    capacity = _capacity(picture)
    if capacity <= 0 or picture.usage.memory is None:
        return eviction.Idle(feature, "the node has no memory figure yet")
    percent = picture.usage.memory * 100 // capacity
    if percent < threshold:
        return eviction.Idle(feature, f"the node uses {percent} %, below {threshold} %")
    reason = f"the node uses {percent} % of its memory, threshold {threshold} %, back to {lower} %"
    figures = {
        "node-percent": percent,
        "threshold-percent": threshold,
        "lower-percent": lower,
        "used-bytes": picture.usage.memory,
    }
    return capacity * (percent - lower) // 100, reason, figures


def _capacity(picture: state.NodeState) -> int:
    if picture.node is None:
        return 0
    return state.core_amount(picture.node.status.capacity, names.MEMORY)


def _used_by(victims: Collection[state.PodState], factor: int) -> dict[str, dict[str, int]]:
    return {
        pod.pod.metadata.uid: {names.MEMORY: pod.usage.memory * factor}
        for pod in victims
        if pod.usage.memory is not None
    }


def _is_sampled(pod: state.PodState) -> bool:
    return pod.usage.memory is not None


def _larger_first(one: state.PodState, other: state.PodState) -> bool:
    """Lower priority goes first, then who uses more; of those that use nothing, by name.

    Of two that use the same neither goes before the other, so they keep their order.
    """
    lower = eviction.by_priority(one, other)
    if lower is not None:
        return lower
    mine, theirs = one.usage.memory or 0, other.usage.memory or 0
    if mine == theirs == 0:
        return one.pod.metadata.name > other.pod.metadata.name
    return mine > theirs


def _requested(picture: state.NodeState, settings: strategy_settings.MemoryEviction) -> Answer:
    return requested.task(picture, question(settings))


def question(settings: strategy_settings.MemoryEviction) -> requested.Question:
    """Return what is asked about requests."""
    return requested.Question(
        MEMORY_ALLOCATABLE_EVICT,
        names.MEMORY,
        "memoryAllocatableEvict",
        settings.requested,
        settings.highest_priority_requested,
    )


def _all_requested(picture: state.NodeState, settings: strategy_settings.MemoryEviction) -> Answer:
    """Hold all that is requested, by whatever name, to a share of what the node has."""
    percent = settings.all_requested
    if percent is None:
        return eviction.Idle(ALL_REQUESTED, "memoryRequestUtilizationPercent is not set")
    allocatable = (
        resources.node_allocatable(picture.node).get(names.MEMORY, 0) if picture.node else 0
    )
    if allocatable <= 0:
        return eviction.Idle(ALL_REQUESTED, "the node's memory is unknown")
    asked = {pod.pod.metadata.uid: _everything(pod) for pod in picture.pods if eviction.active(pod)}
    total = sum(asked.values())
    if total * 100 <= allocatable * percent:
        return eviction.Idle(ALL_REQUESTED, f"requests are within {percent} % of allocatable")
    victims = eviction.ordered(
        (
            pod
            for pod in eviction.labelled_best_effort(picture.pods, BE_MEMORY_EVICT)
            if asked.get(pod.pod.metadata.uid)
        ),
        _larger_first,
    )
    return eviction.Task(
        feature=ALL_REQUESTED,
        target=eviction.Target.REQUESTED,
        to_release={names.MEMORY: total - allocatable * percent // 100},
        victims=victims,
        released={uid: {names.MEMORY: amount} for uid, amount in asked.items()},
        reason=(
            f"pods request {total * 100 // allocatable} % of the node's memory, at most "
            f"{percent} % may be"
        ),
        figures={"requested-bytes": total, "threshold-percent": percent},
    )


def _everything(pod: state.PodState) -> int:
    asked = resources.pod_requests(pod.pod)
    return sum(asked.get(name, 0) for name in _MEMORY)
