"""Reservations as tests write them."""

from manager.reservations import objects

UID = "0f9c2a44-6d1b-4b5e-8f0e-3a7d5c1e9b20"
CREATED = 1_700_000_000.0


def raw(name="r", spec=None, template=None, status=None, **metadata):
    """Return a Reservation for the pods of Job `batch`, as the API server stores it."""
    pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}]}
    owners = [{"labelSelector": {"matchLabels": {"job": "batch"}}}]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {
            "name": name,
            "uid": UID,
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2023-11-14T22:13:20Z",
            **metadata,
        },
        "spec": {"template": template or {"spec": pod}, "owners": owners, **(spec or {})},
        "status": status or {},
    }


def read(*args, **kwargs):
    """Return a Reservation as the manager keeps it."""
    found = objects.reservation(raw(*args, **kwargs))
    assert found is not None
    return found


def placed(node="n1", **status):
    """Return the status of a Reservation of 4 cpus and 8 GiB that is Available on a node."""
    moment = "2023-11-14T22:13:20Z"
    times = {"lastProbeTime": moment, "lastTransitionTime": moment}
    return {
        "phase": "Available",
        "nodeName": node,
        "allocatable": {"cpu": "4", "memory": "8Gi"},
        "conditions": [
            {"type": "Scheduled", "status": "True", "reason": "Scheduled", **times},
            {"type": "Ready", "status": "True", "reason": "Available", **times},
        ],
        **status,
    }


def template():
    """Return a pod template of one container."""
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
