"""The pods of a node as decisions see them, read from their cgroups once per tick."""

import functools
import logging
from collections.abc import Callable, Sequence

import msgspec

from agent.model import cgroup_layout, state
from agent.model import strategy_settings as enforcement
from agent.model.cpus import cpu_bindings
from agent.observe import controls, sampler
from agent.observe.cgroups import cgroup_files
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain.pods import resources

_logger = logging.getLogger(__name__)
_NO_CPUS = frozenset[int]()


class Host(msgspec.Struct, frozen=True):
    """Where pods are looked for in one tick."""

    layout: cgroup_layout.Layout | None
    cgroups: cgroup_files.Cgroups | None
    bindings: cpu_bindings.Bindings
    enforced: enforcement.Strategies | None = None


class PodStates:
    """Reads every pod; one that cannot be read stands as it was read last, or is left out."""

    def __init__(self, figures: sampler.Sampler, readings: controls.Controls) -> None:
        self._figures = figures
        self._controls = readings
        self._last: dict[str, state.PodState] = {}
        self._failed: dict[str, str] = {}

    def look(self, pods: Sequence[core.Pod], host: Host, at: float) -> tuple[state.PodState, ...]:
        """Return the pods that have not ended; what is wrong with one is a problem of its own."""
        found: list[state.PodState] = []
        failed: dict[str, str] = {}
        for pod in pods:
            if pod.finished:
                continue
            try:
                found.append(self._pod(pod, host, at))
            except Exception as error:
                # One pod must not take all the others, and every decision, with it.
                uid, reason = pod.metadata.uid, f"{type(error).__name__}: {error}"[:200]
                failed[uid] = reason
                if self._failed.get(uid) != reason:
                    _logger.exception("pod cannot be read pod=%s", pod.metadata.key)
                self._figures.problem(f"pod {pod.metadata.key}", reason)
                if uid in self._last:
                    found.append(self._last[uid])
        self._last = {one.pod.metadata.uid: one for one in found}
        self._failed = failed
        return tuple(found)

    def placed(self, source: str, place: Callable[[], str]) -> str:
        """Return a cgroup, nothing where it cannot be one."""
        try:
            return place()
        except cgroup_layout.LayoutError as error:
            self._figures.problem(source, str(error))
            return ""

    def _pod(self, pod: core.Pod, host: Host, at: float) -> state.PodState:
        uid = pod.metadata.uid
        known = self._last.get(uid)
        if known is None or known.pod is not pod:
            # Everything that decisions compute from it; an amount that is none fails here.
            resources.pod_requests(pod)
            resources.pod_limits(pod)
        kubernetes_qos = qos.kubernetes_qos(pod)
        group, quota, sandbox = "", None, ""
        found: tuple[state.ContainerState, ...] = ()
        if host.cgroups is not None and host.layout is not None:
            place = functools.partial(host.layout.pod_group, uid, kubernetes_qos)
            group = self.placed(f"pod {pod.metadata.key}", place)
            if group:
                self._figures.group(("pod", uid), group, host.cgroups, at)
                found = self._containers(pod, group, host, at)
                if host.enforced is not None:
                    inner = [one.group for one in found]
                    sandbox = self._controls.sandbox(host.layout, group, inner, at)
                    quota = _quota(pod, group, host)
        return state.PodState(
            pod,
            kubernetes_qos,
            self._figures.latest(("pod", uid), at),
            host.bindings.cpus.get(uid, _NO_CPUS),
            group,
            quota,
            found,
            sandbox,
            *self._bounded(pod, kubernetes_qos, host),
        )

    def _bounded(self, pod: core.Pod, kubernetes_qos: str, host: Host) -> tuple[bool, bool]:
        """Tell whether a pod's label SYSTEM does not count, and whether it must leave if asked."""
        if host.enforced is None:
            return False, False
        most = host.enforced.overrides
        named = qos.qos_of(pod.metadata.labels)
        demoted = named is qos.QoS.SYSTEM and not most.is_system(pod.metadata.namespace)
        if demoted:
            reason = "SYSTEM counts in the namespaces of the system only"
            self._figures.problem(f"class of pod {pod.metadata.key}", reason)
        batch = named is qos.QoS.BE or kubernetes_qos == state.BEST_EFFORT
        return demoted, batch and not most.refuse_eviction

    def _containers(
        self, pod: core.Pod, pod_group: str, host: Host, at: float
    ) -> tuple[state.ContainerState, ...]:
        status = pod.status
        assert host.layout is not None
        assert host.cgroups is not None
        asked = {one.name: one for one in (*pod.spec.init_containers, *pod.spec.containers)}
        first = len(status.container_statuses)
        found = []
        statuses = (*status.container_statuses, *status.init_container_statuses)
        for position, container in enumerate(statuses):
            if not container.container_id:
                continue
            key = ("container", pod.metadata.uid, container.name)
            identity = container.container_id
            place = functools.partial(host.layout.container_group, pod_group, identity)
            group = self.placed(f"container {pod.metadata.key}/{container.name}", place)
            if not group:
                continue
            self._figures.group(key, group, host.cgroups, at)
            quota = _quota(pod, group, host)
            throttled = None if quota is None else self._controls.throttled(group, host.cgroups)
            found.append(
                state.ContainerState(
                    name=container.name,
                    group=group,
                    container=asked.get(container.name, core.Container()),
                    running="terminated" not in container.state,
                    initial=position >= first,
                    usage=self._figures.latest(key, at),
                    throttled=throttled,
                    quota_us=quota,
                )
            )
        return tuple(found)


def _quota(pod: core.Pod, group: str, host: Host) -> int | None:
    """Read what a cgroup may use, where a decision will ask for it."""
    if host.enforced is None or host.cgroups is None:
        return None
    return host.cgroups.allowed_us(group) if controls.bursts(pod, host.enforced) else None
