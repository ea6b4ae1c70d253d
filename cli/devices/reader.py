"""Read from the API server what says who holds which device."""

from typing import Any

from api import resources
from cli.devices import cluster
from kube.client import client as clients
from kube.client import errors

_OPTIONAL = (resources.RESOURCE_SLICES, resources.RESOURCE_CLAIMS)


async def read(kube: clients.Client) -> tuple[cluster.ClusterDevices, tuple[str, ...]]:
    """Return the devices of the cluster, and notes about what could not be read."""
    notes: list[str] = []
    found: dict[resources.Resource, list[dict[str, Any]]] = {}
    for resource in (resources.DEVICES, *_OPTIONAL):
        found[resource] = []
        try:
            found[resource] = list((await kube.list(resource)).items)
        except errors.NotFound:
            if resource not in _OPTIONAL:
                notes.append(f"{resource.review_name()} is not installed")
        except errors.Forbidden as error:
            notes.append(f"{resource.review_name()} cannot be read: {error}")
    pods = (await kube.list(resources.PODS)).items
    objects = cluster.Objects(
        found[resources.DEVICES],
        pods,
        found[resources.RESOURCE_SLICES],
        found[resources.RESOURCE_CLAIMS],
    )
    return cluster.build(objects), tuple(notes)
