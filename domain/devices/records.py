"""The annotation with the devices of a pod, as device plug-ins and agents read it."""

from collections.abc import Mapping
from typing import Any, Final

from api.koordinator.metadata import annotations, payloads
from api.wire import base, quantity
from domain.devices import inventory

LARGEST_MINOR: Final = 4096
"""No machine has so many devices of one type."""
MOST: Final = 1024
"""Devices of one pod, over all types; no machine has as many."""


def read(written: Mapping[str, Any]) -> inventory.Allocation:
    """Read the devices of a pod from the value of its annotation; ValueError where it is none."""
    found = annotations.DEVICE_ALLOCATED.adapter.validate_python(written)
    return allocation(found)


def decoded(text: str) -> inventory.Allocation:
    """Read the annotation of a pod."""
    found = annotations.DEVICE_ALLOCATED.read({annotations.DEVICE_ALLOCATED.key: text})
    return allocation(found or {})


def encoded(found: inventory.Allocation) -> dict[str, str]:
    """Return the annotation of a pod."""
    return {annotations.DEVICE_ALLOCATED.key: base.encoded(written(found))}


def allocation(found: payloads.DeviceAllocations) -> inventory.Allocation:
    """Return the devices that an annotation names; ValueError where nobody can have them."""
    if sum(map(len, found.values())) > MOST:
        raise ValueError(f"more than {MOST} devices")
    return {kind: tuple(map(_granted, granted)) for kind, granted in found.items() if granted}


def _granted(one: payloads.DeviceAllocation) -> inventory.Granted:
    amounts = quantity.amounts(one.resources)
    if not 0 <= one.minor < LARGEST_MINOR or any(value < 0 for value in amounts.values()):
        raise ValueError(f"minor {one.minor}, or what is held of it, is no amount of a device")
    extension = one.extension or payloads.AllocationExtension()
    return inventory.Granted(
        one.minor,
        amounts,
        tuple(inventory.Function(f.minor, f.bus_id) for f in extension.vfs),
        extension.gpu_shared_resource_template,
        one.id,
    )


def written(found: inventory.Allocation) -> dict[str, list[dict[str, Any]]]:
    """Return the value of the annotation: by type, the devices of a pod."""
    return {kind: list(map(_written, granted)) for kind, granted in found.items()}


def _written(one: inventory.Granted) -> dict[str, Any]:
    entry: dict[str, Any] = {"minor": one.minor, "resources": quantity.texts(one.amounts)}
    if one.id:
        entry["id"] = one.id
    extension: dict[str, Any] = {}
    if one.functions:
        extension["vfs"] = [_function(function) for function in one.functions]
    if one.template:
        extension["gpuSharedResourceTemplate"] = one.template
    return {**entry, "extension": extension} if extension else entry


def _function(function: inventory.Function) -> dict[str, Any]:
    minor = {"minor": function.minor} if function.minor else {}
    return {**minor, "busID": function.bus_id}
