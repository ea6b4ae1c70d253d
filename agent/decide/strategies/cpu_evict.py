"""Evict pods when best effort is starved of cpu, or when cpu is used or requested too much."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from agent.decide import eviction, requested
from agent.model import state, strategy_settings
from api import names
from api.koordinator import resource_names
from domain import wording

BE_CPU_EVICT = "BECPUEvict"
CPU_ALLOCATABLE_EVICT = "CPUAllocatableEvict"
CPU_EVICT = "CPUEvict"
FEATURES = (BE_CPU_EVICT, CPU_ALLOCATABLE_EVICT, CPU_EVICT)
MOST_LOWER, MOST_UPPER = 60, 99
Answer = eviction.Task | eviction.Idle


class Series(msgspec.Struct, frozen=True):
    """A figure in milli-cores over a window."""

    average: float = 0.0
    last: float = 0.0
    count: int = 0


class Window(msgspec.Struct, frozen=True):
    """What was measured over the window; nothing where there are no samples."""

    interval_seconds: float = 1.0
    """Time between two samples."""
    node: float | None = None
    """Average cores that the node used."""
    usage: Series = Series()
    """What best effort used."""
    request: Series = Series()
    """What best effort requests."""
    limit: Series = Series()
    """What best effort could have used."""


def tasks(
    picture: state.NodeState, settings: strategy_settings.CpuEviction, window: Window
) -> Mapping[str, Answer]:
    """Return what every feature wants, in the order in which they have their turn."""
    judges: Mapping[
        str, Callable[[state.NodeState, strategy_settings.CpuEviction, Window], Answer]
    ] = {
        BE_CPU_EVICT: _starved,
        CPU_ALLOCATABLE_EVICT: _requested,
        CPU_EVICT: _used,
    }
    if picture.capacity_milli <= 0:
        return {name: eviction.Idle(name, "the node's cpu is unknown") for name in judges}
    return {name: judge(picture, settings, window) for name, judge in judges.items()}


def _starved(
    picture: state.NodeState, settings: strategy_settings.CpuEviction, window: Window
) -> Answer:
    """Best effort gets too little of what it requests and wants all that it gets."""
    problem = unusable(settings)
    if problem:
        return eviction.misconfigured(BE_CPU_EVICT, problem)
    lower, upper = settings.satisfaction.lower, settings.satisfaction.threshold
    usage, request, limit = window.usage, window.request, window.limit
    seconds = max(int(window.interval_seconds), settings.window_seconds or 0)
    count = min(usage.count, request.count, limit.count)
    if count * window.interval_seconds < seconds // 3:
        samples = wording.count(count, "sample is", "samples are")
        return eviction.Idle(BE_CPU_EVICT, f"{samples} too few for {seconds} s")
    lent = _lent(picture) if settings.by_allocatable else None
    means, lasts = (limit.average, limit.last) if lent is None else (lent, lent)
    wanted = _missing(usage.average, request.average, means, settings)
    if wanted <= 0 or not _pressed(usage.last, lasts, settings.best_effort_usage):
        return eviction.Idle(BE_CPU_EVICT, "best effort is satisfied or has room")
    if (request.last, lasts) != (request.average, means):
        wanted = min(wanted, _missing(usage.last, request.last, lasts, settings))
        if wanted <= 0:
            return eviction.Idle(BE_CPU_EVICT, "best effort has just become satisfied")
    victims = eviction.ordered(
        eviction.labelled_best_effort(picture.pods, BE_CPU_EVICT), _less_useful
    )
    return eviction.Task(
        feature=BE_CPU_EVICT,
        target=eviction.Target.REQUESTED,
        to_release={names.BATCH_CPU: wanted},
        victims=victims,
        released={pod.pod.metadata.uid: {names.BATCH_CPU: _batch_request(pod)} for pod in victims},
        reason=(
            f"best effort gets {means / 1000:.2f} of the {request.average / 1000:.2f} cores it "
            f"requests and uses {usage.average / 1000:.2f} of them; {lower} % are too little, "
            f"{upper} % enough"
        ),
        figures={
            "usage-milli": usage.average,
            "request-milli": request.average,
            "limit-milli": means,
            "release-milli": wanted,
        },
    )


def unusable(settings: strategy_settings.CpuEviction) -> str:
    """Say what of the settings of satisfaction is missing or makes no sense; empty for nothing."""
    lower, upper = settings.satisfaction.lower, settings.satisfaction.threshold
    field, usage = "cpuEvictBESatisfaction", settings.best_effort_usage
    if lower is None or upper is None:
        return f"{field}{'LowerPercent' if lower is None else 'UpperPercent'} is not set"
    if not 0 < lower <= MOST_LOWER:
        return f"{field}LowerPercent {lower} is not in 1..{MOST_LOWER}"
    if not lower <= upper <= MOST_UPPER:
        return f"{field}UpperPercent {upper} is not in {lower}..{MOST_UPPER}"
    if not 0 <= usage <= 100:
        return f"cpuEvictBEUsageThresholdPercent {usage} is not in 0..100"
    return ""


def _lent(picture: state.NodeState) -> int:
    """Return the batch cpu of the node: nothing counts as next to nothing, unknown as none."""
    allocatable = picture.node.status.allocatable if picture.node else {}
    if names.BATCH_CPU not in resource_names.current(allocatable):
        return -1
    amount = state.core_amount(allocatable, names.BATCH_CPU)
    return 1 if amount == 0 else max(amount, -1)


def _pressed(usage: float, limit: float, percent: int) -> bool:
    """Tell whether best effort uses so much of what it may that it would use more."""
    if limit <= 0:
        return False
    return limit < 1000 or usage / limit >= percent / 100


def _missing(
    usage: float, request: float, limit: float, settings: strategy_settings.CpuEviction
) -> int:
    """Return the requests that have to go until enough of them can be satisfied."""
    if request <= 0 or not _pressed(usage, limit, settings.best_effort_usage):
        return 0
    satisfied = limit / request
    if satisfied > (settings.satisfaction.lower or 0) / 100:
        return 0
    return int(request * ((settings.satisfaction.threshold or 0) / 100 - satisfied))


def _batch_request(pod: state.PodState) -> int:
    return requested.of_lasting(pod.pod, names.BATCH_CPU)


def _less_useful(one: state.PodState, other: state.PodState) -> bool:
    """Lower priority goes first, then who uses most of what it requests."""
    lower = eviction.by_priority(one, other)
    return _share(one) > _share(other) if lower is None else lower


def _share(pod: state.PodState) -> float:
    asked = _batch_request(pod)
    return (pod.usage.cpu or 0.0) * 1000 / asked if asked else 0.0


def _requested(
    picture: state.NodeState, settings: strategy_settings.CpuEviction, _window: Window
) -> Answer:
    return requested.task(picture, question(settings))


def question(settings: strategy_settings.CpuEviction) -> requested.Question:
    """Return what is asked about requests."""
    return requested.Question(
        CPU_ALLOCATABLE_EVICT,
        names.CPU,
        "cpuAllocatableEvict",
        settings.requested,
        settings.highest_priority_requested,
    )


def check_use(settings: strategy_settings.CpuEviction) -> eviction.Idle | None:
    """Return what is wrong with the settings of usage, None where they can be used."""
    bounds = eviction.of_use(settings.used)
    wrong = eviction.check_bounds(CPU_EVICT, bounds.threshold, bounds.lower, "cpuEvict")
    if wrong is None and settings.highest_priority is None and not settings.best_effort:
        return eviction.misconfigured(CPU_EVICT, "evictEnabledPriorityThreshold is not set")
    return wrong


def _used(
    picture: state.NodeState, settings: strategy_settings.CpuEviction, window: Window
) -> Answer:
    """The node as a whole uses too much cpu."""
    wrong, bounds = check_use(settings), eviction.of_use(settings.used)
    threshold, lower = bounds.threshold, bounds.lower
    if wrong is not None or threshold is None or lower is None:
        return wrong or eviction.Idle(CPU_EVICT, "no bounds")
    if window.node is None:
        return eviction.Idle(CPU_EVICT, "the node has no cpu figure yet")
    capacity = picture.capacity_milli
    percent = int(window.node * 1000) * 100 // capacity
    if percent < threshold:
        return eviction.Idle(CPU_EVICT, f"the node uses {percent} %, below {threshold} %")
    waiting = picture.pressure.cpu
    if waiting is not None and settings.pressure is not None and waiting < settings.pressure:
        calm = f"tasks wait for cpu {waiting:.0f} % of the time, below {settings.pressure} %"
        return eviction.Idle(CPU_EVICT, f"the node uses {percent} %, but {calm}")
    release = capacity * (percent - lower) // 100
    pressed = "" if waiting is None else f", tasks wait {waiting:.0f} % of the time"
    return eviction.Task(
        feature=CPU_EVICT,
        target=eviction.Target.USED,
        to_release={names.CPU: release},
        victims=_users(picture, settings.highest_priority),
        released={
            pod.pod.metadata.uid: {names.CPU: int(pod.usage.cpu * 1000)}
            for pod in picture.pods
            if pod.usage.cpu is not None
        },
        reason=(
            f"the node uses {percent} % of its cpu, threshold {threshold} %, back to "
            f"{lower} %{pressed}"
        ),
        figures={"node-percent": percent, "threshold-percent": threshold, "lower-percent": lower}
        | ({} if waiting is None else {"pressure-percent": waiting}),
    )


def _users(picture: state.NodeState, highest: int | None) -> tuple[state.PodState, ...]:
    """Return who may leave because the node is used too much: by priority, or best effort."""
    if highest is not None:
        return eviction.willing(
            picture.pods, CPU_EVICT, highest, lambda pod: pod.usage.cpu, _is_sampled
        )
    return eviction.ordered(eviction.labelled_best_effort(picture.pods, CPU_EVICT), _busier_first)


def _busier_first(one: state.PodState, other: state.PodState) -> bool:
    lower = eviction.by_priority(one, other)
    return (one.usage.cpu or 0.0) > (other.usage.cpu or 0.0) if lower is None else lower


def _is_sampled(pod: state.PodState) -> bool:
    return pod.usage.cpu is not None


def evict(
    answers: Mapping[str, Answer],
    enabled: Collection[str],
) -> tuple[eviction.Task, ...]:
    """Return the tasks of the features that are on, with the victims that help."""
    return tuple(
        requested.helpful(answer) if name == CPU_ALLOCATABLE_EVICT else answer
        for name, answer in answers.items()
        if name in enabled and isinstance(answer, eviction.Task)
    )
