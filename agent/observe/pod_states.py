"""The pods of a node as decisions see them, read from their cgroups once per tick."""

import functools
import logging
from collections.abc import Callable, Iterator, Sequence

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
_NOWHERE = cgroup_layout.Layout("", 2, "cgroupfs")


class Host(msgspec.Struct, frozen=True):
    """Where pods are looked for in one tick."""

    layout: cgroup_layout.Layout | None
    cgroups: cgroup_files.Cgroups | None
    bindings: cpu_bindings.Bindings
    enforced: enforcement.Strategies | None = None


class _Container(msgspec.Struct, frozen=True):
    """What of a container stands until its pod changes."""

    group: str
    series: sampler.SeriesKeys
    name: str
    spec: core.Container
    running: bool
    initial: bool


class _Place(msgspec.Struct, frozen=True):
    """Where the groups of a pod lie, until the pod or the layout changes."""

    pod: core.Pod
    layout: cgroup_layout.Layout
    kubernetes_qos: str
    group: str
    series: sampler.SeriesKeys
    containers: tuple[_Container, ...]
    inner: tuple[str, ...] = ()
    """The groups of the containers."""


class PodStates:
    """Reads every pod; one that cannot be read stands as it was read last, or is left out."""

    def __init__(self, figures: sampler.Sampler, readings: controls.Controls) -> None:
        self._figures = figures
        self._controls = readings
        self._last: dict[str, state.PodState] = {}
        self._places: dict[str, _Place] = {}
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
        if len(self._places) > len(found):
            self._places = {uid: one for uid, one in self._places.items() if uid in self._last}
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
        place = self._placed(pod, host)
        quota, sandbox = None, ""
        found: tuple[state.ContainerState, ...] = ()
        if place.group and host.cgroups is not None:
            usage = self._figures.group(place.series, place.group, host.cgroups, at)
            asked = controls.Asked()
            if host.enforced is not None:
                asked = controls.asked(pod, host.enforced)
                sandbox = self._controls.sandbox(place.layout, place.group, place.inner, at)
            found = self._containers(place, host.cgroups, at, asked)
            quota = host.cgroups.allowed_us(place.group) if asked.quotas else None
        else:
            usage = self._figures.latest(place.series, at)
        return state.PodState(
            pod,
            place.kubernetes_qos,
            usage,
            host.bindings.cpus.get(uid, _NO_CPUS),
            place.group,
            quota,
            found,
            sandbox,
            *self._bounded(pod, place.kubernetes_qos, host),
        )

    def _placed(self, pod: core.Pod, host: Host) -> _Place:
        """Return where the groups of a pod lie; every tick reports the problems."""
        uid = pod.metadata.uid
        place = self._places.get(uid)
        if place is not None and place.pod is pod and place.layout is host.layout:
            return place
        kubernetes_qos, series = qos.kubernetes_qos(pod), sampler.SeriesKeys.of("pod", uid)
        group = ""
        if host.cgroups is not None and host.layout is not None:
            found = functools.partial(host.layout.pod_group, uid, kubernetes_qos)
            group = self.placed(f"pod {pod.metadata.key}", found)
        if not group or host.layout is None:
            return _Place(pod, _NOWHERE, kubernetes_qos, "", series, ())
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        containers = tuple(self._found(pod, host.layout, group))
        inner = tuple(one.group for one in containers)
        place = _Place(pod, host.layout, kubernetes_qos, group, series, containers, inner)
        if len(containers) == sum(bool(one.container_id) for one in statuses):
            self._places[uid] = place
        return place

    def _found(
        self, pod: core.Pod, layout: cgroup_layout.Layout, pod_group: str
    ) -> Iterator[_Container]:
        """Yield the containers of a pod that have an id and a group."""
        status = pod.status
        asked = {one.name: one for one in (*pod.spec.init_containers, *pod.spec.containers)}
        first = len(status.container_statuses)
        statuses = (*status.container_statuses, *status.init_container_statuses)
        for position, container in enumerate(statuses):
            if not container.container_id:
                continue
            place = functools.partial(layout.container_group, pod_group, container.container_id)
            group = self.placed(f"container {pod.metadata.key}/{container.name}", place)
            if group:
                yield _Container(
                    group,
                    sampler.SeriesKeys.of("container", pod.metadata.uid, container.name),
                    container.name,
                    asked.get(container.name, core.Container()),
                    running="terminated" not in container.state,
                    initial=position >= first,
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
        self, place: _Place, cgroups: cgroup_files.Cgroups, at: float, asked: controls.Asked
    ) -> tuple[state.ContainerState, ...]:
        """Read the containers of a pod."""
        found, look = [], self._controls.throttled
        for one in place.containers:
            usage = self._figures.group(one.series, one.group, cgroups, at)
            quota = cgroups.allowed_us(one.group) if asked.quotas else None
            throttled = look(one.group, cgroups) if asked.throttling else None
            found.append(
                state.ContainerState(
                    name=one.name,
                    group=one.group,
                    container=one.spec,
                    running=one.running,
                    initial=one.initial,
                    usage=usage,
                    throttled=throttled,
                    quota_us=quota,
                )
            )
        return tuple(found)
