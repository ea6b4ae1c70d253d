"""What is kept of a Device object: its devices, and what its status says already. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from api.koordinator import devices
from api.wire import base
from domain.devices import device_report


class DeviceObject(msgspec.Struct, frozen=True, gc=False):
    """A Device object as far as its status is concerned."""

    name: str
    """That of the node."""
    uid: str
    listed: tuple[device_report.Known, ...] | None
    """None: the object cannot be read."""
    written: Any = None
    """``status.deviceAllocations`` as it stands."""


def projected(raw: Mapping[str, Any]) -> DeviceObject:
    """Project a Device; one that cannot be read keeps the status that it has."""
    metadata = raw["metadata"]
    name, uid = str(metadata["name"]), str(metadata.get("uid", ""))
    status = raw.get("status")
    written = status.get("deviceAllocations") if isinstance(status, Mapping) else None
    try:
        listed = device_report.known(devices.read_device({**raw, "status": None}))
    except (base.ReadError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return DeviceObject(name, uid, None)
    return DeviceObject(name, uid, listed, written)
