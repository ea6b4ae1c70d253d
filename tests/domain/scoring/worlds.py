"""Random clusters, profiles and pods from a seed."""

import dataclasses
import random
from typing import Any

from domain.scoring import node_resources, profile, releases

GIB = 2**30
GPU, NIC = "example.com/gpu", "example.com/nic"
APPS = ("web", "db", "job")
APP = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}}, "spec": {}}


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """A cluster and what happens in it."""

    settings: profile.ScoringProfile
    cluster: dict[str, list[Any]]
    pending: list[dict[str, Any]]


def world(seed: int) -> World:
    """Return a random cluster with pods that are to be placed."""
    draw = random.Random(seed)
    nodes = [node(draw, number) for number in range(draw.randint(1, 9))]
    names = [node["metadata"]["name"] for node in nodes]
    placed = [(pod(draw, f"old-{n}"), draw.choice(names)) for n in range(draw.randint(0, 12))]
    workloads = [
        workload(draw, kind, app)
        for kind in ("Service", "ReplicaSet", "StatefulSet")
        for app in APPS
        if draw.random() < 0.5
    ]
    pending = [pod(draw, f"new-{number}") for number in range(3)]
    return World(
        _settings(draw), {"nodes": nodes, "placed": placed, "workloads": workloads}, pending
    )


def _settings(draw: random.Random) -> profile.ScoringProfile:
    scored = (("cpu", 1), ("memory", draw.randint(1, 3)), (GPU, 2), (NIC, 1))
    strategy = draw.choice(list(node_resources.Strategy))
    ramp = ()
    if strategy is node_resources.Strategy.REQUESTED_TO_CAPACITY_RATIO:
        ramp = node_resources.ramp([(0, draw.randint(0, 5)), (40, 10), (100, draw.randint(0, 10))])
    return profile.ScoringProfile(
        "default-scheduler",
        releases.RELEASES[draw.choice((28, 30, 32, 33, 34, 35, 36, 37))],
        weights=tuple((name, weight * draw.choice((1, 10))) for name, weight in profile.WEIGHTS),
        fit=node_resources.Fit(strategy, scored[: draw.randint(1, 4)], ramp),
        balanced=("cpu", "memory", GPU, NIC)[: draw.randint(2, 4)],
    )


def node(draw: random.Random, number: int) -> dict[str, Any]:
    """Return a random node."""
    labels = {"disk": draw.choice(("ssd", "hdd"))}
    if draw.random() < 0.9:
        labels["kubernetes.io/hostname"] = f"n{number}"
    if draw.random() < 0.8:
        labels["topology.kubernetes.io/zone"] = draw.choice(("", "a", "b"))
    taints = [
        {"key": key, "value": draw.choice(("x", "y")), "effect": effect}
        for key, effect in (
            ("soft", "PreferNoSchedule"),
            ("old", "PreferNoSchedule"),
            ("gone", "NoExecute"),
        )
        if draw.random() < 0.4
    ]
    offered: dict[str, Any] = {
        "cpu": draw.choice(("4", "7910m")),
        "memory": f"{draw.randint(4, 9)}Gi",
    }
    if draw.random() < 0.6:
        offered[GPU] = draw.randint(0, 8)
    images = [
        {"names": [f"reg.test/{app}:latest", f"reg.test/{app}@sha256:0"], "sizeBytes": size}
        for app, size in zip(APPS, (40 * 2**20, 900 * 2**20, 3000 * 2**20), strict=True)
        if draw.random() < 0.5
    ]
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": offered, "images": images},
    }


def _container(draw: random.Random, name: str) -> dict[str, Any]:
    requests: dict[str, Any] = {}
    if draw.random() < 0.6:
        requests["cpu"] = draw.choice(("250m", "1", "1500m"))
    if draw.random() < 0.6:
        requests["memory"] = draw.choice(("64Mi", "1Gi", "1500m"))
    if draw.random() < 0.2:
        requests[GPU] = draw.randint(1, 2)
    image = f"reg.test/{draw.choice(APPS)}{draw.choice(('', ':latest'))}"
    return {"name": name, "image": image, "resources": {"requests": requests}}


def pod(draw: random.Random, name: str) -> dict[str, Any]:
    """Return a random pod."""
    app = draw.choice(APPS)
    spec: dict[str, Any] = {
        "containers": [_container(draw, f"c{place}") for place in range(draw.randint(1, 2))],
        "initContainers": [
            _container(draw, f"i{place}") | draw.choice(({}, {"restartPolicy": "Always"}))
            for place in range(draw.randint(0, 2))
        ],
        "tolerations": [
            one
            for one in (
                {"key": "soft", "operator": "Exists"},
                {"key": "old", "value": "x", "effect": "PreferNoSchedule"},
                {"operator": "Exists", "effect": "NoExecute"},
            )
            if draw.random() < 0.3
        ],
    }
    if draw.random() < 0.3:
        spec["overhead"] = {"cpu": "10m", "memory": "5Mi"}
    if draw.random() < 0.3:
        spec["nodeSelector"] = {"disk": "ssd"}
    if draw.random() < 0.5:
        wanted = {"key": "disk", "operator": "In", "values": [draw.choice(("ssd", "hdd"))]}
        term = {"weight": draw.randint(1, 9), "preference": {"matchExpressions": [wanted]}}
        spec["affinity"] = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    kind = draw.choice(("ReplicaSet", "StatefulSet", "Job"))
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": app, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": draw.choice(("default", "default", "other")),
            "labels": {"app": app, "track": draw.choice(("stable", "canary"))},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def workload(draw: random.Random, kind: str, app: str) -> dict[str, Any]:
    """Return a random Service or controller."""
    pairs = {"app": app} | draw.choice(({}, {"track": "stable"}))
    selector = pairs if kind == "Service" else {"matchLabels": pairs}
    return {
        "kind": kind,
        "metadata": {"namespace": "default", "name": app},
        "spec": {"selector": selector},
    }
