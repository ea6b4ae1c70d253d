"""Generated cases in the form of the recorded ones, and moves made in them."""

import copy
import random
from typing import Any

from hypothesis import strategies

Case = dict[str, Any]
_GIB = 1 << 30
_SIZES = (8_000, 16_000, 32_000)


def cases(*, prod: bool = True, deviation: bool | None = None) -> strategies.SearchStrategy[Case]:
    """Cases of a few nodes; `deviation` says how thresholds are meant, None both ways."""
    return strategies.randoms(use_true_random=True).map(lambda rng: case(rng, prod, deviation))


def case(rng: random.Random, prod: bool, deviation: bool | None) -> Case:
    pods: list[Case] = []
    nodes = [_node(f"n{number}", rng) for number in range(rng.randrange(2, 7))]
    metrics = [_metric(node, pods, rng) for node in nodes]
    return {
        "args": {
            "nodeFit": rng.random() < 0.8,
            "nodeMetricExpirationSeconds": 180,
            "nodePools": [_pool(rng, prod, deviation)],
            "numberOfNodes": 0,
        },
        "nodes": nodes,
        "pods": pods,
        "nodeMetrics": [one for one in metrics if one is not None],
        "rounds": 1,
    }


def moved(given: Case, where: dict[str, str]) -> Case:
    """The case once some pods, by namespace/name, run and are measured on other nodes."""
    found = copy.deepcopy(given)
    reports = {one["node"]: one for one in found["nodeMetrics"]}
    for pod in found["pods"]:
        target = where.get(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        if target is None:
            continue
        source = reports[pod["spec"]["nodeName"]]["podsMetric"]
        own = next(one for one in source if one["name"] == pod["metadata"]["name"])
        source.remove(own)
        reports[target]["podsMetric"].append(own)
        pod["spec"]["nodeName"] = target
    return found


def _pool(rng: random.Random, prod: bool, deviation: bool | None) -> Case:
    deviates = rng.random() < 0.3 if deviation is None else deviation
    lows, highs = ((5, 15), (5, 15)) if deviates else ((20, 45), (50, 75))
    chosen = rng.choice((["cpu"], ["memory"], ["cpu", "memory"], ["cpu", "pods"]))
    pool: Case = {
        "name": "pool",
        "useDeviationThresholds": deviates,
        "lowThresholds": {name: rng.randrange(*lows) for name in chosen},
        "highThresholds": {name: rng.randrange(*highs) for name in chosen},
        "resourceWeights": {name: rng.randrange(1, 4) for name in ("cpu", "memory", *chosen)},
    }
    if prod and rng.random() < 0.5:
        pool["prodLowThresholds"] = {"cpu": rng.randrange(5, 20)}
        pool["prodHighThresholds"] = {"cpu": rng.randrange(20, 40)}
    if rng.random() < 0.2:
        pool["nodeSelector"] = {"matchLabels": {"pool": "a"}}
    return pool


def _node(name: str, rng: random.Random) -> Case:
    node: Case = {
        "metadata": {"name": name, "labels": {"pool": rng.choice(["a", "a", "b"])}},
        "spec": {},
        "status": {
            "allocatable": {
                "cpu": f"{rng.choice(_SIZES)}m",
                "memory": str(rng.choice((32, 64)) * _GIB),
                "pods": "110",
            }
        },
    }
    if rng.random() < 0.1:
        node["spec"]["unschedulable"] = True
    if rng.random() < 0.1:
        node["spec"]["taints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    return node


def _metric(node: Case, pods: list[Case], rng: random.Random) -> Case | None:
    share = rng.choice((0.1, 0.2, 0.5, 0.9, 1.1))
    own = [_pod(len(pods) + number, node, rng) for number in range(rng.randrange(7))]
    pods.extend(own)
    if rng.random() < 0.05:
        return None
    sizes = node["status"]["allocatable"]
    cpu = int(sizes["cpu"][:-1]) * share / max(len(own), 1)
    memory = int(sizes["memory"]) * share / max(len(own), 1)
    measured = [one for one in own if rng.random() < 0.95]
    return {
        "node": node["metadata"]["name"],
        "ageSeconds": rng.choice((10, 10, 10, 170, 10_000)),
        "systemUsage": {"cpu": "200m", "memory": str(_GIB)},
        "podsMetric": [
            {
                "name": one["metadata"]["name"],
                "namespace": one["metadata"]["namespace"],
                "podUsage": {
                    "resources": {
                        "cpu": f"{int(cpu * rng.uniform(0.3, 1.7))}m",
                        "memory": str(int(memory * rng.uniform(0.3, 1.7))),
                    }
                },
            }
            for one in measured
        ],
    }


def _pod(number: int, node: Case, rng: random.Random) -> Case:
    requests = {"cpu": f"{rng.randrange(20) * 100}m", "memory": f"{rng.randrange(1, 9)}Gi"}
    spec: Case = {
        "nodeName": node["metadata"]["name"],
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        "priority": rng.choice((3500, 5500, 7500, 9000, 9500)),
    }
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"pool": node["metadata"]["labels"]["pool"]}
    annotations = {}
    if rng.random() < 0.1:
        annotations["example.com/evictable"] = "false"
    if rng.random() < 0.1:
        annotations["example.com/evict-fails"] = "true"
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": "default",
            "annotations": annotations,
            "labels": {"koordinator.sh/qosClass": rng.choice(("LS", "BE", "LSR"))},
            "creationTimestamp": f"2025-06-{1 + number % 28:02}T00:00:{number % 60:02}Z",
        },
        "spec": spec,
        "status": {"phase": "Running"},
    }
