"""The cpus that pods share: those of online pods and those of best effort, by NUMA node. Pure."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from agent.model import state
from api.koordinator.metadata import qos


class Pool(msgspec.Struct, frozen=True):
    """The shared cpus of one NUMA node."""

    socket: int
    node: int
    cpus: frozenset[int]


class Claims(msgspec.Struct, frozen=True):
    """Exclusive cpus."""

    kubelet: frozenset[int] = frozenset()
    """Handed out by the kubelet."""
    pods: frozenset[int] = frozenset()
    """Of pods that were placed on cpus of their own, exclusive ones included."""
    exclusive: frozenset[int] = frozenset()
    """Those among them that not even best effort may use."""
    node: frozenset[int] = frozenset()
    """Reserved by an administrator, or the system's alone."""


class Pools(msgspec.Struct, frozen=True):
    """Both pools of a node."""

    online: tuple[Pool, ...] = ()
    best_effort: tuple[Pool, ...] = ()

    def of(self, nodes: Collection[int] | None = None, *, batch: bool = False) -> frozenset[int]:
        """Return the cpus of some NUMA nodes, of all where none are named."""
        return joined(
            pool
            for pool in (self.best_effort if batch else self.online)
            if nodes is None or pool.node in nodes
        )


def of(picture: state.NodeState) -> Pools:
    """Return the pools of a node as they stand."""
    return shared(picture.processors, claims(picture.pods, picture.reserved))


def claims(pods: Iterable[state.PodState], reserved: state.Reserved) -> Claims:
    """Return who has which cpus alone."""
    bound = [pod for pod in pods if pod.cpus]
    exclusive = (pod.cpus for pod in bound if pod.qos is qos.QoS.LSE)
    return Claims(
        kubelet=reserved.kubelet_cpus,
        pods=frozenset[int]().union(*(pod.cpus for pod in bound)),
        exclusive=frozenset[int]().union(*exclusive),
        node=reserved.cpus | reserved.system_cpus,
    )


def shared(processors: Sequence[state.Processor], claimed: Claims) -> Pools:
    """Return what is left to share.

    Pods of a class that owns cpus without being exclusive let best effort run there.
    """
    taken = claimed.kubelet | claimed.pods
    held = claimed.kubelet | claimed.exclusive
    return Pools(
        online=_by_node(processors, taken, claimed.node),
        best_effort=_by_node(processors, held, claimed.node),
    )


def joined(parts: Iterable[Pool]) -> frozenset[int]:
    """Return the cpus of several pools."""
    return frozenset[int]().union(*(pool.cpus for pool in parts))


def _by_node(
    processors: Sequence[state.Processor], taken: frozenset[int], kept: frozenset[int]
) -> tuple[Pool, ...]:
    """Return one pool per NUMA node; one that is only kept back stays with no cpu in it."""
    parts: dict[int, list[state.Processor]] = {}
    for processor in processors:
        if processor.cpu not in taken:
            parts.setdefault(processor.node, []).append(processor)
    found = (
        Pool(
            min(part, key=lambda one: one.cpu).socket,
            node,
            frozenset(one.cpu for one in part) - kept,
        )
        for node, part in parts.items()
    )
    return tuple(sorted(found, key=lambda pool: (pool.socket, pool.node)))
