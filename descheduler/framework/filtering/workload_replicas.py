"""How many pods of a workload may move or be unavailable at the same time. Pure."""

from typing import Final

from descheduler.model import picture, podinfo

_FEW: Final = 4
_MANY: Final = 10


def limit(replicas: int, written: int | str | None) -> int:
    """Return how many pods: a number, a percentage rounded down, or by size where none is written.

    At least one, and never more than there are replicas.
    """
    return min(_unbounded(replicas, written), replicas)


def _unbounded(replicas: int, written: int | str | None) -> int:
    if written is None:
        return replicas // 10 if replicas > _MANY else 2 if replicas >= _FEW else 1
    if isinstance(written, str):
        return max(replicas * int(written.removesuffix("%")) // 100, 1)
    return max(written, 1)


def of(pod: podinfo.Pod, seen: picture.Picture) -> int | None:
    """Return how many replicas the workload of a pod should have; None where it is not known."""
    controller = pod.controller
    found = seen.workloads.get(controller.uid) if controller is not None else None
    return found.replicas if found is not None else None


def family(controller: str, seen: picture.Picture) -> str:
    """Return the uid of the Deployment that controls a ReplicaSet, any other uid as it is."""
    found = seen.workloads.get(controller)
    return found.owner or controller if found is not None else controller
