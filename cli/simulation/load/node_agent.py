"""One node in virtual time: what its pods get, and what its agent decides and reports. Pure.

Suppression, eviction and prediction are the agent's own functions. Best effort gets the quota that
suppression grants at once, since a step is longer than its growth takes.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from agent.assembly import feature_gates
from agent.decide import eviction
from agent.decide.strategies import cpu_evict, cpu_suppress, memory_evict
from agent.model import slo_settings, state
from agent.store import peaks
from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations, quantity
from cli.simulation.load import series
from domain.cluster_settings import node_slo

GATES: Final = frozenset(gate.name for gate in feature_gates.GATES if gate.default)
"""Features of the agent that are on by default."""


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A pod on the node, and what it would use."""

    pod: core.Pod
    wants: series.Use

    @property
    def uid(self) -> str:
        """Return the uid of the pod."""
        return self.pod.metadata.uid

    @property
    def is_held_back(self) -> bool:
        """Whether it is best effort, which is suppressed."""
        return qos.of_pod(self.pod) is qos.QoS.BE


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What one step comes to."""

    online: float
    """Cores that online work and the system use."""
    wanted: float
    """Cores that best effort would use."""
    granted: float
    """Cores that it gets."""
    evicted: tuple[str, ...]
    """Uids of pods that leave."""
    report: Mapping[str, Any]
    """The NodeMetric."""


class NodeAgent:
    """What the agent of one node has learned."""

    def __init__(
        self,
        node: core.Node,
        enforced: node_slo.Enforced,
        gates: frozenset[str] = GATES,
    ) -> None:
        """`gates` are the features of the agent that are on."""
        self._node, self._gates = node, gates
        self._system = series.Use(0.0, 0)
        self._thresholds = slo_settings.thresholds(enforced)
        self._strategies = slo_settings.read(enforced)
        self._models = peaks.Models(peaks.Rules())

    @property
    def cores(self) -> float:
        """Return what the node has."""
        return state.core_amount(self._node.status.capacity, names.CPU) / 1000

    def step(self, pods: Sequence[Running], at: float, seconds: float, system: series.Use) -> Step:
        """Let some time pass with these pods, and with what the node uses outside pods."""
        self._system = system
        online = self._system.cpu + sum(one.wants.cpu for one in pods if not one.is_held_back)
        online = min(online, self.cores)
        wanted = sum(one.wants.cpu for one in pods if one.is_held_back)
        limit = self._limit(self._picture(pods, at, 1.0))
        granted = max(0.0, min(wanted, limit, self.cores - online))
        share = granted / wanted if wanted else 1.0
        picture = self._picture(pods, at, share)
        evicted = self._evicted(picture, seconds, granted, limit)
        sampled = {one.uid: (self._sample(one, share), qos.band_of_pod(one.pod)) for one in pods}
        usage = peaks.Sample(picture.usage.cpu or 0.0, float(picture.usage.memory or 0))
        self._models.train(peaks.Round(at, sampled, usage))
        self._models.expired(at)
        return Step(online, wanted, granted, evicted, self._report(pods, at, share, usage))

    def _sample(self, one: Running, share: float) -> peaks.Sample:
        cpu = one.wants.cpu * (share if one.is_held_back else 1.0)
        return peaks.Sample(cpu, float(one.wants.memory))

    def _picture(self, pods: Sequence[Running], at: float, share: float) -> state.NodeState:
        states = []
        cpu, memory = self._system
        for one in pods:
            sample = self._sample(one, share)
            cpu, memory = cpu + sample.cpu, memory + one.wants.memory
            usage = state.Usage(sample.cpu, one.wants.memory)
            # Here every pod runs that has a node.
            pod = one.pod
            if pod.status.phase != "Running":
                status = msgspec.structs.replace(pod.status, phase="Running")
                pod = msgspec.structs.replace(pod, status=status)
            states.append(state.PodState(pod, qos.kubernetes_qos(pod), usage))
        return state.NodeState(
            at=at,
            node=self._node,
            thresholds=self._thresholds,
            usage=state.Usage(cpu, memory),
            pods=tuple(states),
            pods_known=True,
            settled=True,
        )

    def _limit(self, picture: state.NodeState) -> float:
        """Return the cores that suppression leaves to best effort."""
        if not self._thresholds.enable:
            return self.cores
        allowed = cpu_suppress.allowed_milli(picture, self._thresholds)
        quota = cpu_suppress.next_quota(allowed, -1, picture.capacity_milli)
        return self.cores if quota is None else quota / cpu_suppress.PERIOD_US

    def _evicted(
        self, picture: state.NodeState, seconds: float, granted: float, limit: float
    ) -> tuple[str, ...]:
        if not self._strategies.evicting:
            return ()
        requested = sum(
            state.core_amount(container.resources.requests, names.BATCH_CPU)
            for pod in picture.pods
            for container in pod.pod.spec.containers
            if pod.best_effort
        )
        window = cpu_evict.Window(
            interval_seconds=seconds,
            node=picture.usage.cpu,
            usage=_flat(granted),
            request=_flat(requested / 1000),
            limit=_flat(limit),
        )
        found = (
            *memory_evict.evict(
                memory_evict.tasks(picture, self._strategies.memory_eviction), self._gates
            ),
            *cpu_evict.evict(
                cpu_evict.tasks(picture, self._strategies.cpu_eviction, window), self._gates
            ),
        )
        return tuple(one.uid for one in eviction.pick(found))

    def _report(
        self, pods: Sequence[Running], at: float, share: float, usage: peaks.Sample
    ) -> Mapping[str, Any]:
        name = self._node.metadata.name
        lenders = [peaks.lender(one.pod, at) for one in pods]
        left = peaks.forecast(self._models, peaks.offered(self._node), lenders).reclaimable
        status: dict[str, Any] = {
            "updateTime": durations.moment(at),
            "nodeMetric": {
                "nodeUsage": _resources(usage.cpu, usage.memory),
                "systemUsage": _resources(*self._system),
            },
            "podsMetric": [
                {
                    "namespace": one.pod.metadata.namespace,
                    "name": one.pod.metadata.name,
                    "priority": str(qos.band_of_pod(one.pod)),
                    "podUsage": _resources(*self._sample(one, share)),
                }
                for one in pods
            ],
        }
        if left is not None:
            status["prodReclaimableMetric"] = {"resource": _resources(left.cpu / 1000, left.memory)}
        kind = resources.NODE_METRICS
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        return {**head, "status": status}


def _flat(cores: float) -> cpu_evict.Series:
    return cpu_evict.Series(cores * 1000, cores * 1000, 1)


def _resources(cores: float, memory: float) -> dict[str, Any]:
    amounts = {names.CPU: int(cores * 1000), names.MEMORY: int(memory)}
    return {"resources": quantity.texts(amounts)}
