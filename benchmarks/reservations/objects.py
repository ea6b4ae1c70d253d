"""Reservations, their owners and other pods as documents. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from api import names, resources
from benchmarks.plane import feed, rig

SHAPE: Final = resources.RESERVATIONS
PATH: Final = SHAPE.path()
APPS: Final = 20
"""Workloads that the Reservations are for."""
RESERVED: Final = {"cpu": "4", "memory": "8Gi"}
WANTED: Final = {"cpu": "1", "memory": "1Gi"}
"""What an owner requests that waits for its own Reservation."""
_BATCH_EACH, _OTHERS_EACH = 3, 4


def is_owner(number: int) -> bool:
    """Whether the pod of this number is one that Reservations are for: half of all, none batch."""
    return number % _BATCH_EACH != _BATCH_EACH - 1 and number % _OTHERS_EACH != _OTHERS_EACH - 1


def owners(first: int, count: int) -> int:
    """Return how many of these pods Reservations are for."""
    return sum(map(is_owner, range(first, first + count)))


def waiting(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield pods of 7 KB that wait, half of them owners of Reservations, if there are any."""
    for number in range(first, first + count):
        made = rig.waiting_pod(number, 7)
        if is_owner(number):
            made["metadata"]["labels"]["reserved-for"] = _app(number)
        yield made


def running(count: int, nodes: int) -> Iterator[dict[str, Any]]:
    """Yield pods of 2 KB that have a node already."""
    for number in range(count):
        made = rig.waiting_pod(number, 2)
        made["spec"]["nodeName"] = feed.node_name(number % nodes)
        yield made


def reservation(number: int) -> dict[str, Any]:
    """Return a Reservation for the pods of one workload, which many of them may use."""
    return _document(f"r-{number:05d}", _app(number), RESERVED, allocate_once=False)


def available(node: str) -> dict[str, Any]:
    """Return the status of one that holds a node."""
    conditions = [
        {"type": "Scheduled", "status": "True", "reason": "Scheduled"},
        {"type": "Ready", "status": "True", "reason": "Available"},
    ]
    status = {"phase": "Available", "nodeName": node, "allocatable": RESERVED}
    return {"status": {**status, "conditions": conditions}}


def own_name(turn: int, number: int) -> str:
    """Return the name of a pod that waits for its own Reservation, and of that Reservation."""
    return f"own-{turn}-{number:05d}"


def own_reservation(name: str) -> dict[str, Any]:
    """Return a Reservation for one pod of the same name; the scheduler has to find its node."""
    return _document(name, name, WANTED, allocate_once=True)


def own_pod(name: str) -> dict[str, Any]:
    """Return a pod that may only use the Reservation of its name."""
    made = rig.waiting_pod(0, 7)
    made["metadata"]["name"] = name
    made["metadata"]["labels"] = {names.LABEL_PRIORITY_CLASS: "koord-prod", "reserved-for": name}
    made["metadata"]["annotations"][names.ANNOTATION_RESERVATION_AFFINITY] = json.dumps(
        {"name": name}
    )
    made["spec"]["containers"][0]["resources"] = {"requests": WANTED, "limits": WANTED}
    return made


def users(pods: Iterable[Mapping[str, Any]]) -> int:
    """Count the pods that use a Reservation."""
    return sum(
        names.ANNOTATION_RESERVATION_ALLOCATED in (one["metadata"].get("annotations") or {})
        for one in pods
    )


def refused(pods: Iterable[Mapping[str, Any]]) -> int:
    """Count the pods for which kube-scheduler found no node."""
    return sum(
        one["type"] == "PodScheduled" and one["status"] == "False"
        for pod in pods
        for one in (pod.get("status") or {}).get("conditions") or ()
    )


def _app(number: int) -> str:
    return f"app-{number % APPS}"


def _document(
    name: str, app: str, requests: Mapping[str, str], *, allocate_once: bool
) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/team/app:v1"}
    template = {
        "metadata": {"namespace": rig.NAMESPACE},
        "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
    }
    return {
        "apiVersion": SHAPE.api_version,
        "kind": SHAPE.kind,
        "metadata": {"name": name},
        "spec": {
            "template": template,
            "owners": [{"labelSelector": {"matchLabels": {"reserved-for": app}}}],
            "allocateOnce": allocate_once,
        },
    }
