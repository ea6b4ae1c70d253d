"""Resource amounts: what pods ask for and nodes offer, as whole numbers.

CPU is counted in milli, everything else in base units; see `api.wire.quantity`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from api import names
from api.koordinator import resource_names
from api.kubernetes import core
from api.wire import quantity

Amounts = Mapping[str, int]
NONZERO: Final[Amounts] = {names.CPU: 100, names.MEMORY: 200 << 20}
"""What kube-scheduler counts for a container that requests nothing: millicores and bytes."""
_NOTHING: Final[Amounts] = {}


def amounts(written: Mapping[str, quantity.Written] | None) -> dict[str, int]:
    """Read a resource list of an object under present names; none is an empty one."""
    return quantity.amounts(resource_names.current(written)) if written else {}


def add(left: Amounts, right: Amounts) -> dict[str, int]:
    """Add two sets of amounts; a resource missing on one side counts as nothing."""
    total = dict(left)
    for name, value in right.items():
        total[name] = total.get(name, 0) + value
    return total


def subtract(left: Amounts, right: Amounts) -> dict[str, int]:
    """Subtract; the result may be negative and names every resource of either side."""
    return add(left, {name: -value for name, value in right.items()})


def less(left: Amounts, several: Iterable[Iterable[tuple[str, int]]]) -> dict[str, int]:
    """Subtract several sets of amounts, given as pairs; cheaper than one after the other."""
    total = dict(left)
    for pairs in several:
        for name, value in pairs:
            total[name] = total.get(name, 0) - value
    return total


def highest(left: Amounts, right: Amounts) -> dict[str, int]:
    """Return the larger amount per resource."""
    return {
        name: max(left.get(name, 0), right.get(name, 0)) for name in dict.fromkeys((*left, *right))
    }


def fits(asked: Amounts, free: Amounts) -> bool:
    """Whether everything asked for (zero asks nothing) is free."""
    return all(value <= free.get(name, 0) for name, value in asked.items() if value > 0)


def pod_requests(pod: core.Pod) -> dict[str, int]:
    """Return what Kubernetes reserves for a pod: its steady state or its start, if that is more."""
    return _pod_total(pod, "requests", pod.spec.overhead)


def pod_limits(pod: core.Pod) -> dict[str, int]:
    """Return the limits of a pod by the same rule; overhead counts only where a limit exists."""
    limits = _pod_total(pod, "limits", None)
    if not pod.spec.overhead:
        return limits
    overhead = amounts(pod.spec.overhead)
    return add(limits, {name: value for name, value in overhead.items() if limits.get(name)})


def lasting(spec: core.PodSpec) -> tuple[core.Container, ...]:
    """Return the containers that run as long as the pod does: regular ones and sidecars."""
    if not spec.init_containers:
        return spec.containers
    sidecars = (one for one in spec.init_containers if one.restart_policy == "Always")
    return (*spec.containers, *sidecars)


def is_limited(spec: core.PodSpec, resource: str) -> bool:
    """Whether the kubelet limits a pod as a whole: the pod says so, or each of its containers.

    Of init containers it looks at what sidecars have at that moment, which covers one without.
    """
    if spec.resources is not None and amounts(spec.resources.limits).get(resource):
        return True
    if not all(_side(one, "limits").get(resource) for one in spec.containers):
        return False
    covered = False
    for container in spec.init_containers:
        has_limit = bool(_side(container, "limits").get(resource))
        if not (covered or has_limit):
            return False
        covered = covered or (has_limit and container.restart_policy == "Always")
    return True


def nonzero_requests(pod: core.Pod) -> dict[str, int]:
    """Return NonZeroRequested of NodeInfo: containers without a cpu or memory request count some.

    What the pod requests as a whole replaces what is assumed of its containers.
    """
    return _pod_total(pod, "requests", pod.spec.overhead, NONZERO)


def sequential_requests(pod: core.Pod) -> dict[str, int]:
    """Return what scores of Koordinator count of a pod: its containers, then init containers.

    Sidecars are added in their order; another init container raises the sum so far to its own.
    """
    total = _running(pod.spec.containers, "requests", NONZERO)
    for container in pod.spec.init_containers:
        asked = {**NONZERO, **_side(container, "requests")}
        if container.restart_policy == "Always":
            _add_to(total, asked)
        else:
            _raise_to(total, asked)
    return add(total, amounts(pod.spec.overhead)) if pod.spec.overhead else total


def _pod_total(
    pod: core.Pod,
    side: str,
    overhead: Mapping[str, quantity.Written] | None,
    missing: Amounts = _NOTHING,
) -> dict[str, int]:
    spec = pod.spec
    running = _running(spec.containers, side, missing)
    if not (spec.init_containers or spec.resources or overhead):
        return {name: max(value, 0) for name, value in running.items()}
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        asked = {**missing, **_side(container, side)}
        # The peak holds all sidecars so far: only what this one asks for can raise it.
        during = {name: sidecars.get(name, 0) + value for name, value in asked.items()}
        _raise_to(peak, during)
        if container.restart_policy == "Always":
            sidecars.update(during)
    total = highest(add(running, sidecars), peak)
    level = getattr(spec.resources, side, None) if spec.resources else None
    total.update(amounts(level))
    return add(total, amounts(overhead))


def _running(containers: Sequence[core.Container], side: str, missing: Amounts) -> dict[str, int]:
    """Add what containers ask for that run together."""
    if len(containers) == 1:
        return {**missing, **_side(containers[0], side)}
    return _sum({**missing, **_side(one, side)} for one in containers)


def _side(container: core.Container, side: str) -> dict[str, int]:
    return amounts(getattr(container.resources, side, None))


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        _add_to(total, part)
    return total


# A pod may have thousands of containers, each with a resource of its own: what looked at the whole
# sum for each of them would take time that grows with the square of their number.
def _add_to(total: dict[str, int], part: Amounts) -> None:
    for name, value in part.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], part: Amounts) -> None:
    for name, value in part.items():
        total[name] = max(total.get(name, 0), value)


def node_allocatable(node: core.Node) -> dict[str, int]:
    """Return what a node offers to pods."""
    return amounts(node.status.allocatable)
