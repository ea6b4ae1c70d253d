"""Resource amounts: what pods ask for and nodes offer, as whole numbers.

CPU is counted in milli, everything else in base units; see `api.wire.quantity`.
"""

from collections.abc import Iterable, Mapping

from api.kubernetes import core
from api.wire import quantity

Amounts = Mapping[str, int]


def amounts(written: Mapping[str, quantity.Written] | None) -> dict[str, int]:
    """Read a resource list as it stands in an object; none is an empty one."""
    return quantity.amounts(written) if written else {}


def add(left: Amounts, right: Amounts) -> dict[str, int]:
    """Add two sets of amounts; a resource missing on one side counts as nothing."""
    total = dict(left)
    for name, value in right.items():
        total[name] = total.get(name, 0) + value
    return total


def subtract(left: Amounts, right: Amounts) -> dict[str, int]:
    """Subtract; the result may be negative and names every resource of either side."""
    return add(left, {name: -value for name, value in right.items()})


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
    overhead = amounts(pod.spec.overhead)
    return add(limits, {name: value for name, value in overhead.items() if limits.get(name)})


def _pod_total(
    pod: core.Pod, side: str, overhead: Mapping[str, quantity.Written] | None
) -> dict[str, int]:
    running = _sum(_side(container, side) for container in pod.spec.containers)
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        asked = _side(container, side)
        if container.restart_policy == "Always":
            sidecars = add(sidecars, asked)
            peak = highest(peak, sidecars)
        else:
            peak = highest(peak, add(sidecars, asked))
    total = highest(add(running, sidecars), peak)
    level = getattr(pod.spec.resources, side, None) if pod.spec.resources else None
    total.update(amounts(level))
    return add(total, amounts(overhead))


def _side(container: core.Container, side: str) -> dict[str, int]:
    return amounts(getattr(container.resources, side, None))


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        total = add(total, part)
    return total


def node_allocatable(node: core.Node) -> dict[str, int]:
    """Return what a node offers to pods."""
    return amounts(node.status.allocatable)
