"""What is kept of a Device object: its devices, and what its status says already. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.koordinator import devices
from domain.devices import device_report
from kube.informers import store

_LONGEST: Final = 500


class DeviceObject(msgspec.Struct, frozen=True, gc=False):
    """A Device object as far as its status is concerned."""

    name: str
    """That of the node."""
    uid: str
    listed: tuple[device_report.Known, ...] | None
    """None: the object cannot be read."""
    written: Any = None
    """``status.deviceAllocations`` as it stands."""
    conditions: Any = None
    """``status.conditions`` as they stand."""
    fault: str = ""
    """Why it cannot be read."""


def projected(raw: Mapping[str, Any]) -> DeviceObject:
    """Project a Device; one that cannot be read keeps the status that it has."""
    metadata = raw["metadata"]
    name, uid = str(metadata["name"]), str(metadata.get("uid", ""))
    status = raw.get("status")
    said: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    written, facts = said.get("deviceAllocations"), said.get("conditions")
    try:
        listed = device_report.known(devices.read_device({**raw, "status": None}))
    except store.UNREADABLE as wrong:
        return DeviceObject(name, uid, None, None, facts, f"{wrong}"[:_LONGEST])
    return DeviceObject(name, uid, listed, written, facts)
