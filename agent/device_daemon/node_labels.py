"""Labels and annotation of the daemon's Node, applied under a field manager of its own."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from agent.device_daemon import output
from api import names, resources
from kube.client import client, errors

_logger = logging.getLogger(__name__)
MANAGER: Final = "koord-device-daemon"


class NodeLabels:
    """Keeps what the daemon says of one Node; keys that are no longer said go from it."""

    def __init__(self, kube: client.Client, name: str) -> None:
        self._kube = kube
        self._name = name
        self.problem: str | None = None
        """Why the Node does not say it; None where it does."""

    async def write(self, labels: Mapping[str, str], annotation: str) -> None:
        """Apply once; labels that another client has set otherwise are left as they are."""
        try:
            try:
                await self._apply(labels, annotation)
            except errors.Conflict:
                # Of these keys the manager has written what the Device says; it is the later word.
                own = {key: value for key, value in labels.items() if key in output.OWN_LABELS}
                await self._apply(own, annotation)
        except errors.KubeError as error:
            self.problem = f"Node {self._name} was not labelled: {error}"
            _logger.warning("%s", self.problem)
        else:
            self.problem = None

    async def _apply(self, labels: Mapping[str, str], annotation: str) -> None:
        metadata: dict[str, Any] = {"name": self._name}
        if labels:
            metadata["labels"] = dict(labels)
        if annotation:
            metadata["annotations"] = {names.ANNOTATION_DEVICES: annotation}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        await self._kube.patch(
            resources.NODES, self._name, body, kind=client.Patch.APPLY, field_manager=MANAGER
        )
