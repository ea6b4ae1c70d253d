"""The pod or container that runtime hooks look at, and the stage of its life. Pure."""

import enum
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from agent.model import state

_R = TypeVar("_R")
_T = TypeVar("_T")


class Stage(enum.StrEnum):
    """When hooks run, by the names of the CRI hook API; reconciliation has no name there."""

    RUN_POD_SANDBOX = "PreRunPodSandbox"
    CREATE_CONTAINER = "PreCreateContainer"
    UPDATE_CONTAINER = "PreUpdateContainerResources"
    RECONCILE = "Reconcile"


class Level(enum.Enum):
    """Which cgroup of a pod is meant."""

    POD = "pod"
    CONTAINER = "container"
    SANDBOX = "sandbox"
    """The pause container."""


class Subject(msgspec.Struct, frozen=True):
    """One cgroup of one pod at one stage."""

    stage: Stage
    level: Level
    pod: state.PodState
    container: state.ContainerState | None = None
    """Set exactly at the level of containers."""
    spec_known: bool = True
    """Whether the spec of the pod is known; a container runtime hands over metadata alone."""
    requested_quota_us: int | None = None
    """The CFS quota that the runtime was asked for, where it says; -1 for no limit."""

    @property
    def group(self) -> str:
        """The cgroup, empty while it is unknown."""
        if self.level is Level.POD:
            return self.pod.group
        return self.pod.sandbox if self.container is None else self.container.group

    @property
    def in_guest(self) -> bool:
        """Whether the cgroup lies in a virtual machine, out of reach of this host."""
        kata = self.pod.pod.spec.runtime_class_name == state.KATA
        return kata and self.level is not Level.POD


def of_pod(pod: state.PodState) -> Iterator[Subject]:
    """Return every cgroup of a pod that exists, for reconciliation: from above to below."""
    yield Subject(Stage.RECONCILE, Level.POD, pod)
    for container in pod.containers:
        yield Subject(Stage.RECONCILE, Level.CONTAINER, pod, container)
    if pod.sandbox:
        yield Subject(Stage.RECONCILE, Level.SANDBOX, pod)


class PerPod(Generic[_R, _T]):
    """Remembers what was found for the latest pod, whose cgroups hooks are asked for in a row.

    Equal to calling the function; threads may share one.
    """

    def __init__(self, find: Callable[[state.PodState, _R], _T]) -> None:
        self._find = find
        self._latest: tuple[state.PodState, _R, _T] | None = None

    def __call__(self, pod: state.PodState, rule: _R) -> _T:
        """Return what the function finds for a pod by a rule."""
        latest = self._latest
        if latest is not None and latest[0] is pod and latest[1] is rule:
            return latest[2]
        found = self._find(pod, rule)
        self._latest = (pod, rule, found)
        return found
