"""Until when the API server knows the kubelet of a node to be Ready (a heartbeat of its Node)."""

from collections.abc import Mapping
from typing import Any

from api import resources
from api.wire import durations
from kube.client import client as clients
from kube.client import errors


def heartbeat(node: Mapping[str, Any]) -> float | None:
    """Return the time of the last heartbeat with which a Node was Ready, None without one."""
    status = node.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, Mapping) and (one.get("type"), one.get("status")) == ("Ready", "True"):
            try:
                return durations.timestamp(str(one.get("lastHeartbeatTime")))
            except ValueError:
                return None
    return None


class NodeReady:
    """Asks the API server; the Node that is watched leaves heartbeats out, which change often."""

    def __init__(self, kube: clients.Client, name: str) -> None:
        self._kube, self._name = kube, name

    async def __call__(self) -> float | None:
        """Return the latest heartbeat, None where unknown."""
        try:
            found = await self._kube.list(resources.NODES, fields=f"metadata.name={self._name}")
        except errors.KubeError:
            # Not known is not renewed: the certificate stays refused, and that is reported.
            return None
        return heartbeat(found.items[0]) if len(found.items) == 1 else None
