"""Nodes whose batch and mid pods hold more than the nodes would lend. Pure.

Nobody is evicted at once: such pods run on until the agent suppresses or evicts them by its own
strategies, and kube-scheduler places no further ones there.
"""

import dataclasses
from collections.abc import Iterator

import msgspec

from api import resources
from api.kubernetes import core
from cli import reading
from cli.simulation import lent
from cli.snapshot import format as formats
from domain.pods import resources as amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Over:
    """One lent resource of one node."""

    node: str
    resource: str
    held: int
    lent: int
    pods: tuple[str, ...]
    """Those that no longer fit, of the lowest priority and the youngest first."""


def found(snapshot: formats.Snapshot, given: lent.Lent) -> Iterator[Over]:
    """Yield the nodes and resources of which more is held than lent, by node."""
    pods: dict[str, list[core.Pod]] = {}
    for raw in snapshot.of(resources.PODS):
        pod = reading.either(None, msgspec.convert, raw, core.Pod)
        if pod is not None and pod.spec.node_name and not pod.finished:
            pods.setdefault(pod.spec.node_name, []).append(pod)
    for node, listed in sorted(pods.items()):
        if node in given.nodes:
            yield from _of_node(node, listed, given.nodes[node])


def _of_node(node: str, pods: list[core.Pod], given: lent.Amounts) -> Iterator[Over]:
    asked = [(pod, reading.either({}, amounts.pod_requests, pod)) for pod in pods]
    asked.sort(key=lambda one: one[0].metadata.creation_timestamp or "", reverse=True)
    asked.sort(key=lambda one: one[0].spec.priority or 0)
    for resource in lent.RESOURCES:
        held = sum(requests.get(resource, 0) for _, requests in asked)
        excess = held - given.get(resource, 0)
        if excess <= 0:
            continue
        names = []
        for pod, requests in asked:
            if excess > 0 and requests.get(resource, 0):
                names.append(pod.metadata.key)
                excess -= requests[resource]
        yield Over(node, resource, held, given.get(resource, 0), tuple(names))
