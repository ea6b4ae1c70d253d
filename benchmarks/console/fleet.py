"""A large cluster in the stores of a manager, as its reflectors would have filled them."""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from api import names, resources
from api.wire import durations
from kube.client import client as clients
from kube.informers import informer_set, reflector, store
from manager import pages, parts, term
from manager.console import informers, site
from manager.devices import term as devices
from manager.quota import term as quotas
from manager.reservations import term as reservations
from manager.settings import ConsoleSettings, Settings
from process.runtime import clock as clocks
from process.runtime import metrics

Raw = dict[str, Any]

_TEAMS = 200
_GPU_NODES = 500
_GIB = 1 << 30
_REFUSAL = (
    "0/5000 nodes are available: 4100 Insufficient kubernetes.io/batch-cpu, 900 node(s) had "
    "untolerated taint(s). preemption: 0/5000 nodes are available: 5000 No preemption victims."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """How much there is."""

    nodes: int = 5000
    pods: int = 150_000
    waiting: int = 5000
    """Of the pods, those without a node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fleet:
    """The console in front of filled stores, and the store that pods are in."""

    console: site.Console
    watched: term.Watched


def built(api: clients.Client, clock: clocks.Clock, size: Size, console: ConsoleSettings) -> Fleet:
    """Fill the stores that the console reads."""
    settings, registry = Settings(), metrics.Registry()
    members = [informer_set.InformerSet(api, clock) for _ in range(4)]
    watched = term.Watched(members[0], parts.nodes(settings, slices=False), lambda _: ())
    quota = quotas.Quotas(
        members[1], watched.nodes, watched.all_pods, parts.quotas(settings), clock, registry
    )
    device = devices.Devices(members[2], watched.pods, parts.devices(settings), clock, registry)
    reserved = reservations.Reservations(
        members[3], watched.all_pods, watched.nodes, parts.reservations(settings), clock, registry
    )
    shared = informers.Shared(
        watched.nodes,
        watched.metrics,
        watched.all_pods,
        pages.Nodes(watched, clock).document,
        forest=lambda: quota.book.forest,
        devices=lambda: device.book.nodes,
        reservations=reserved.written,
    )
    shown = site.Console(api, shared, console, clock, registry)
    found: dict[resources.Resource, list[reflector.Reflector[Any]]] = {}
    for some in (*members, shown.watched.members):
        for one in some.members:
            found.setdefault(one.projection.resource, []).append(one)
    # Of several configuration maps the first is that of the cluster's settings.
    del found[resources.CONFIG_MAPS][1:]
    draw = random.Random(18)
    for resource, raws in _objects(draw, size, clock.now()).items():
        _fill(found[resource], raws)
    for _ in device.book.refresh():
        pass
    return Fleet(shown, watched)


def _fill(reflectors: Sequence[reflector.Reflector[Any]], raws: Iterable[Raw]) -> None:
    version = 0
    for version, raw in enumerate(raws, 1):
        metadata = raw["metadata"]
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        for one in reflectors:
            kind = one.projection.type
            decoded = raw if kind is dict else msgspec.convert(raw, kind)
            value = one.projection.project(decoded)
            one.store.put(store.Meta(key, metadata["uid"], version), value)
    for one in reflectors:
        one.store.finished(version)


def _objects(
    draw: random.Random, size: Size, now: float
) -> Mapping[resources.Resource, Iterator[Raw]]:
    settings = '{"enable": true}'
    config = {
        "metadata": _metadata(names.CONFIG_MAP_SLO, names.NAMESPACE),
        "data": {"colocation-config": settings},
    }
    return {
        resources.CONFIG_MAPS: iter((config,)),
        resources.NODES: (_node(number) for number in range(size.nodes)),
        resources.PODS: (_pod(draw, number, size, now) for number in range(size.pods)),
        resources.NODE_METRICS: (_report(draw, number, size, now) for number in range(size.nodes)),
        resources.ELASTIC_QUOTAS: (_quota(number) for number in range(_TEAMS)),
        resources.DEVICES: (_devices(number) for number in range(min(_GPU_NODES, size.nodes))),
        resources.RESERVATIONS: (_reservation(number) for number in range(200)),
        resources.POD_MIGRATION_JOBS: (_migration(number, now) for number in range(1000)),
    }


def _metadata(name: str, namespace: str = "", **more: Any) -> Raw:
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", **more}


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:05}.pool-{number % 7}.example"


def _node(number: int) -> Raw:
    amounts = {
        names.CPU: "64", names.MEMORY: "256Gi", "pods": "110",
        names.BATCH_CPU: str(20_000 + number % 9000), names.BATCH_MEMORY: f"{80 + number % 40}Gi",
    }  # fmt: skip
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 5}"}
    ready = {"type": "Ready", "status": "False" if number % 211 == 0 else "True"}
    return {
        "metadata": _metadata(node_name(number), labels=labels),
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def _pod(draw: random.Random, number: int, size: Size, now: float) -> Raw:
    batch, waits = number % 4 == 0, number < size.waiting
    cpu = draw.choice((500, 1000, 1500, 2000))
    asked = {names.CPU: f"{cpu}m", names.MEMORY: f"{cpu * 2}Mi"}
    labels = {"app": f"app-{number % 3000}", names.LABEL_QUOTA_NAME: f"team-{number % _TEAMS:03}"}
    if batch:
        asked = {names.BATCH_CPU: str(cpu), names.BATCH_MEMORY: f"{cpu * 2}Mi"}
        labels |= {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
    notes = {}
    if number % 10 == 3:
        notes = {
            names.ANNOTATION_GANG_NAME: f"gang-{number // 2000}",
            names.ANNOTATION_GANG_MIN_AVAILABLE: "8",
        }
    spec: Raw = {
        "schedulerName": "koord-scheduler",
        "containers": [{"name": "main", "resources": {"requests": asked, "limits": asked}}],
    }
    status: Raw = {"phase": "Pending" if waits else "Running"}
    if not waits:
        spec["nodeName"] = node_name(number % size.nodes)
    elif number % 3 == 0:
        spec["schedulingGates"] = [{"name": names.GATE_QUOTA}]
    else:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
             "message": _REFUSAL}
        ]  # fmt: skip
    team = f"team-{number % _TEAMS:03}"
    since = durations.moment(now - number % 90_000)
    metadata = _metadata(
        f"app-{number % 3000}-{number:06}", team, labels=labels, annotations=notes,
        creationTimestamp=since,
    )  # fmt: skip
    return {"metadata": metadata, "spec": spec, "status": status}


def _report(draw: random.Random, number: int, size: Size, now: float) -> Raw:
    pods = [
        {
            "namespace": f"team-{other % _TEAMS:03}",
            "name": f"app-{other % 3000}-{other:06}",
            "priority": "koord-batch" if other % 4 == 0 else "koord-prod",
            "podUsage": {"resources": {"cpu": f"{draw.randrange(100, 900)}m", "memory": "512Mi"}},
        }
        for other in range(number, size.pods, size.nodes)
        if other >= size.waiting
    ]
    used = {"cpu": f"{draw.randrange(6000, 60_000)}m", "memory": f"{draw.randrange(40, 220)}Gi"}
    system = {"cpu": "900m", "memory": "2Gi"}
    status = {
        "updateTime": durations.moment(now),
        "nodeMetric": {"nodeUsage": {"resources": used}, "systemUsage": {"resources": system}},
        "podsMetric": pods,
    }
    return {"metadata": _metadata(node_name(number)), "spec": {}, "status": status}


def _quota(number: int) -> Raw:
    labels = {} if number % 20 == 0 else {
        names.LABEL_QUOTA_PARENT: f"team-{number - number % 20:03}"
    }  # fmt: skip
    labels |= {names.LABEL_QUOTA_IS_PARENT: "true" if number % 20 == 0 else "false"}
    size = 20 if number % 20 == 0 else 1
    spec = {
        "min": {"cpu": str(600 * size), "memory": f"{1200 * size}Gi"},
        "max": {"cpu": str(1500 * size), "memory": f"{3000 * size}Gi"},
    }
    return {
        "apiVersion": resources.ELASTIC_QUOTAS.api_version,
        "kind": "ElasticQuota",
        "metadata": _metadata(f"team-{number:03}", f"team-{number:03}", labels=labels),
        "spec": spec,
    }


def _devices(number: int) -> Raw:
    whole = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"}
    listed = [
        {"type": "gpu", "minor": minor, "id": f"GPU-{number}-{minor}",
         "health": (number + minor) % 97 != 0, "resources": whole}
        for minor in range(8)
    ]  # fmt: skip
    labels = {names.LABEL_GPU_MODEL: "A100" if number % 2 else "H100"}
    return {
        "metadata": _metadata(node_name(number), labels=labels),
        "spec": {"devices": listed},
    }


def _reservation(number: int) -> Raw:
    asked = {"requests": {"cpu": "8", "memory": "16Gi"}}
    container = {"name": "c", "image": "i", "resources": asked}
    status: Raw = {"phase": "Pending"}
    if number % 5:
        status = {
            "phase": "Available", "nodeName": node_name(number),
            "allocatable": {"cpu": "8", "memory": "16Gi"}, "allocated": {"cpu": "2"},
        }  # fmt: skip
    return {
        "apiVersion": resources.RESERVATIONS.api_version,
        "kind": "Reservation",
        "metadata": _metadata(f"nightly-{number:03}"),
        "spec": {
            "template": {"spec": {"containers": [container]}},
            "owners": [{"labelSelector": {"matchLabels": {"app": "nightly"}}}],
            "ttl": "24h",
        },
        "status": status,
    }


def _migration(number: int, now: float) -> Raw:
    phase = ("Succeeded", "Running", "Failed")[number % 3]
    return {
        "apiVersion": resources.POD_MIGRATION_JOBS.api_version,
        "kind": "PodMigrationJob",
        "metadata": _metadata(
            f"move-{number:04}", creationTimestamp=durations.moment(now - 60 * number)
        ),
        "spec": {"podRef": {"namespace": f"team-{number % _TEAMS:03}", "name": f"app-{number}"}},
        "status": {"phase": phase, "nodeName": node_name(number)},
    }
