"""Sums of what the pods of an ElasticQuota ask for and use, by quota label and namespace. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from domain.quota import model

Group = tuple[str, str]
"""Quota label (empty where there is none) and namespace of pods."""


class Sum(NamedTuple):
    """What pods ask for and use in one resource."""

    request: int = 0
    used: int = 0
    non_preemptible_request: int = 0
    non_preemptible_used: int = 0


NOTHING: Final = Sum()
Sums = Mapping[str, Sum]


def plus(one: Sum, other: Sum) -> Sum:
    """Add two sums."""
    return Sum(one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3])


def of_pod(pod: model.PodUse, sign: int) -> list[tuple[str, Sum]]:
    """Return what a pod adds (1) or takes away (-1), by resource."""
    found = []
    for name, amount in (*pod.requests, (model.PODS, 1)):
        change = sign * amount
        firm = 0 if pod.preemptible else change
        found.append((name, Sum(change, change * pod.assigned, firm, firm * pod.assigned)))
    return found


def count(groups: dict[Group, Sums], pod: model.PodUse, sign: int) -> None:
    """Add a pod to the sums of its group (1) or take it away (-1); empty sums are left out."""
    group = (pod.quota, pod.namespace)
    sums = dict(groups.get(group, {}))
    for name, extra in of_pod(pod, sign):
        total = sums[name] = plus(sums.get(name, NOTHING), extra)
        if total == NOTHING:
            del sums[name]
    if sums:
        groups[group] = sums
    else:
        groups.pop(group, None)
