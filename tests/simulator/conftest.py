import itertools

import pytest

from simulator import intree

SERIAL = itertools.count(1)


def make_pod(name="x", *, priority=0, requests=None, labels=None, status=None, **spec):
    container = {"name": "main", "resources": {"requests": requests or {}}}
    meta = {"name": name, "namespace": "a", "uid": f"uid-{name}", "labels": labels or {}}
    return {
        "metadata": meta,
        "spec": {
            "containers": [container],
            "priority": priority,
            "schedulerName": "default-scheduler",
            **spec,
        },
        "status": status or {},
    }


def make_node(name="n", *, labels=None, taints=None, unschedulable=False, **allocatable):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}
    spec = {"taints": taints or [], "unschedulable": unschedulable}
    meta = {"name": name, "labels": labels or {}}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": meta, "spec": spec, "status": status}


@pytest.fixture
def pod():
    """Build the raw pod that the scheduler reads."""
    return make_pod


@pytest.fixture
def node():
    """Build a raw node."""
    return make_node


@pytest.fixture
def pod_info():
    """Build a pod as the checks see it."""
    return lambda *args, **options: intree.read_pod(make_pod(*args, **options))


@pytest.fixture
def node_info():
    """Build a node with pods on it as the checks see it."""

    def build(*pods, **options):
        return intree.read_node(make_node(**options), {pod.uid: pod for pod in pods})

    return build
