"""Sums of what the pods of an ElasticQuota ask for and use, by quota label and namespace. Pure."""

from collections.abc import Mapping
from typing import Final

from domain.quota import model

Group = tuple[str, str]
"""Quota label (empty where there is none) and namespace of pods."""
Sum = tuple[int, int, int, int]
"""What pods ask for and use in one resource, all of them and those that are never preempted."""
Sums = Mapping[str, Sum]
"""The same by resource; what is nothing is left out."""

NOTHING: Final[Sum] = (0, 0, 0, 0)


def of_pod(pod: model.PodUse, sign: int = 1) -> dict[str, Sum]:
    """Return what a pod adds (1) or takes away (-1)."""
    assigned, firm = pod.assigned, not pod.preemptible
    found: dict[str, Sum] = {}
    for name, amount in (*pod.requests, (model.PODS, 1)):
        change = sign * amount
        used = change if assigned else 0
        found[name] = (change, used, change if firm else 0, used if firm else 0)
    return found


def plus(one: Sums, other: Sums) -> dict[str, Sum]:
    """Add sums; what comes to nothing is left out."""
    found = dict(one)
    for name, (request, used, firm_request, firm_used) in other.items():
        before = found.get(name, NOTHING)
        total = (
            before[0] + request,
            before[1] + used,
            before[2] + firm_request,
            before[3] + firm_used,
        )
        if total == NOTHING:
            found.pop(name, None)
        else:
            found[name] = total
    return found


def changes(
    before: model.PodUse | None, after: model.PodUse | None
) -> list[tuple[Group, Mapping[str, Sum]]]:
    """Return what the change of a pod means to the groups that it was and is in."""
    if before is not None and after is not None and _group(before) == _group(after):
        delta = plus(of_pod(before, -1), of_pod(after))
        return [(_group(after), delta)] if delta else []
    return [
        (_group(pod), of_pod(pod, sign))
        for pod, sign in ((before, -1), (after, 1))
        if pod is not None
    ]


def _group(pod: model.PodUse) -> Group:
    return pod.quota, pod.namespace
