"""Drift of cpusets: cgroups that use exclusive CPUs of a pod without having been given them. Pure.

The strategy `cpuset` writes the cpusets of containers. What stands in the kernel may still differ:
another program keeps writing its value, a static CPU manager of the kubelet leaves CPUs of ours in
its own shared pool, a service of the host is pinned to them, or no shared CPU is left.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from agent.model import state
from agent.model.cpus import reserved_cpus
from api.koordinator.metadata import qos
from domain.cpus import cpulists

LONGEST_GROUP: Final = 200
_NONE: Final = frozenset[int]()

Cpusets = Mapping[str, frozenset[int]]
"""The CPUs that the kernel lets a cgroup use, by the path of the cgroup."""


class Kind(enum.StrEnum):
    """What differs."""

    MOVED = "moved"
    """A container of the pod may use other CPUs than those it was given."""
    SHARED = "shared"
    """Another pod may use exclusive CPUs of the pod."""
    PINNED = "pinned"
    """A cgroup outside of pods is pinned to exclusive CPUs of the pod."""


class Drift(msgspec.Struct, frozen=True):
    """One pod with exclusive CPUs, and one cgroup or pod that does not respect them."""

    kind: Kind
    pod: state.PodState
    cpus: frozenset[int]
    """The CPUs in question: those used beside the pod's own, or those shared."""
    other: str
    """The container, the pod (namespace/name) or the cgroup that uses them."""
    cause: str = ""
    """Why, where it is known."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What the drift is about: the same from one look to the next."""
        return self.pod.pod.metadata.uid, self.kind.value, self.other

    @property
    def note(self) -> str:
        """One sentence for an event."""
        cpus, why = cpulists.text(self.cpus), f" ({self.cause})" if self.cause else ""
        match self.kind:
            case Kind.MOVED:
                own = cpulists.text(self.pod.cpus)
                return f"container {self.other} may use cpus {cpus}, and was given {own}{why}"
            case Kind.SHARED:
                return f"pod {self.other} may use cpus {cpus}, which this pod has alone{why}"
            case Kind.PINNED:
                return f"cgroup {self.other} is pinned to cpus {cpus}, which this pod has alone"


def owners(
    picture: state.NodeState, enforced: Callable[[state.PodState], bool]
) -> tuple[state.PodState, ...]:
    """Return the pods with exclusive CPUs whose cpusets the agent writes."""
    return tuple(
        pod for pod in picture.pods if pod.cpus and pod.active and pod.inside and enforced(pod)
    )


class _User(NamedTuple):
    """A pod, which of the claimed CPUs it may use, and whether it is best effort."""

    pod: state.PodState
    cpus: frozenset[int]
    best_effort: bool


def find(
    picture: state.NodeState,
    cpusets: Cpusets,
    pinned: Cpusets,
    enforced: Callable[[state.PodState], bool],
) -> tuple[Drift, ...]:
    """Return every drift of one look.

    `cpusets` are those of the cgroups of pods, `pinned` those of cgroups outside of pods for which
    a program chose CPUs; `enforced` tells whether the agent writes the cpusets of a pod. Cgroups
    that could not be read are left out.
    """
    with_cpus = owners(picture, enforced)
    claimed = frozenset[int]().union(*(owner.cpus for owner in with_cpus))
    others = tuple(_users(picture, cpusets, claimed, enforced))
    found: list[Drift] = []
    for owner in with_cpus:
        found += _moved(owner, cpusets)
        found += _shared(owner, others, picture)
        found += (
            Drift(Kind.PINNED, owner, cpus & owner.cpus, group[:LONGEST_GROUP])
            for group, cpus in sorted(pinned.items())
            if cpus & owner.cpus
        )
    return tuple(found)


def _users(
    picture: state.NodeState,
    cpusets: Cpusets,
    claimed: frozenset[int],
    enforced: Callable[[state.PodState], bool],
) -> Iterator[_User]:
    """Yield the pods that may use any CPU that a pod claims for itself."""
    for pod in picture.pods:
        groups = [one.group for one in pod.inside if one.running]
        used = frozenset[int]().union(*(cpusets.get(group, frozenset()) for group in groups))
        if (cpus := used & claimed) and pod.active and enforced(pod):
            yield _User(pod, cpus, pod.best_effort)


def _moved(owner: state.PodState, cpusets: Cpusets) -> Iterator[Drift]:
    for container in owner.inside:
        cpus = cpusets.get(container.group)
        if cpus and cpus != owner.cpus:
            yield Drift(Kind.MOVED, owner, cpus, container.name)


def _shared(
    owner: state.PodState,
    others: Sequence[_User],
    picture: state.NodeState,
) -> Iterator[Drift]:
    # Best effort may use what only an exclusive class has for itself.
    from_all = owner.qos is qos.QoS.LSE
    for pod, used, best_effort in others:
        cpus = used & owner.cpus if from_all or not best_effort else _NONE
        if not cpus or pod is owner:
            continue
        yield Drift(Kind.SHARED, owner, cpus, pod.pod.metadata.key, _cause(pod, cpus, picture))


def _cause(pod: state.PodState, cpus: frozenset[int], picture: state.NodeState) -> str:
    kubelet = picture.kubelet
    uid = pod.pod.metadata.uid
    if kubelet is not None:
        given = (one.cpus for one in kubelet.given if one.uid == uid)
        if cpus & frozenset[int]().union(*given):
            return "the kubelet gave it these cpus"
    if pod.cpus & cpus:
        return "its own claim names them"
    if not pod.cpus and (
        picture.reserved.static_cpu_manager
        or (kubelet is not None and kubelet.policy == reserved_cpus.STATIC)
    ):
        return "the kubelet's static CPU manager keeps its shared pool"
    if used_all := {one.cpu for one in picture.processors}:
        taken = frozenset[int]().union(*(one.cpus for one in picture.pods))
        if used_all <= taken:
            return "no shared cpu is left on this node"
    return ""


class Confirmed:
    """Drifts that two looks in a row agree on, so that a container that just started is not told.

    Holds the keys of the last look only; `step` is called once per look.
    """

    def __init__(self) -> None:
        self._seen: frozenset[tuple[str, str, str]] = frozenset()

    def step(self, found: tuple[Drift, ...]) -> tuple[Drift, ...]:
        """Return what the look before has found as well."""
        before, self._seen = self._seen, frozenset(one.key for one in found)
        return tuple(one for one in found if one.key in before)
