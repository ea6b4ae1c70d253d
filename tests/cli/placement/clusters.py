"""Small clusters in which a pod is placed, or others leave for it."""

import json

from api import names, resources
from cli.snapshot import format as formats
from cli.snapshot import projection
from tests import builders
from tests.cli.commands.test_get import SHORT, a_quota
from tests.cli.reservations.test_reservations import a_reservation
from tests.extender.clusters import device_cluster, numa_cluster

NOW = "2026-07-01T12:00:00Z"
WANTED = "default/wanted"
GPU = names.NVIDIA_GPU
CPUS = {"labels": {names.LABEL_QOS: "LSR"}}
SETTINGS = "plugins:\n  enabled: [ElasticQuota, BatchFit, LoadAware, Reservation, DeviceShare]\n"


def wanted(cpu="4", priority=1000, **more):
    return builders.a_pod("wanted", cpu=cpu, memory="1Gi", priority=priority, **more)


def low(name="low", cpu="4", node="n1", priority=10, **more):
    return builders.a_pod(name, cpu=cpu, memory="1Gi", node=node, priority=priority, **more)


def snapshot(*objects, settings=SETTINGS, without=(), home=names.NAMESPACE):
    """The snapshot of these objects, with every resource but some; `home`: where Koord runs."""
    held = {resource: [] for resource in projection.RESOURCES if resource not in without}
    held[resources.CONFIG_MAPS] = []
    if settings:
        held[resources.CONFIG_MAPS].append(
            {
                "metadata": {"name": projection.EXTENDER_SETTINGS, "namespace": home},
                "data": {"settings.yaml": settings},
            }
        )
    kinds = {(one.api_version, one.kind): one for one in held}
    for raw in objects:
        resource = kinds[raw["apiVersion"], raw["kind"]]
        held[resource].append(raw)
    found = {}
    for one, raws in held.items():
        # Two versions of one resource have one name.
        kept = tuple(projection.kept(one, raw) for raw in raws)
        found[one.review_name()] = found.get(one.review_name(), ()) + kept
    return formats.Snapshot(NOW, found)


def a_topology(node="n1"):
    """Sixteen CPUs on two NUMA nodes."""
    kind = resources.NODE_RESOURCE_TOPOLOGIES
    raw = numa_cluster.topology()
    metadata = raw["metadata"] | {"name": node}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **raw, "metadata": metadata}


def a_device(node="n1", gpus=1):
    kind = resources.DEVICES
    raw = device_cluster.device(node, *(device_cluster.gpu(n) for n in range(gpus)))
    return {"apiVersion": kind.api_version, "kind": kind.kind, **raw}


def a_slice(node="n1", gpus=1):
    """What a driver offers on a node: the GPUs of `a_device`, by their UUIDs."""
    kind = resources.RESOURCE_SLICES
    offered = [
        {
            "name": f"gpu-{n}",
            "attributes": {"uuid": {"string": f"GPU-{n}"}, "model": {"string": "secret"}},
        }
        for n in range(gpus)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": f"{node}-gpus"},
        "spec": {"driver": "gpu.example", "nodeName": node, "pool": pool, "devices": offered},
    }


def a_claim(*gpus, node="n1", name="held"):
    """A ResourceClaim that was given these GPUs."""
    kind = resources.RESOURCE_CLAIMS
    results = [
        {"request": "r", "driver": "gpu.example", "pool": node, "device": f"gpu-{n}"} for n in gpus
    ]
    status = {"allocation": {"devices": {"results": results}}} if results else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "secret"}]}},
        "status": status,
    }


def holds_cpus(cpus, **more):
    note = json.dumps({"cpuset": cpus})
    return low(annotations={names.ANNOTATION_RESOURCE_STATUS: note}, **CPUS, **more)


def holds_gpu(**more):
    whole = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"}
    note = json.dumps({"gpu": [{"minor": 0, "id": "GPU-0", "resources": whole}]})
    return low(
        requests={"cpu": "1", "memory": "1Gi", GPU: "1"},
        annotations={names.ANNOTATION_DEVICE_ALLOCATED: note},
        **more,
    )


def wants_gpu(**more):
    return wanted(requests={"cpu": "1", "memory": "1Gi", GPU: "1"}, **more)


def a_class(name, value, **more):
    kind = resources.PRIORITY_CLASSES
    metadata = {"metadata": {"name": name}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **metadata, "value": value, **more}


def a_budget(allowed=0):
    kind = resources.POD_DISRUPTION_BUDGETS
    return {
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "kept"}}},
        "status": {"disruptionsAllowed": allowed},
    }  # fmt: skip


def of_team(pod):
    pod["metadata"].setdefault("labels", {})[names.LABEL_QUOTA_NAME] = "team"
    return pod


def a_team(most="4"):
    return a_quota("team", "default", SHORT, minimum="1", most=most)


__all__ = ["a_reservation"]
