"""Which neighbours of a victim used more when its signal rose. Pure."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from agent.decide.interference import findings
from agent.model import state
from agent.store import time_series
from api.koordinator.metadata import qos

MOST: Final = 3
LEAST_SHARE: Final = 0.1
"""Of all that was added: less is nobody's fault."""
_BEFORE_SECONDS: Final = 150.0
"""How long before the rise neighbours are compared with."""
_LEAST: Final[Mapping[findings.Resource, float]] = {
    findings.Resource.CPU: 0.1,
    findings.Resource.MEMORY: 32.0 * (1 << 20),
    findings.Resource.IO: 1.0 * (1 << 20),
}
FIGURES: Final[Mapping[findings.Resource, tuple[str, ...]]] = {
    findings.Resource.CPU: ("cpu",),
    findings.Resource.MEMORY: ("memory",),
    findings.Resource.IO: ("disk-read", "disk-write"),
}
"""The series that add up to what is used of a resource."""
_TIERS: Final = {qos.QoS.BE: 0, qos.QoS.LS: 2, qos.QoS.LSR: 3, qos.QoS.LSE: 4}
_OTHER_TIER: Final = 1
OUTSIDE: Final = "processes outside of pods"


class Scene(msgspec.Struct, frozen=True):
    """The neighbourhood in which suspects are looked for."""

    pods: Sequence[state.PodState]
    samples: time_series.Histories
    now: float
    """Monotonic seconds."""
    processors: Sequence[state.Processor] = ()
    cpus: Mapping[str, frozenset[int]] = msgspec.field(default_factory=dict)
    """The CPUs that pods may run on, by uid; a pod that is missing may run anywhere."""
    host_applications: Sequence[state.HostApplication] = ()
    averages: dict[Hashable, float | None] = msgspec.field(default_factory=dict)
    """What was added up already: many victims of one look have the same neighbours."""

    def used(
        self, key: tuple[str, ...], resource: findings.Resource, window: tuple[float, float]
    ) -> float | None:
        """Return what was used on average, None where that was not measured."""
        asked = (key, resource, window)
        if asked not in self.averages:
            parts = [self.samples.average((*key, one), *window) for one in FIGURES[resource]]
            known = [part for part in parts if part is not None]
            self.averages[asked] = sum(known) if known else None
        return self.averages[asked]


class _Candidate(msgspec.Struct, frozen=True):
    tier: int
    rise: float
    namespace: str
    name: str
    qos: str


def of(
    scene: Scene, victim: state.PodState, signal: findings.Signal, since: float
) -> tuple[findings.Suspect, ...]:
    """Rank the neighbours whose use rose when a signal rose, at `since` (monotonic seconds)."""
    kind = findings.KINDS[signal]
    end = since - kind.lead
    before, after = (end - _BEFORE_SECONDS, end), (since, scene.now)
    if scene.used(_key(victim), findings.Resource.CPU, before) is None:
        # What was before is not remembered, so that every neighbour would seem to be new.
        return ()
    rises = []
    for candidate, key in _neighbours(scene, victim, signal):
        now = scene.used(key, kind.resource, after)
        if now is None:
            continue
        rise = now - (scene.used(key, kind.resource, before) or 0.0)
        if rise > 0:
            rises.append(msgspec.structs.replace(candidate, rise=rise))
    total = sum(one.rise for one in rises)
    least = max(_LEAST[kind.resource], LEAST_SHARE * total)
    ranked = sorted(
        (one for one in rises if one.rise >= least),
        key=lambda one: (one.tier, -one.rise, one.namespace, one.name),
    )
    return tuple(
        findings.Suspect(one.namespace, one.name, one.qos, one.rise, one.rise / total)
        for one in ranked[:MOST]
    )


def _neighbours(
    scene: Scene, victim: state.PodState, signal: findings.Signal
) -> Iterator[tuple[_Candidate, tuple[str, ...]]]:
    """Yield everything beside the victim that may use what it uses, with its series."""
    reach = _reach(scene, victim, signal)
    for pod in scene.pods:
        cpus = scene.cpus.get(pod.pod.metadata.uid)
        if pod is victim or (reach is not None and cpus is not None and cpus.isdisjoint(reach)):
            continue
        quality = qos.QoS.BE if pod.best_effort else pod.effective_qos
        meta = pod.pod.metadata
        tier = _TIERS.get(quality, _OTHER_TIER)
        yield _Candidate(tier, 0.0, meta.namespace, meta.name, quality.value), _key(pod)
    for one in scene.host_applications:
        tier = 0 if one.best_effort else _TIERS[qos.QoS.LS]
        name = f"host application {one.name}"
        yield _Candidate(tier, 0.0, "", name, one.qos), ("host", one.name)
    yield _Candidate(_OTHER_TIER, 0.0, "", OUTSIDE, ""), ("system",)


def _reach(scene: Scene, victim: state.PodState, signal: findings.Signal) -> frozenset[int] | None:
    """Return the CPUs on which a neighbour gets in the victim's way, None for all."""
    own = scene.cpus.get(victim.pod.metadata.uid)
    if own is None or findings.KINDS[signal].resource is not findings.Resource.CPU:
        return None
    if signal is not findings.Signal.CPI:
        return own
    # Threads of a core share its units; CPUs of a NUMA node share caches and memory bandwidth.
    nodes = {one.node for one in scene.processors if one.cpu in own}
    return own | {one.cpu for one in scene.processors if one.node in nodes}


def _key(pod: state.PodState) -> tuple[str, ...]:
    return ("pod", pod.pod.metadata.uid)
