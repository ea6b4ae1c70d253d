"""Relieves one overloaded node: which pods leave it, in which order, and when to stop. Pure."""

import dataclasses
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from typing import Final

import numpy as np

from api.koordinator.metadata import qos
from descheduler.framework import protocols
from descheduler.framework.nodes import node_load
from descheduler.framework.pods import pod_order
from descheduler.model import podinfo
from descheduler.plugins.low_node_load import anomaly, pools, reasons, thresholds

NAME: Final = "LowNodeLoad"


@dataclasses.dataclass(frozen=True, slots=True)
class Targets:
    """Nodes that take pods, and how much each of them takes until it exceeds a threshold."""

    names: tuple[str, ...]
    places: Mapping[str, int]
    """By name."""
    room: node_load.Columns
    """A row per resource, unlike the load; shrinks as pods come."""
    prod_room: node_load.Columns
    """The same of prod pods."""
    fit: protocols.NodeRows | None
    """Whether requests fit; None where nodeFit is off."""

    def fitting(self, pod: podinfo.Pod, amounts: node_load.Columns) -> thresholds.Flags:
        """Return which of them stay below their thresholds with a pod."""
        found = np.ones(len(self.names), dtype=np.bool_)
        rooms = (self.room, self.prod_room) if _is_prod(pod) else (self.room,)
        for room in rooms:
            for free, amount in zip(room, amounts.tolist(), strict=True):
                found &= free >= amount
        return found

    def took(self, name: str, pod: podinfo.Pod, amounts: node_load.Columns) -> None:
        """Count a pod on one of them."""
        place = self.places.get(name)
        if place is not None:
            self.room[:, place] -= amounts
            self.prod_room[:, place] -= amounts if _is_prod(pod) else 0


class Offer(Collection[str]):
    """Names of the targets that take a pod."""

    __slots__ = ("_fitting", "_targets")

    def __init__(self, targets: Targets, fitting: thresholds.Flags) -> None:
        self._targets, self._fitting = targets, fitting

    def __contains__(self, name: object) -> bool:
        place = self._targets.places.get(name) if isinstance(name, str) else None
        return place is not None and bool(self._fitting[place])

    def __iter__(self) -> Iterator[str]:
        names = self._targets.names
        return (names[place] for place in np.flatnonzero(self._fitting).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._fitting))

    @property
    def first(self) -> str:
        """The first of them; empty where there is none."""
        place = int(np.argmax(self._fitting)) if self._fitting.size else 0
        return self._targets.names[place] if self._fitting[place : place + 1].any() else ""


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """Relief of the nodes that are overloaded in one way."""

    kind: anomaly.Kind
    pool: pools.Pool
    levels: pools.Levels
    columns: node_load.Places
    """Of the load, in the order of the pool's resources."""
    load: node_load.Load
    high: Mapping[int, node_load.Columns]
    """By row of a source."""
    targets: Targets
    available: node_load.Columns
    """What targets take altogether; shrinks as pods move."""
    covers: Callable[[str, Mapping[str, str]], bool]
    limited: dict[str, int]
    """How many pods stay by each limit that is reached, and since no target takes them."""
    dry_run: bool = False

    @property
    def usage(self) -> node_load.Columns:
        """The load that sources are overloaded by."""
        return self.load.usage if self.kind is anomaly.Kind.NODE else self.load.prod

    def excess(self, row: int) -> node_load.Columns:
        """Return by how much a source exceeds each threshold; not above 0 where it does not."""
        found: node_load.Columns = self.usage[row, self.columns] - self.high[row]
        return found

    def is_over(self, row: int) -> bool:
        """Whether a source still exceeds a threshold."""
        return bool((self.excess(row) > 0).any())

    def offer(self, pod: podinfo.Pod, amounts: node_load.Columns) -> Offer | None:
        """Return the targets that take a pod; None where that is not asked."""
        targets = self.targets
        if targets.fit is None:
            return None
        return Offer(targets, targets.fitting(pod, amounts) & targets.fit.fitting(pod))

    def reason(self, row: int) -> str:
        """Return why pods leave a source, from its load at this point of the plan."""
        percents = self.levels.high if self.kind is anomaly.Kind.NODE else self.levels.prod_high
        usage = self.usage[row, self.columns]
        capacity = self.load.capacity[row, self.columns]
        return reasons.overutilized(
            self.kind,
            (
                (name, 100.0 * int(used) / int(size) if size else 0.0, percent)
                for name, used, size, percent, above in zip(
                    self.levels.resources, usage, capacity, percents, self.excess(row), strict=True
                )
                if above > 0
            ),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Candidate:
    pod: podinfo.Pod
    used: podinfo.Amounts


def relieve(
    phase: Phase, row: int, view: protocols.View, moved: set[str]
) -> Generator[protocols.Suggestion, protocols.Answer, None]:
    """Suggest pods of one source until it is below its thresholds or nothing takes more.

    A pod of which nothing is measured stays: nothing says that the node would be relieved.
    """
    usage = view.picture.usage[phase.load.nodes[row].name].by_pod
    candidates = list(_candidates(phase, row, view, moved))
    scores = _per_cost(view, candidates, _scores(phase, row, candidates))
    for pod in pod_order.ordered((one.pod for one in candidates), scores):
        if not phase.is_over(row) or bool((phase.available <= 0).any()):
            return
        if limit := view.limits.refusal(pod):
            phase.limited[limit] = phase.limited.get(limit, 0) + 1
            continue
        if view.evictable.refusal(pod):
            continue
        whole = phase.load.amounts(usage[pod.key])
        amounts = whole[phase.columns]
        offer = phase.offer(pod, amounts)
        if offer is not None and not offer.first:
            phase.limited[reasons.NO_ROOM] = phase.limited.get(reasons.NO_ROOM, 0) + 1
            continue
        answer = yield protocols.Suggestion(
            pod,
            NAME,
            phase.reason(row),
            protocols.Purpose.BALANCE,
            targets=offer,
            needs_target=phase.targets.fit is not None,
            dry_run=phase.dry_run,
            of_prod=phase.kind is anomaly.Kind.PROD,
        )
        if answer:
            moved.add(pod.uid)
            phase.available[:] -= amounts
            target = _target(answer, offer)
            phase.targets.took(target, pod, amounts)
            phase.load.moved(whole, row, phase.load.rows.get(target, -1), prod=_is_prod(pod))


def _candidates(
    phase: Phase, row: int, view: protocols.View, moved: Collection[str]
) -> Iterator[_Candidate]:
    node = phase.load.nodes[row].name
    usage = view.picture.usage[node].by_pod
    for pod in view.picture.on_node.get(node, ()):
        if phase.kind is anomaly.Kind.PROD and not _is_prod(pod):
            continue
        used = usage.get(pod.key)
        if used is None or not pod.is_active or pod.uid in moved or pod.uid in phase.load.leaving:
            continue
        if phase.covers(pod.namespace, pod.labels):
            yield _Candidate(pod, used)


def _scores(phase: Phase, row: int, candidates: Collection[_Candidate]) -> Mapping[str, float]:
    """Return how well each pod would relieve the source; best is one that is just large enough."""
    excess = [
        (name, int(above), phase.pool.weights.get(name, 0))
        for name, above in zip(phase.levels.resources, phase.excess(row), strict=True)
        if above > 0
    ]
    total = sum(weight for _, _, weight in excess)
    if not total:
        return dict.fromkeys((one.pod.uid for one in candidates), 0.0)
    scores: dict[str, float] = {}
    for one in candidates:
        found = 0.0
        # Added one by one: from Python 3.12 on sum() rounds in another way than Go does.
        for name, above, weight in excess:
            found += weight * _help(one.used.get(name, 0) / above)
        scores[one.pod.uid] = found / total
    return scores


def _per_cost(
    view: protocols.View, candidates: Collection[_Candidate], scores: Mapping[str, float]
) -> Mapping[str, float]:
    """Return how well each pod would relieve the source for what its eviction costs.

    Once a limit is reached, the order has no effect any more.
    """
    cost = view.eviction_cost
    if cost is None or all(view.limits.refusal(one.pod) for one in candidates):
        return scores
    return {one.pod.uid: scores[one.pod.uid] / cost(one.pod) for one in candidates}


def _help(share: float) -> float:
    return share if share < 1 else 1 + 1 / share


def _target(answer: protocols.Answer, offer: Offer | None) -> str:
    """Return where a pod goes; the first that takes it where that is not known."""
    if isinstance(answer, protocols.Target):
        return answer.node
    return offer.first if offer is not None else ""


def _is_prod(pod: podinfo.Pod) -> bool:
    return pod.band is qos.Band.PROD
