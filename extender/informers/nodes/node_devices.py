"""Device objects, watched for plug-ins with the node whose devices they list.

Their status changes with every pod that gets a device; it is not read.
"""

import logging
from typing import Any

from api import resources
from api.koordinator import devices
from api.wire import base
from domain.devices import inventory
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

Devices = store.Store[inventory.Inventory]


def add(members: informer_set.InformerSet) -> Devices:
    """Watch Devices; where their CRD is not installed there are none."""
    reader = Reader()
    found = members.add(reflector.Projection(resources.DEVICES, dict, reader.read))
    reader.known = found
    return found


class Reader:
    """Reads Devices; an edit that cannot be read leaves the last one in force."""

    def __init__(self) -> None:
        self.known: Devices = store.Store()

    def read(self, raw: dict[str, Any]) -> inventory.Inventory:
        """Return the devices of a node; raises where nothing readable was known of it."""
        try:
            shown = {**raw, "status": None}
            return inventory.read(devices.read_device(shown))
        except (base.ReadError, *store.UNREADABLE) as error:
            name = raw["metadata"]["name"]
            last = self.known.get(name)
            if last is None:
                raise
            logger.warning(
                "Device cannot be read and stays as it was node=%s error=%s",
                name,
                str(error)[:200],
            )
            return last
