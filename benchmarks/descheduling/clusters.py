"""Generated clusters as the descheduler sees them: some nodes hot, most of them cool."""

import random
from collections.abc import Iterator
from typing import Final

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from descheduler.model import nodeinfo, picture, podinfo
from domain.quota import placement

NOW: Final = 1_800_000_000.0
_GIB: Final = 1 << 30
_CPU, _MEMORY = 64_000, 256 * _GIB
_HOT, _WARM = 0.1, 0.4
"""Shares of nodes of which the first are above their high thresholds, the rest between both."""
_ZONES: Final = 3
_BANDS: Final = (qos.Band.PROD, qos.Band.PROD, qos.Band.MID, qos.Band.BATCH)
_PRIORITY: Final = {qos.Band.PROD: 9000, qos.Band.MID: 7000, qos.Band.BATCH: 5000}


class Workload:
    """Pods that are alike."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.name = f"team-{number % 40}/app-{number}"
        self.owner = core.OwnerReference("apps/v1", "ReplicaSet", self.name, f"rs-{number}", True)
        self.band = rng.choice(_BANDS)
        cpu, memory = rng.randrange(5, 25) * 100, rng.randrange(1, 9) * _GIB
        self.requests = {names.CPU: cpu, names.MEMORY: memory, names.PODS: 1}
        self.labels = {"app": f"app-{number}"}
        selector = {"zone": f"zone-{number % _ZONES}"} if number % 10 == 0 else {}
        self.wanted = placement.requirements(core.PodSpec(node_selector=selector))


def generated(nodes: int, pods_per_node: int, workloads: int = 2000) -> picture.Picture:
    """Return a cluster in which a tenth of all nodes is overloaded."""
    rng = random.Random(17)
    apps = [Workload(number, rng) for number in range(workloads)]
    known, pods, usages = {}, {}, {}
    on_node: dict[str, tuple[podinfo.Pod, ...]] = {}
    for number in range(nodes):
        node = _node(number)
        known[node.name] = node
        found = tuple(_pods(node.name, pods_per_node, apps, rng))
        on_node[node.name] = found
        pods.update({pod.uid: pod for pod in found})
        usages[node.name] = _usage(node.name, number / nodes, found, rng)
    by_controller: dict[str, list[podinfo.Pod]] = {}
    alike: dict[podinfo.Likeness, list[podinfo.Pod]] = {}
    for pod in pods.values():
        alike.setdefault(podinfo.likeness(pod), []).append(pod)
        by_controller.setdefault(pod.owners[0].uid, []).append(pod)
    return picture.Picture(
        NOW, known, pods, on_node, alike, usages, by_controller=by_controller,
        namespaces={f"team-{number}": {} for number in range(40)},
    )  # fmt: skip


def _node(number: int) -> nodeinfo.Node:
    name = f"node-{number:05}"
    offered = {names.CPU: _CPU, names.MEMORY: _MEMORY, names.PODS: 110}
    labels = {names.LABEL_HOSTNAME: name, "zone": f"zone-{number % _ZONES}"}
    return nodeinfo.Node(name, name, labels, allocatable=offered, capacity=offered)


def _pods(node: str, count: int, apps: list[Workload], rng: random.Random) -> Iterator[podinfo.Pod]:
    for number in range(count):
        app = rng.choice(apps)
        key = f"{app.name}-{node}-{number}"
        yield podinfo.Pod(
            key=key,
            uid=key,
            node=node,
            phase="Running",
            priority=_PRIORITY[app.band],
            band=app.band,
            kubernetes_qos="Burstable",
            labels=app.labels,
            owners=(app.owner,),
            requests=app.requests,
            wanted=app.wanted,
            created=NOW - rng.randrange(7200, 864_000),
            ready=True,
        )


def _usage(
    node: str, place: float, pods: tuple[podinfo.Pod, ...], rng: random.Random
) -> nodeinfo.Usage:
    if place < _HOT:
        share = rng.uniform(0.75, 0.95)
    else:
        share = rng.uniform(0.5, 0.6) if place < _WARM else rng.uniform(0.1, 0.35)
    weights = [rng.uniform(0.2, 1.8) for _ in pods]
    unit = share / sum(weights)
    by_pod = {
        pod.key: {names.CPU: int(_CPU * unit * w), names.MEMORY: int(_MEMORY * unit * w * 0.8)}
        for pod, w in zip(pods, weights, strict=True)
    }
    system = {names.CPU: 500, names.MEMORY: 2 * _GIB}
    return nodeinfo.Usage(node, NOW - 30.0, system, by_pod)
