"""A cluster of uneven nodes, the pods that are placed on it, and how evenly they lie; pure."""

import collections
import dataclasses
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.plane import feed, rig

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_CORES = (8, 16, 16, 32, 32, 64, 96)
_GIB_PER_CORE = (2, 4, 4, 8)
_ZONES = ("a", "a", "a", "b", "b", "c")
_BUSY_EVERY = 4
"""Every fourth node has pods of before, on half of it."""
_USED_CPU, _USED_MEMORY = 0.85, 0.70
"""The share of what is requested that is used: what the extender expects of new pods as well, so
that balancing by load and balancing by requests agree."""
APPLICATIONS = 5
"""Deployments among the pods."""


def _cores(number: int) -> int:
    return _CORES[number % len(_CORES)]


def _gib(number: int) -> int:
    return _cores(number) * _GIB_PER_CORE[number % len(_GIB_PER_CORE)]


def _resident(number: int) -> tuple[int, int]:
    """Return millicores and MiB that pods of before request on a node."""
    if number % _BUSY_EVERY:
        return 0, 0
    return _cores(number) * 500, _gib(number) * 512


def nodes(count: int) -> rig.Nodes:
    """Return nodes of many sizes in zones of different size, a fourth of them half full."""

    def offers(number: int) -> Mapping[str, str]:
        cores, gib = _cores(number), _gib(number)
        return {
            "cpu": str(cores), "memory": f"{gib}Gi", "pods": "110",
            "kubernetes.io/batch-cpu": str(cores * 400),
            "kubernetes.io/batch-memory": f"{gib * 400}Mi",
        }  # fmt: skip

    def uses(number: int) -> Mapping[str, str]:
        cpu, memory = _resident(number)
        return {"cpu": f"{int(cpu * _USED_CPU)}m", "memory": f"{int(memory * _USED_MEMORY)}Mi"}

    def labels(number: int) -> Mapping[str, str]:
        return {ZONE: zone(number), HOSTNAME: feed.node_name(number)}

    return rig.Nodes(count, offers, labels, uses)


def zone(number: int) -> str:
    """Return the zone of a node."""
    return _ZONES[number % len(_ZONES)]


def residents(count: int) -> Iterator[dict[str, Any]]:
    """Yield the pods of before, bound already."""
    for number in range(count):
        cpu, memory = _resident(number)
        if cpu:
            requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
            yield _pod(f"resident-{number}", requests, {"app": "resident"}) | {
                "spec": {"nodeName": feed.node_name(number), **_spec(requests)}
            }


def pods(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield services of many sizes and, every sixth, batch work."""
    rng = random.Random(seed)
    for number in range(count):
        cpu, memory = rng.choice((250, 500, 1000, 2000, 4000, 8000)), rng.choice((1, 2, 4, 8, 16))
        if number % 6 == 0:
            requests = {
                "kubernetes.io/batch-cpu": str(cpu),
                "kubernetes.io/batch-memory": f"{memory}Gi",
            }
        else:
            requests = {"cpu": f"{cpu}m", "memory": f"{memory}Gi"}
        yield _pod(f"mixed-{number}", requests, {"app": f"mixed-{number % 50}"})


def applications(replicas: int) -> Iterator[dict[str, Any]]:
    """Yield Deployments, whose replicas kube-scheduler spreads by default."""
    for number in range(APPLICATIONS):
        labels = {"app": f"application-{number}"}
        requests = {"cpu": f"{500 * (number + 1)}m", "memory": f"{number + 1}Gi"}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"application-{number}"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": _spec(requests)},
            },
        }


def _pod(name: str, requests: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": _spec(requests)}


def _spec(requests: Mapping[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": requests}
    return {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "image": "app:v1", "resources": resources}],
    }


@dataclasses.dataclass(frozen=True, slots=True)
class Quality:
    """How evenly pods lie."""

    cpu_deviation: float
    """Standard deviation over nodes of the share of cpu that is requested, in points of percent."""
    cpu_hottest: float
    """The highest such share, in percent."""
    memory_deviation: float
    memory_hottest: float
    replicas_on_node: float
    """Replicas of one Deployment on the node with most of them, mean over Deployments."""
    replicas_between_zones: float
    """Replicas in the fullest zone less those in the emptiest, mean over Deployments."""


def quality(placed: Iterable[Mapping[str, Any]], count: int) -> Quality:
    """Judge where pods lie, as the API server lists them."""
    cpu, memory = [0.0] * count, [0.0] * count
    numbers = {feed.node_name(number): number for number in range(count)}
    replicas: dict[str, collections.Counter[int]] = {}
    for pod in placed:
        number = numbers[pod["spec"]["nodeName"]]
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        cpu[number] += _milli(requests.get("cpu", "0"))
        memory[number] += _mebi(requests.get("memory", "0"))
        app = pod["metadata"]["labels"]["app"]
        if app.startswith("application-"):
            replicas.setdefault(app, collections.Counter())[number] += 1
    cpu_shares = [used / (_cores(number) * 10) for number, used in enumerate(cpu)]
    memory_shares = [used / (_gib(number) * 10.24) for number, used in enumerate(memory)]
    return Quality(
        statistics.pstdev(cpu_shares),
        max(cpu_shares),
        statistics.pstdev(memory_shares),
        max(memory_shares),
        statistics.mean(max(found.values()) for found in replicas.values()),
        statistics.mean(_between_zones(found) for found in replicas.values()),
    )


def _between_zones(found: Mapping[int, int]) -> int:
    zones = dict.fromkeys(_ZONES, 0)
    for number, replicas in found.items():
        zones[zone(number)] += replicas
    return max(zones.values()) - min(zones.values())


def _milli(text: str) -> float:
    return float(text.removesuffix("m")) if text.endswith("m") else float(text) * 1000


def _mebi(text: str) -> float:
    if text.endswith("Gi"):
        return float(text.removesuffix("Gi")) * 1024
    return float(text.removesuffix("Mi"))
