"""Who leaves a node that is short of something, in which order and how many. Pure."""

import enum
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from agent.model import annotations, edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos

DEFAULT_GRACE_SECONDS = 30
"""What Kubernetes writes into a pod that says nothing (terminationGracePeriodSeconds)."""
HIGHEST_LENT_PRIORITY = 7999
"""Above it a pod is production and is never evicted for what others requested."""
LOWER_BY_DEFAULT = 2
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
Before = Callable[[state.PodState, state.PodState], bool]


class Target(enum.Enum):
    """What evicting a pod gives back."""

    USED = "podUsed"
    REQUESTED = "podResourceRequest"


class Task(msgspec.Struct, frozen=True):
    """What one feature wants back and from whom, first victims first."""

    feature: str
    target: Target
    to_release: Mapping[str, int]
    victims: tuple[state.PodState, ...]
    released: Mapping[str, Mapping[str, int]]
    """What each pod would give back, by uid and resource."""
    reason: str
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)


class Idle(msgspec.Struct, frozen=True):
    """A feature that wants nothing: because all is well, or because its settings say nothing."""

    feature: str
    why: str
    misconfigured: bool = False


def pick(
    tasks: Iterable[Task],
    gone: Collection[str] = (),
    refused: Collection[str] = (),
) -> tuple[edits.Eviction, ...]:
    """Choose who leaves now so that all tasks are satisfied together.

    Pods in `gone` were evicted before and will have left soon: what they give back counts already.
    Those in `refused` could not be evicted a moment ago, or were and take long to stop: they are
    passed over, and what they use counts as used.
    """
    tasks = tuple(tasks)
    round_ = _Round(tasks)
    chosen = []
    for task in tasks:
        for pod in task.victims:
            if round_.satisfied(task):
                break
            uid = pod.pod.metadata.uid
            if uid in round_.handled or (uid in refused and uid not in gone):
                continue
            round_.count(uid, task)
            if uid not in gone:
                chosen.append(_eviction(task, pod))
    return tuple(chosen)


class _Round:
    """What has been given back so far, over all tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.handled: set[str] = set()
        self._tasks = tasks
        self._released: dict[tuple[Target, str], int] = {}

    def satisfied(self, task: Task) -> bool:
        return all(
            amount <= self._released.get((task.target, resource), 0)
            for resource, amount in task.to_release.items()
        )

    def count(self, uid: str, by: Task) -> None:
        """Count one pod once for each target: as its task says, else the most that any says."""
        self.handled.add(uid)
        most: dict[tuple[Target, str], int] = {}
        for task in self._tasks:
            for resource, amount in task.released.get(uid, {}).items():
                key = task.target, resource
                most[key] = max(most.get(key, 0), amount)
        for resource, amount in by.released.get(uid, {}).items():
            most[by.target, resource] = amount
        for key, amount in most.items():
            self._released[key] = self._released.get(key, 0) + amount


def _eviction(task: Task, pod: state.PodState) -> edits.Eviction:
    metadata, own = pod.pod.metadata, pod.pod.spec.termination_grace_period_seconds
    return edits.Eviction(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        reason=task.reason,
        feature=task.feature,
        figures=task.figures,
        own_grace_seconds=DEFAULT_GRACE_SECONDS if own is None else own,
    )


def priority(pod: state.PodState) -> int:
    """Return the priority of a pod, or the default of its band."""
    return qos.priority_with_default(
        pod.pod.spec.priority, pod.pod.metadata.labels, pod.kubernetes_qos
    )


def band(pod: state.PodState) -> qos.Band:
    """Return the band of a pod, derived from its class where nothing names one."""
    return qos.band_with_default(pod.pod.spec.priority, pod.pod.metadata.labels, pod.kubernetes_qos)


def allows(pod: state.PodState, feature: str) -> bool:
    """Tell whether the pod lets a feature evict it; a list that says nothing allows nothing."""
    written = pod.pod.metadata.annotations.get(names.ANNOTATION_EVICTION_POLICY)
    if written is None or pod.must_leave:
        return True
    return feature in (_REMEMBERED.if_readable(written) or ())


_REMEMBERED = annotations.Reader(names.ANNOTATION_EVICTION_POLICY, list[str], frozenset[str])


def active(pod: state.PodState) -> bool:
    """Tell whether a pod runs or is about to."""
    return pod.pod.status.phase in ("Pending", "Running")


def labelled_best_effort(pods: Iterable[state.PodState], feature: str) -> list[state.PodState]:
    """Return the pods that are labelled best effort and let a feature evict them."""
    return [pod for pod in pods if pod.qos is qos.QoS.BE and allows(pod, feature)]


def willing(
    pods: Iterable[state.PodState],
    feature: str,
    highest: int,
    amount: Callable[[state.PodState], float | None],
    sampled: Callable[[state.PodState], bool],
) -> tuple[state.PodState, ...]:
    """Return who may be evicted by priority, first victims first: pods that opted in."""
    candidates = [
        pod
        for pod in pods
        if active(pod)
        and allows(pod, feature)
        and priority(pod) <= highest
        and pod.pod.metadata.labels.get(names.LABEL_EVICTION_ENABLED) == "true"
        and sampled(pod)
    ]
    return tuple(sorted(candidates, key=lambda pod: (*_rank(pod), -(amount(pod) or 0))))


def _rank(pod: state.PodState) -> tuple[int, int, int]:
    metadata, value = pod.pod.metadata, priority(pod)
    inner = _integer(metadata.labels.get(names.LABEL_PRIORITY, ""), 64)
    first = _integer(metadata.annotations.get(names.ANNOTATION_EVICTION_PRIORITY, ""), 32)
    return first or 0, value, value if inner is None else inner


def _integer(written: str, bits: int) -> int | None:
    """Read a decimal integer; None where there is none or it is too large."""
    if not _INTEGER.fullmatch(written):
        return None
    value = int(written)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def ordered(pods: Iterable[state.PodState], before: Before) -> tuple[state.PodState, ...]:
    """Sort by insertion: defined even where `before` does not order every three pods alike."""
    found: list[state.PodState] = []
    for pod in pods:
        place = len(found)
        while place and before(pod, found[place - 1]):
            place -= 1
        found.insert(place, pod)
    return tuple(found)


def by_priority(one: state.PodState, other: state.PodState) -> bool | None:
    """Tell which of two pods has the lower priority; None where both or either say nothing."""
    left, right = one.pod.spec.priority, other.pod.spec.priority
    if left is None or right is None or left == right:
        return None
    return left < right


def check_bounds(
    feature: str, threshold: int | None, lower: int | None, fields: str
) -> Idle | None:
    """Return what is wrong with two bounds, None where they can be used."""
    if threshold is None or lower is None:
        missing = f"{fields}ThresholdPercent" if threshold is None else f"{fields}LowerPercent"
        return misconfigured(feature, f"{missing} is not set")
    if threshold < 0:
        return misconfigured(feature, f"{fields}ThresholdPercent {threshold} is below 0")
    if lower >= threshold:
        problem = f"{fields}LowerPercent {lower} is not below {fields}ThresholdPercent {threshold}"
        return misconfigured(feature, problem)
    return None


def of_use(bounds: strategy_settings.Bounds) -> strategy_settings.Bounds:
    """Return both bounds of what is in use: the lower one has a default."""
    if bounds.threshold is None or bounds.lower is not None:
        return bounds
    return strategy_settings.Bounds(bounds.threshold, bounds.threshold - LOWER_BY_DEFAULT)


def check_lent(feature: str, highest: int | None) -> Idle | None:
    """Return what is wrong with the priority up to which requests evict."""
    if highest is None:
        return misconfigured(feature, "allocatableEvictPriorityThreshold is not set")
    if highest > HIGHEST_LENT_PRIORITY:
        problem = f"allocatableEvictPriorityThreshold {highest} covers production, whose lowest"
        return misconfigured(feature, f"{problem} priority is 9000; the most is 7999")
    return None


def misconfigured(feature: str, why: str) -> Idle:
    """Return the answer of a feature whose settings cannot be used."""
    return Idle(feature, why, misconfigured=True)


def critical(picture: state.NodeState | None, percent: int) -> bool:
    """Tell whether the node uses so much of its memory."""
    if picture is None or picture.node is None or picture.usage.memory is None:
        return False
    capacity = state.core_amount(picture.node.status.capacity, names.MEMORY)
    return capacity > 0 and picture.usage.memory * 100 >= capacity * percent


def containers(picture: state.NodeState | None, uid: str) -> tuple[str, ...]:
    """Return the groups of the running containers of a pod, none where it is not known."""
    pods = () if picture is None else picture.pods
    found = (one.inside for one in pods if one.pod.metadata.uid == uid)
    return tuple(one.group for one in next(found, ()) if one.group and one.running)
