"""Gangs and the same pods without gangs as documents. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from api import names
from benchmarks.plane import feed, rig

SCHEDULERS: Final = {
    "metadata": {
        "name": names.CONFIG_MAP_SCHEDULER,
        "namespace": names.NAMESPACE,
        "annotations": {names.ANNOTATION_SCHEDULERS: "default-scheduler"},
    },
}
"""What tells the webhook whose extender places gangs."""
IMPOSSIBLE: Final = 10
"""Members of the gang that has no room."""
SMALL: Final = 8
"""Members of every small gang."""
_GATE: Final = "bench.example.com/hold"
_RACK: Final = "bench.example.com/rack"
_ALONE: Final = {"cpu": "33", "memory": "16Gi"}
"""More than half of a node: no two members share one."""
_KILOBYTES: Final = 7


def nodes(count: int) -> rig.Nodes:
    """Return nodes of one size in racks that lack one node for the gang that has no room."""
    even = rig.even(count)
    return rig.Nodes(
        count,
        offers=even.offers,
        labels=lambda number: {**even.labels(number), _RACK: f"r{number // (IMPOSSIBLE - 1)}"},
        uses=lambda _: {"cpu": "2", "memory": "8Gi"},
    )


def large(name: str, members: int) -> list[dict[str, Any]]:
    """Return a gang of which every member needs a node of its own."""
    return [_alone(name, number, members) for number in range(members)]


def impossible(name: str) -> list[dict[str, Any]]:
    """Return a gang of which every member fits some node, and not all of them at the same time."""
    found = [_alone(name, number, IMPOSSIBLE) for number in range(IMPOSSIBLE)]
    for pod in found:
        pod["spec"]["nodeSelector"] = {_RACK: "r0"}
    return found


def small(prefix: str, gangs: int, *, is_gang: bool) -> Iterator[dict[str, Any]]:
    """Yield the members of many gangs, one gang after the other, or the same pods without gangs.

    The members of one gang request the same; a third of the gangs is batch work.
    """
    for number in range(gangs):
        name = f"{prefix}-{number:05d}"
        for member in range(SMALL):
            made = rig.waiting_pod(number, _KILOBYTES)
            made["metadata"]["name"] = f"{name}-{member:03d}"
            if made["metadata"]["labels"][names.LABEL_PRIORITY_CLASS] == "koord-batch":
                # The webhook admits batch work of this QoS only.
                made["metadata"]["labels"][names.LABEL_QOS] = "BE"
            if is_gang:
                made["metadata"]["annotations"] |= _declared(name, SMALL)
            yield made


def gated(pods: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Put pods behind a gate that means nothing to any program of ours."""
    for pod in pods:
        pod["spec"]["schedulingGates"] = [{"name": _GATE}]
        yield pod


OPENING: Final = {"spec": {"schedulingGates": [{"$patch": "delete", "name": _GATE}]}}
"""The smallest patch that opens that gate."""


def _alone(name: str, number: int, members: int) -> dict[str, Any]:
    made = rig.waiting_pod(0, _KILOBYTES)
    made["metadata"]["name"] = f"{name}-{number:03d}"
    made["metadata"]["annotations"] |= _declared(name, members)
    made["spec"]["containers"][0]["resources"] = {"requests": _ALONE, "limits": _ALONE}
    return made


def _declared(gang: str, members: int) -> dict[str, str]:
    return {
        names.ANNOTATION_GANG_NAME: gang,
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(members),
    }


NODE_PREFIX: Final = feed.node_name(0).encode().partition(b"0")[0]
NODE_LENGTH: Final = len(feed.node_name(0))
