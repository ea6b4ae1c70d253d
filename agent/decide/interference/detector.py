"""Compares what a pod waits and works with what is usual for that very pod. Pure.

The detector keeps a baseline for each figure of each online pod and takes one look after another.
A signal counts as raised above ``mean + max(deviations * deviation, the signal's least rise)``, as
interference after `raise_after` raised samples in a row, and as over after `clear_after` samples
below half of that rise. A baseline learns nothing while its signal is raised.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from agent.decide.interference import baselines, findings, suspects
from agent.model import state
from agent.store import time_series
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources

MOST_PODS: Final = 512
"""Pods that are watched; on a node with more, the others are not."""
MOST_CONTAINERS: Final = 16
"""Containers of one pod whose CPI is watched."""
MOST_JUDGED: Final = 24
"""Signals for which one look seeks suspects; those of the others are sought in the next ones."""
THROTTLED: Final = 0.05
"""Share of periods from which on a container is held back by its own limit."""
_AT_LIMIT: Final = 0.9
_OWN_RISE: Final = 0.2
_OWN_DEVIATIONS: Final = 3.0
_CLEAR_SHARE: Final = 0.5
_OWN_LEAST: Final[Mapping[findings.Resource, float]] = {
    findings.Resource.CPU: 0.05,
    findings.Resource.MEMORY: 32.0 * (1 << 20),
    findings.Resource.IO: 1.0 * (1 << 20),
}
_LATELY_SECONDS: Final = 30.0
_STALE_SECONDS: Final = 300.0
_VICTIMS: Final = frozenset({qos.QoS.LSE, qos.QoS.LSR, qos.QoS.LS})


class Rules(msgspec.Struct, frozen=True):
    """When a signal counts as raised."""

    deviations: float = 4.0
    half_life_seconds: float = 43_200.0
    """Age at which a sample of a baseline counts half."""
    learning_seconds: float = 600.0
    """How long a pod is watched before it can be a victim ..."""
    fewest_samples: int = 10
    """... and how many samples of a signal that takes at least."""
    raise_after: int = 3
    clear_after: int = 6
    longest_seconds: float = 86_400.0
    """After so long, what is raised is the new normal and learned anew."""


class Look(msgspec.Struct, frozen=True):
    """What one look at a node has found."""

    scene: suspects.Scene
    at: float
    """Wall clock, in seconds since the epoch."""
    throttled: frozenset[str] = frozenset()
    """Pods, by uid, that their own CPU limit has held back."""


class _Track(msgspec.Struct, frozen=True, gc=False):
    """One signal of a pod or container."""

    baseline: baselines.Baseline = baselines.Baseline()
    at: float = -1.0
    """Monotonic seconds of the latest sample that was taken in."""
    above: int = 0
    below: int = 0
    since: float = 0.0
    """Monotonic seconds of the first raised sample."""
    finding: findings.Finding | None = None
    own: bool = False
    """Whether the latest sample was raised by the pod itself."""


class _Pod:
    """What is remembered of one pod."""

    __slots__ = ("generation", "loads", "tracks")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.tracks: dict[tuple[str, findings.Signal], _Track] = {}
        self.loads: dict[findings.Resource, baselines.Baseline] = {}

    @property
    def raised(self) -> bool:
        """Whether any signal is above its baseline."""
        return any(track.above for track in self.tracks.values())

    @property
    def busier(self) -> bool:
        """Whether the pod itself has raised a signal."""
        return any(track.own for track in self.tracks.values())


class _Sample(msgspec.Struct, frozen=True):
    container: str
    signal: findings.Signal
    at: float
    value: float


class _Case(msgspec.Struct, frozen=True):
    """One pod in one look."""

    known: _Pod
    pod: state.PodState
    look: Look
    loads: Mapping[findings.Resource, float]
    """What it has used lately."""


class Detector:
    """Remembers the baselines of a node's online pods: a constant amount for each."""

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._pods: dict[str, _Pod] = {}
        self._judged = 0
        self.unwatched = 0
        """Online pods of the latest look that are beyond `MOST_PODS`."""

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def suspicious(self) -> bool:
        """Whether a signal is raised, so that the next look should know which CPUs pods share."""
        return any(pod.raised for pod in self._pods.values())

    def step(self, look: Look) -> tuple[findings.Finding, ...]:
        """Take in one look and return what interferes now, the strongest of each resource."""
        victims = {pod.pod.metadata.uid: pod for pod in look.scene.pods if is_online(pod)}
        self._pods = {uid: one for uid, one in self._pods.items() if uid in victims}
        self.unwatched = self._judged = 0
        found: list[findings.Finding] = []
        for uid, pod in victims.items():
            known, generation = self._pods.get(uid), _generation(pod)
            if known is None and len(self._pods) >= MOST_PODS:
                self.unwatched += 1
                continue
            if known is None or known.generation != generation:
                known = self._pods[uid] = _Pod(generation)
            found += self._look_at(known, pod, look)
        return tuple(sorted(found, key=lambda one: (-one.deviations, one.episode)))

    def _look_at(self, known: _Pod, pod: state.PodState, look: Look) -> list[findings.Finding]:
        loads = _loads(look.scene, pod)
        case = _Case(known, pod, look, loads)
        for sample in samples_of(look.scene.samples, pod):
            key = (sample.container, sample.signal)
            track = known.tracks.get(key) or _Track()
            if sample.at > track.at:
                known.tracks[key] = self._taken(case, track, sample)
        for key, track in tuple(known.tracks.items()):
            if look.scene.now - track.at > _STALE_SECONDS:
                del known.tracks[key]
        # A load that explains a signal is no usual one before the signal has become usual.
        if not (known.raised or known.busier):
            for resource, value in loads.items():
                before = known.loads.get(resource) or baselines.Baseline()
                half_life = self._rules.half_life_seconds
                known.loads[resource] = before.learned(value, look.scene.now, half_life)
        strongest: dict[findings.Resource, findings.Finding] = {}
        for track in known.tracks.values():
            one = track.finding
            if one is not None:
                other = strongest.get(one.resource)
                if other is None or one.deviations > other.deviations:
                    strongest[one.resource] = one
        return list(strongest.values())

    def _taken(self, case: _Case, track: _Track, sample: _Sample) -> _Track:
        """Take in one sample of a signal."""
        rules, baseline = self._rules, track.baseline
        rise = _rise(rules, baseline, sample.signal)
        if track.finding is not None:
            return self._continued(track, sample, rise)
        ready = (
            baseline.samples >= rules.fewest_samples
            and sample.at - baseline.since >= rules.learning_seconds
        )
        raised = ready and sample.value > baseline.mean + rise
        own = raised and _is_own(case, sample, baseline)
        if own or not raised:
            # Spikes that were too short are learned now, and none counts for more than the rest.
            for _ in range(track.above):
                peak = baseline.mean + rise
                baseline = baseline.learned(peak, sample.at, rules.half_life_seconds)
            # What a pod does to itself is learned in full, like its load that explains it.
            bounded = ready and not own
            value = baseline.clipped(sample.value, rise) if bounded else sample.value
            learned = baseline.learned(value, sample.at, rules.half_life_seconds)
            return _Track(learned, sample.at, own=own)
        since = track.since if track.above else sample.at
        above = track.above + 1
        if above < rules.raise_after or self._judged >= MOST_JUDGED:
            return _Track(baseline, sample.at, above, 0, since)
        self._judged += 1
        finding = _found(case, baseline, sample, since)
        finding = msgspec.structs.replace(finding, deviations=_deviations(rules, baseline, sample))
        finding = _judged(case, finding, since, rise)
        return _Track(baseline, sample.at, above, 0, since, finding)

    def _continued(self, track: _Track, sample: _Sample, rise: float) -> _Track:
        """Follow interference until its signal has been low for long enough."""
        assert track.finding is not None
        if sample.at - track.since > self._rules.longest_seconds:
            return _Track(at=sample.at)
        low = sample.value <= track.baseline.mean + rise / 2
        below = track.below + 1 if low else 0
        if below >= self._rules.clear_after:
            return _Track(track.baseline, sample.at)
        finding = msgspec.structs.replace(
            track.finding,
            value=sample.value,
            deviations=_deviations(self._rules, track.baseline, sample),
        )
        return msgspec.structs.replace(track, at=sample.at, below=below, finding=finding)


def is_online(pod: state.PodState) -> bool:
    """Tell whether a pod can be a victim: production of a class that is sensitive to latency."""
    if pod.best_effort or not pod.active or pod.effective_qos not in _VICTIMS:
        return False
    return qos.band_of_pod(pod.pod) in (qos.Band.PROD, qos.Band.NONE)


def samples_of(samples: time_series.Histories, pod: state.PodState) -> Iterator[_Sample]:
    """Yield the latest sample of every signal of a pod and its containers."""
    uid = pod.pod.metadata.uid
    for signal, figure in findings.PRESSURES.items():
        series = samples.get(("pod", uid, figure))
        newest = series.newest if series is not None else None
        if newest is not None:
            yield _Sample("", signal, *newest)
    for container in pod.containers[:MOST_CONTAINERS]:
        key = ("container", uid, container.name)
        cycles, instructions = samples.get((*key, "cycles")), samples.get((*key, "instructions"))
        if cycles is None or instructions is None:
            continue
        first, second = cycles.newest, instructions.newest
        if first and second and first[0] == second[0] and second[1] > 0:
            yield _Sample(container.name, findings.Signal.CPI, first[0], first[1] / second[1])


def _is_own(case: _Case, sample: _Sample, baseline: baselines.Baseline) -> bool:
    """Tell whether a pod itself is the cause: it asks for more, or is at its own limit."""
    resource = findings.KINDS[sample.signal].resource
    throttled = case.pod.pod.metadata.uid in case.look.throttled
    if (resource is findings.Resource.CPU and throttled) or _at_limit(case.pod, resource):
        return True
    load, usual = case.loads.get(resource), case.known.loads.get(resource)
    if load is None or usual is None:
        return False
    if sample.signal is findings.Signal.CPI:
        # The same work takes more cpu time when each instruction takes more cycles.
        load *= baseline.mean / sample.value
    more = max(_OWN_DEVIATIONS * usual.deviation, _OWN_RISE * usual.mean, _OWN_LEAST[resource])
    return load > usual.mean + more


def _generation(pod: state.PodState) -> int:
    """Return what changes when containers start again or get other amounts of resources."""
    return hash(
        tuple(
            (one.group, one.name, _texts(one.container.resources))
            for one in pod.containers
            if one.lasts
        )
    )


def _texts(asked: core.ResourceRequirements) -> tuple[str, ...]:
    amounts = (("r", asked.requests), ("l", asked.limits))
    return tuple(f"{kind}{name}={part[name]}" for kind, part in amounts for name in sorted(part))


def _loads(scene: suspects.Scene, pod: state.PodState) -> dict[findings.Resource, float]:
    """Return what a pod has used of each resource lately, as far as that is measured."""
    key, window = ("pod", pod.pod.metadata.uid), (scene.now - _LATELY_SECONDS, scene.now)
    found = {one: scene.used(key, one, window) for one in findings.Resource}
    return {one: value for one, value in found.items() if value is not None}


def _at_limit(pod: state.PodState, resource: findings.Resource) -> bool:
    limits = resources.pod_limits(pod.pod)
    if resource is findings.Resource.CPU:
        limit, used = limits.get(names.CPU, 0) / 1000, pod.usage.cpu
    else:
        # A cgroup at its limit gives up page cache, which it then reads again.
        limit, used = float(limits.get(names.MEMORY, 0)), pod.usage.memory
    return bool(limit) and used is not None and used >= _AT_LIMIT * limit


def _rise(rules: Rules, baseline: baselines.Baseline, signal: findings.Signal) -> float:
    """Return by how much a signal has to be above its mean."""
    least = max(findings.KINDS[signal].least, findings.RELATIVE * baseline.mean)
    return max(rules.deviations * baseline.deviation, least)


def _deviations(rules: Rules, baseline: baselines.Baseline, sample: _Sample) -> float:
    """Return the distance in deviations, each no less than what the least rise makes one."""
    unit = _rise(rules, baseline, sample.signal) / rules.deviations
    return (sample.value - baseline.mean) / unit


def _found(
    case: _Case, baseline: baselines.Baseline, sample: _Sample, since: float
) -> findings.Finding:
    meta = case.pod.pod.metadata
    return findings.Finding(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        container=sample.container,
        qos=case.pod.effective_qos.value,
        signal=sample.signal,
        value=sample.value,
        usual=baseline.mean,
        deviations=0.0,
        since=case.look.at - (case.look.scene.now - since),
    )


def _judged(case: _Case, finding: findings.Finding, since: float, rise: float) -> findings.Finding:
    """Add the suspects and what speaks for them."""
    blamed = suspects.of(case.look.scene, case.pod, finding.signal, since)
    confidence = findings.Confidence.LOW
    if blamed and finding.resource in case.loads:
        excess = finding.value - finding.usual
        clear = excess >= 2 * rise and blamed[0].share >= _CLEAR_SHARE
        confidence = findings.Confidence.HIGH if clear else findings.Confidence.MEDIUM
    return msgspec.structs.replace(finding, suspects=blamed, confidence=confidence)


def by_pod(
    found: Sequence[findings.Finding],
) -> Mapping[str, tuple[findings.Finding, ...]]:
    """Return findings by the uid of their victim."""
    grouped: dict[str, tuple[findings.Finding, ...]] = {}
    for one in found:
        grouped[one.uid] = (*grouped.get(one.uid, ()), one)
    return grouped
