"""What the kubelet and the runtime write to the cgroups of pods, from spec, status and cpu manager.

A strategy that overwrites a value of theirs asks here what they would write by now, and whether
another text may be theirs. The answer is a prediction: a kubelet may be told to set no quota, a
plug-in of the runtime may change a limit. It only counts where an earlier one agreed with the file.
Pure.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent.model import cgroup_layout, cgroup_properties, edits, state
from agent.model.cpus import reserved_cpus
from api import names
from api.kubernetes import core
from api.wire import quantity
from domain.cpus import cpulists
from domain.pods import resources

_R = edits.Role
_OF_PODS: Final = frozenset({_R.CPU_QUOTA, _R.CPU_SHARES, _R.MEMORY_LIMIT})
"""What an in-place resize changes."""
_OF_CLASSES: Final = frozenset({_R.CPU_SHARES, _R.MEMORY_MIN, _R.MEMORY_LIMIT})
"""What the kubelet sets again on the cgroups of QoS classes whenever pods come and go."""
_OF_UNITS: Final[Mapping[edits.Role, tuple[str, ...]]] = {
    _R.CPU_QUOTA: ("-1", "max 100000"),
    _R.CPU_SHARES: ("1024", "100"),
    _R.MEMORY_LIMIT: ("-1", "max"),
    _R.MEMORY_LOW: ("0",),
    _R.MEMORY_MIN: ("0",),
    _R.MEMORY_HIGH: ("max",),
    _R.CPUSET: ("",),
}
"""What `systemctl daemon-reload` sets where the unit of a cgroup says nothing."""
_CLASS_DEPTH, _POD_DEPTH, _CONTAINER_DEPTH = 1, 2, 3


class KubeletWrites:
    """The expectations of one look; computed for the cgroups that are asked for."""

    def __init__(self, picture: state.NodeState, arranged: cgroup_layout.Layout) -> None:
        self._picture = picture
        self._layout = arranged
        self._found: dict[str, tuple[state.PodState, str | None]] | None = None
        top = arranged.qos_group("Guaranteed")
        self._top, self._above = top, top.count("/")

    def value(self, role: edits.Role, group: str) -> str | None:
        """Return the text that the kubelet would have put there by now; None where unknown."""
        if role not in _OF_PODS and role is not _R.CPUSET:
            return None
        found = self._pods().get(group)
        if found is None:
            return None
        pod, container = found
        if role is _R.CPUSET:
            return self._shared_pool(pod) if container is not None else None
        try:
            value = _amount(role, _present(pod.pod), container)
        except quantity.QuantityError:
            return None
        return (
            None if value is None else cgroup_properties.render(role, value, self._layout.version)
        )

    def may_write(self, role: edits.Role, group: str, text: str) -> bool:
        """Tell whether the kubelet, its runtime or a reload of systemd may have written a text."""
        depth = self._depth(group)
        if depth is None:
            return False
        if self._layout.driver == "systemd" and text in _OF_UNITS.get(role, ()):
            return True
        if depth <= _CLASS_DEPTH and role in _OF_CLASSES:
            return True
        if role is _R.CPUSET:
            return depth >= _CONTAINER_DEPTH and self._hands_out_cpus()
        expected = self.value(role, group)
        return expected is not None and cgroup_properties.same(role, text, expected)

    def _depth(self, group: str) -> int | None:
        """Return 0 for the cgroup of all pods, 1 for a class, 2 for a pod, 3 for a container."""
        if group != self._top and not group.startswith(f"{self._top}/"):
            return None
        depth = group.count("/") - self._above
        if depth and cgroup_layout.is_of_pod(group.split("/")[self._above + 1]):
            # Guaranteed pods lie beside the other classes.
            depth += 1
        return depth

    def _hands_out_cpus(self) -> bool:
        """Tell whether the kubelet's cpu manager may change the cpus of containers."""
        kubelet = self._picture.kubelet
        known = kubelet is not None and bool(kubelet.policy)
        return (
            self._picture.reserved.static_cpu_manager
            or not known
            or (kubelet is not None and kubelet.policy == reserved_cpus.STATIC)
        )

    def _shared_pool(self, pod: state.PodState) -> str | None:
        """Return the cpus that a static cpu manager leaves to containers without their own."""
        kubelet = self._picture.kubelet
        if kubelet is None or kubelet.policy != reserved_cpus.STATIC or kubelet.problems:
            return None
        if any(one.uid == pod.pod.metadata.uid for one in kubelet.given):
            return None
        taken = frozenset[int]().union(*(one.cpus for one in kubelet.given))
        left = frozenset(one.cpu for one in self._picture.processors) - taken
        return cpulists.text(left) if left else None

    def _pods(self) -> dict[str, tuple[state.PodState, str | None]]:
        """Return pods and names of containers by their cgroups."""
        if self._found is None:
            self._found = {}
            for pod in self._picture.pods:
                self._found |= {one.group: (pod, one.name) for one in pod.containers}
                self._found[pod.group] = (pod, None)
            self._found.pop("", None)
        return self._found


def depends_on(picture: state.NodeState) -> object:
    """Return what all answers follow from; a pod that did not change is the same object."""
    pods = tuple((pod.pod, pod.group) for pod in picture.pods)
    return pods, picture.kubelet, picture.processors, picture.reserved.static_cpu_manager


def _present(pod: core.Pod) -> core.Pod:
    """Return a pod that asks for what the runtime enforces: a resize gets there late or never."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    actual = {one.name: one.resources for one in statuses if one.resources is not None}
    if not actual:
        return pod

    def now(container: core.Container) -> core.Container:
        found = actual.get(container.name)
        if found is None or not (found.limits or found.requests):
            return container
        return msgspec.structs.replace(container, resources=found)

    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(now, pod.spec.containers)),
        init_containers=tuple(map(now, pod.spec.init_containers)),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _amount(role: edits.Role, pod: core.Pod, container: str | None) -> str | None:
    """Return the value of an edit that the kubelet would make; None where that is not known."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if container is not None:
        named = next((one for one in containers if one.name == container), None)
        return None if named is None else _of_container(role, named.resources)
    return _of_pod(role, pod)


def _of_container(role: edits.Role, asked: core.ResourceRequirements) -> str:
    cpu, memory = (
        quantity.amount(name, asked.limits.get(name, "0")) for name in (names.CPU, names.MEMORY)
    )
    if role is _R.MEMORY_LIMIT:
        return str(memory or -1)
    if role is _R.CPU_QUOTA:
        return str(cgroup_properties.quota(cpu))
    # The runtime is given shares of the request; a limit alone is a request as well.
    request = quantity.amount(names.CPU, asked.requests.get(names.CPU, "0"))
    return str(cgroup_properties.shares(request or cpu))


def _of_pod(role: edits.Role, pod: core.Pod) -> str:
    if role is _R.CPU_SHARES:
        return str(cgroup_properties.shares(resources.pod_requests(pod).get(names.CPU, 0)))
    name = names.CPU if role is _R.CPU_QUOTA else names.MEMORY
    if not resources.is_limited(pod.spec, name):
        return "-1"
    amount = resources.pod_limits(pod).get(name, 0)
    return str(cgroup_properties.quota(amount)) if role is _R.CPU_QUOTA else str(amount or -1)
