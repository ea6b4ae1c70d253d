"""Random small clusters with quotas, and changes of them; the same seed gives the same case."""

import dataclasses
import random

from api import names, resources

PLAIN, QUOTA, SHORT = resources.QUOTA_RESOURCES
PRIORITIES = (0, 10, 20)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """What is created, and what changes once all is quiet."""

    seed: int
    nodes: tuple[tuple[str, int], ...]
    """Names and cores."""
    quotas: tuple[dict, ...]
    pods: tuple[dict, ...]
    flags: tuple[str, ...]
    """Changes as `koord simulate quota --set` takes them."""


def case(seed):
    """Return a case."""
    rng = random.Random(seed)
    quotas = [quota(rng, f"q{number}") for number in range(rng.randint(2, 4))]
    roomy = rng.random() < 0.6
    cores = rng.choice((32, 48)) if roomy else rng.choice((8, 12))
    nodes = tuple((f"n{number}", cores) for number in range(rng.randint(1, 3)))
    pods = tuple(pod(rng, number, quotas) for number in range(rng.randint(6, 14)))
    chosen = rng.sample(quotas, rng.randint(1, min(3, len(quotas))))
    flags = tuple(flag(rng, one) for one in chosen)
    return Case(seed, nodes, tuple(quotas), pods, flags)


def quota(rng, name):
    """Return a quota; its minimum is at most its maximum."""
    resource = rng.choice(resources.QUOTA_RESOURCES)
    least = rng.randint(0, 6)
    spec = {"min": {"cpu": least}, "max": {"cpu": least + rng.randint(1, 8)}}
    if resource is not PLAIN:
        spec["priority"] = rng.choice((0, 0, 1))
    return {
        "apiVersion": resource.api_version,
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def pod(rng, number, quotas):
    """Return a pod of one of the quotas, or of none."""
    name = rng.choice(quotas)["metadata"]["name"]
    labels = {} if rng.random() < 0.05 else {names.LABEL_QUOTA_NAME: name}
    if rng.random() < 0.1:
        labels[names.LABEL_QUOTA_PREEMPTIBLE] = "false"
    demands = {"cpu": str(rng.randint(1, 5))}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "labels": labels},
        "spec": {
            "priorityClassName": f"preview-{rng.choice(PRIORITIES)}",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "c", "image": "registry.example/c:1", "resources": {"requests": demands}}
            ],
        },
    }


def flag(rng, quota):
    """Return a change of a quota that leaves its minimum at most its maximum."""
    name, spec = quota["metadata"]["name"], quota["spec"]
    least, most = spec["min"]["cpu"], spec["max"]["cpu"]
    kind = rng.choice(("max", "max", "max", "min", "priority"))
    if kind == "priority" and "priority" in spec:
        return f"{name}.priority={rng.randint(0, 3)}"
    if kind == "min":
        return f"{name}.min.cpu={rng.randint(0, most)}"
    return f"{name}.max.cpu={rng.randint(least, most + 10)}"
