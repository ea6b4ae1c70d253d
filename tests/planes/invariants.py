"""What must be true after every scenario, read from the API objects alone."""

from api import quantity

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
