"""What must be true after every scenario, read from the API objects alone."""

import collections
import json

from api import names
from api.wire import quantity

FINISHED = ("Succeeded", "Failed")


def overcommitted(nodes, pods):
    """Yield every dimension in which the pods of a node request more than it has."""
    for node in nodes:
        name = node["metadata"]["name"]
        placed = [
            pod
            for pod in pods
            if pod["spec"].get("nodeName") == name and pod["status"]["phase"] not in FINISHED
        ]
        for resource, value in (node.get("status", {}).get("allocatable") or {}).items():
            limit = quantity.amount(resource, value)
            used = len(placed) if resource == "pods" else sum(_request(p, resource) for p in placed)
            if used > limit:
                yield f"{name}: {used} of {limit} {resource} are requested"


def lost(pods):
    """Yield every pod that has neither a node nor a reason why not."""
    for pod in pods:
        if pod["spec"].get("nodeName"):
            continue
        conditions = pod["status"].get("conditions") or []
        if not any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions):
            yield pod["metadata"]["name"]


def _request(pod, resource):
    return sum(
        quantity.amount(resource, container["resources"].get("requests", {}).get(resource, "0"))
        for container in pod["spec"]["containers"]
    )


def misplaced(pods):
    """Yield every pod whose placement is not written once, or names another node than its own."""
    for pod in pods:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
        written = (pod["metadata"].get("annotations") or {}).get(names.PLACEMENT)
        said = json.loads(written)["node"] if written else None
        if said != node:
            yield f"{name} is on {node}, its placement says {said}"


def doubled(calls):
    """Yield every pod that the API server let somebody bind more than once."""
    bound = collections.Counter(
        (call.namespace, call.name)
        for call in calls
        if call.verb == "create" and call.subresource == "binding" and call.code == 201
    )
    for (namespace, name), times in bound.items():
        if times > 1:
            yield f"{namespace}/{name} was bound {times} times"


def drifted(picture, pods):
    """Yield where the page of one node, as an extender counts it, differs from the pods it has."""
    node = picture["node"]
    placed = {
        pod["metadata"]["uid"]: pod
        for pod in pods
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] not in FINISHED
    }
    counted = {pod["uid"]: pod for pod in picture["pods"]}
    for uid in placed.keys() ^ counted.keys():
        where = "is not counted on" if uid in placed else "is counted but is not on"
        yield f"pod {uid} {where} {node}"
    if not picture["agrees"]:
        yield f"{node} is {picture['figures']}, built anew it is {picture['builtAnew']}"
    for resource, counted_amount in picture["figures"]["requested"].items():
        wanted = sum(_request(pod, resource) for pod in placed.values())
        if counted_amount != wanted:
            yield f"{node} counts {counted_amount} of {resource}, its pods request {wanted}"
