"""Reservations, their stand-ins and owners, as people and kube-scheduler write them."""

from api import names, resources
from tests import builders
from tests.manager.reservations import reserved

KIND, PODS = resources.RESERVATIONS, resources.PODS
ONLY = {"controllers": ("reservation",)}


async def reserve(world, name="r", spec=None, template=None, **metadata):
    raw = reserved.raw(name, spec, template)
    body = {**raw, "metadata": {"name": name, **metadata}}
    del body["status"]
    await world.admin.create(KIND, body)


async def place(world, name="r", node="n1", **status):
    """Do what the extender does when a scheduler binds the stand-in."""
    body = {"status": {**reserved.placed(node), **status}}
    await world.admin.patch(KIND, name, body, subresource="status")


async def owner(world, name, reservation="r", node="n1"):
    uid = world.stored(KIND, reservation)["metadata"]["uid"]
    note = f'{{"name":"{reservation}","uid":"{uid}"}}'
    notes = {names.ANNOTATION_RESERVATION_ALLOCATED: note}
    raw = builders.a_pod(name, node=node, requests={"cpu": "1"}, annotations=notes)
    await world.admin.create(PODS, raw, "default")


async def unplaced(world, pod, message):
    """Do what a scheduler does that finds no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    body = {"status": {"conditions": [{**condition, "message": message}]}}
    metadata = pod["metadata"]
    await world.admin.patch(
        PODS, metadata["name"], body, namespace=metadata["namespace"], subresource="status"
    )


def stand_ins(world):
    return [
        pod
        for pod in world.stored(PODS)
        if names.LABEL_STAND_IN in pod["metadata"].get("labels", {})
    ]


def status(world, name="r"):
    return world.stored(KIND, name).get("status", {})


def condition(world, kind, name="r"):
    found = status(world, name).get("conditions", ())
    return next((one for one in found if one["type"] == kind), None)
