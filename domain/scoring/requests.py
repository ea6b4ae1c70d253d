"""What a pod requests, in the three readings that kube-scheduler's resource scores use.

Amounts are added as exact quantities and rounded up once, as Kubernetes does.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from api.kubernetes import core
from api.wire import quantity
from domain.scoring import objects, releases

Amounts = Mapping[str, int]
_Nanos = dict[str, int]
_Written = Mapping[str, quantity.Written]
_Reader = Callable[[core.Container, core.ContainerStatus | None, bool], _Nanos]
"""Reads one container, told whether it ends before the others start."""

_NANO: Final = 10**9
MISSING_CPU: Final = 100
"""Thousandths of a cpu that count for a container without a cpu request."""
MISSING_MEMORY: Final = 200 * 1024**2
"""Bytes that count for a container without a memory request."""
_MISSING: Final = {"cpu": MISSING_CPU * 10**6, "memory": MISSING_MEMORY * _NANO}
_NONE: Final[Mapping[str, int]] = {}


def plain(pod: core.Pod, release: releases.Release) -> Amounts:
    """Return Requested of NodeInfo: what the pod requests, overhead included."""
    if _is_simple(pod):
        return _amounts(_running(pod.spec.containers, _NONE))
    return _amounts(_total(pod, release, _NONE))


def nonzero(pod: core.Pod) -> Amounts:
    """Return what NodeResourcesFit scores of a pending pod: each container requests something.

    No release looks at pod-level requests here, though all that know them filter by them.
    """
    if _is_simple(pod):
        return _amounts(_running(pod.spec.containers, _MISSING))
    total = _aggregated(pod, _spec, _MISSING)
    return _amounts(_added(total, _read(pod.spec.overhead)) if pod.spec.overhead else total)


def nonzero_placed(pod: core.Pod, release: releases.Release) -> tuple[int, int]:
    """Return NonZeroRequested of NodeInfo, cpu and memory, of a pod that is on a node."""
    if release.sidecars_apart:
        amounts = _with_sidecars_apart(pod)
        return amounts["cpu"], amounts["memory"]
    if _is_simple(pod):
        nanos = _running(pod.spec.containers, _MISSING)
        return -(-nanos.get("cpu", 0) // 10**6), -(-nanos.get("memory", 0) // _NANO)
    requested = _total(pod, release, _NONE)
    missing = dict(_MISSING)
    if _has_pod_level(pod, release):
        missing = {name: value for name, value in missing.items() if name not in requested}
    amounts = _amounts(_total(pod, release, missing))
    return amounts.get("cpu", 0), amounts.get("memory", 0)


def _with_sidecars_apart(pod: core.Pod) -> Amounts:
    """Count as schedulers up to 1.31 do: containers round up, sidecars only bound the start."""
    total = dict.fromkeys(_MISSING, 0)
    for container in pod.spec.containers:
        total = _added(total, _counted(_read(container.resources.requests)))
    sidecars: _Nanos = {}
    for container in pod.spec.init_containers:
        written = container.resources.requests
        native = {name: written[name] for name in _MISSING if name in written}
        asked = _added(_read(native), sidecars)
        if container.restart_policy == "Always":
            sidecars = asked
        total = _highest(total, _counted(asked))
    overhead = _amounts(_read(pod.spec.overhead))
    return {name: value + overhead.get(name, 0) for name, value in total.items()}


def _counted(nanos: Mapping[str, int]) -> Amounts:
    """Return cpu and memory in whole amounts, with a minimum for what is not stated."""
    return _amounts({name: nanos.get(name, least) for name, least in _MISSING.items()})


def offered(allocatable: _Written) -> Amounts:
    """Return what a node offers, in the same units."""
    return _amounts(_read(allocatable))


def _is_simple(pod: core.Pod) -> bool:
    """Whether its containers' requests are all that counts, whatever the release: most pods."""
    spec, status = pod.spec, pod.status
    return not (
        spec.init_containers
        or spec.overhead
        or spec.resources is not None
        or status.container_statuses
        or status.init_container_statuses
        or any(_pod_status(pod))
    )


def _running(containers: Sequence[core.Container], missing: Mapping[str, int]) -> _Nanos:
    """Add what containers request that run together."""
    if len(containers) == 1:
        return {**missing, **_read(containers[0].resources.requests)}
    total: _Nanos = {}
    for container in containers:
        for name, value in {**missing, **_read(container.resources.requests)}.items():
            total[name] = total.get(name, 0) + value
    return total


def _total(pod: core.Pod, release: releases.Release, missing: Mapping[str, int]) -> _Nanos:
    total = _containers(pod, release, missing)
    if _has_pod_level(pod, release):
        total |= _pod_level(pod, release)
    return _added(total, _read(pod.spec.overhead)) if pod.spec.overhead else total


def _containers(pod: core.Pod, release: releases.Release, missing: Mapping[str, int]) -> _Nanos:
    resizing, status = release.resizing, pod.status
    if resizing is releases.Resizing.IGNORED or not (
        status.container_statuses or status.init_container_statuses or any(_pod_status(pod))
    ):
        return _aggregated(pod, _spec, missing)
    infeasible = _is_infeasible(pod)
    if resizing is releases.Resizing.CONTAINER:
        return _aggregated(pod, functools.partial(_largest, infeasible), missing)
    most = {} if infeasible else _aggregated(pod, _spec, missing)
    for sums in _resized(pod, release, infeasible, missing):
        most = _highest(most, sums)
    return most


def _resized(
    pod: core.Pod, release: releases.Release, infeasible: bool, missing: Mapping[str, int]
) -> tuple[_Nanos, _Nanos]:
    """Return the sums that the kubelet granted and that the runtime enforces."""
    allocated, actuated = _pod_status(pod)
    if release.pod_level_resizing and allocated and actuated:
        return _read(allocated), _read(actuated)
    return (
        _aggregated(pod, functools.partial(_allocated, infeasible), missing),
        _aggregated(pod, functools.partial(_actuated, infeasible), missing),
    )


def _spec(container: core.Container, _: core.ContainerStatus | None, __: bool) -> _Nanos:
    return _read(container.resources.requests)


def _allocated(
    infeasible: bool, container: core.Container, status: core.ContainerStatus | None, _: bool
) -> _Nanos:
    if status is not None and status.allocated_resources:
        return _read(status.allocated_resources)
    return {} if infeasible else _read(container.resources.requests)


def _actuated(
    infeasible: bool, container: core.Container, status: core.ContainerStatus | None, starts: bool
) -> _Nanos:
    if status is not None and status.resources is not None and status.resources.requests:
        return _read(status.resources.requests)
    return _allocated(infeasible, container, status, starts)


def _largest(
    infeasible: bool, container: core.Container, status: core.ContainerStatus | None, starts: bool
) -> _Nanos:
    """Read the container alone; one that ends before the others start cannot be resized."""
    asked = _read(container.resources.requests)
    if status is None or status.resources is None or starts:
        return asked
    granted = _highest(_read(status.resources.requests), _read(status.allocated_resources))
    return granted if infeasible else _highest(asked, granted)


def _is_infeasible(pod: core.Pod) -> bool:
    pending = pod.status.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _has_pod_level(pod: core.Pod, release: releases.Release) -> bool:
    level = pod.spec.resources
    return release.pod_level_requests and level is not None and any(map(_is_level, level.requests))


def _is_level(resource: str) -> bool:
    return resource in _MISSING or resource.startswith("hugepages-")


def _pod_level(pod: core.Pod, release: releases.Release) -> _Nanos:
    level = pod.spec.resources
    asked = _read(level.requests) if level is not None else {}
    allocated, actuated = _pod_status(pod)
    effective = asked
    if release.pod_level_resizing and actuated is not None:
        granted = _highest(_read(actuated), _read(allocated or _NONE))
        effective = granted if _is_infeasible(pod) else _highest(asked, granted)
    return {name: effective.get(name, 0) for name in asked if _is_level(name)}


def _pod_status(pod: core.Pod) -> tuple[_Written | None, _Written | None]:
    """Return what the kubelet granted to the pod as a whole, and what is enforced."""
    status = pod.status
    if not isinstance(status, objects.PodStatus):
        return None, None
    actuated = status.resources.requests if status.resources is not None else None
    return status.allocated_resources, actuated


def _aggregated(pod: core.Pod, reader: _Reader, missing: Mapping[str, int]) -> _Nanos:
    """Add the containers that run together, or take the start of the pod where that is more."""
    statuses = {one.name: one for one in pod.status.init_container_statuses}
    statuses |= {one.name: one for one in pod.status.container_statuses}
    total: _Nanos = {}
    for container in pod.spec.containers:
        asked = reader(container, statuses.get(container.name), False)
        for name, value in {**missing, **asked}.items():
            total[name] = total.get(name, 0) + value
    if not pod.spec.init_containers:
        return total
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for container in pod.spec.init_containers:
        starts = container.restart_policy != "Always"
        asked = {**missing, **reader(container, statuses.get(container.name), starts)}
        # A pod may have thousands of these, each with a resource of its own: whatever this one does
        # not ask for is left alone, and what sidecars hold of it is in the total anyway.
        during = {name: value + sidecars.get(name, 0) for name, value in asked.items()}
        if starts:
            peak |= _highest(during, {name: peak[name] for name in during if name in peak})
            continue
        for name, value in asked.items():
            total[name] = total.get(name, 0) + value
        sidecars |= during
    return _highest(total, peak)


def _amounts(nanos: Mapping[str, int]) -> Amounts:
    return {name: -(-value // (10**6 if name == "cpu" else _NANO)) for name, value in nanos.items()}


def _read(written: Mapping[str, quantity.Written]) -> _Nanos:
    return {name: quantity.parse(value).nanos for name, value in written.items()}


def _added(left: Mapping[str, int], right: Mapping[str, int]) -> _Nanos:
    total = dict(left)
    for name, value in right.items():
        total[name] = total.get(name, 0) + value
    return total


def _highest(left: Mapping[str, int], right: Mapping[str, int]) -> _Nanos:
    total = dict(left)
    for name, value in right.items():
        total[name] = max(total.get(name, value), value)
    return total
