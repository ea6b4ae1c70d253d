"""The annotation with the devices of a pod, as device plug-ins and agents read it."""

import functools
from collections.abc import Mapping, Sized
from typing import Any, Final

import msgspec

from api.koordinator import resource_names
from api.koordinator.metadata import annotations, payloads
from api.wire import base, quantity, untrusted
from domain.devices import inventory

MOST: Final = 1024
"""Devices of one pod, over all types; no machine has as many."""


class _Plain(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One device as the extender writes it, without virtual functions and templates."""

    minor: int = 0
    resources: dict[str, str] = {}
    id: str = ""


_PLAIN: Final = msgspec.json.Decoder(dict[str, tuple[_Plain, ...]])


def read(written: Mapping[str, Any]) -> inventory.Allocation:
    """Read the devices of a pod from the value of its annotation; ValueError where it is none."""
    found = annotations.DEVICE_ALLOCATED.adapter.validate_python(written)
    return allocation(found)


def decoded(text: str) -> inventory.Allocation:
    """Read the annotation of a pod; ValueError where it is none."""
    try:
        # Nearly all of them; the watch shows one for each pod that is bound.
        return _plain(_PLAIN.decode(untrusted.checked(text, annotations.DEVICE_ALLOCATED.key)))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # Written in another way, which the other reader understands or explains.
        return anyhow(text)


def anyhow(text: str) -> inventory.Allocation:
    """Read the annotation in any way in which people or other programs may have written it."""
    found = annotations.DEVICE_ALLOCATED.read({annotations.DEVICE_ALLOCATED.key: text})
    return allocation(found or {})


def encoded(found: inventory.Allocation) -> dict[str, str]:
    """Return the annotation of a pod."""
    kinds = [
        f"{_quoted(kind)}:[{','.join([_text(one) for one in granted])}]"
        for kind, granted in sorted(found.items())
    ]
    return {annotations.DEVICE_ALLOCATED.key: f"{{{','.join(kinds)}}}"}


def _text(one: inventory.Granted) -> str:
    """Return one device as `written` does; most differ in nothing but name and number."""
    if one.functions or one.template:
        return base.encoded(_written(one))
    name = f'"id":{base.encoded(one.id)},' if one.id else ""
    return f'{{{name}"minor":{one.minor},"resources":{_resources(tuple(one.amounts.items()))}}}'


@functools.lru_cache(maxsize=64)
def _quoted(kind: str) -> str:
    return base.encoded(kind)


@functools.lru_cache(maxsize=1024)
def _resources(amounts: tuple[tuple[str, int], ...]) -> str:
    return base.encoded(quantity.texts(dict(amounts)))


def is_plain(found: inventory.Allocation) -> bool:
    """Whether what is read from the annotation of an allocation equals the allocation.

    Types without devices are left out, virtual functions lose their labels, and what no device can
    have is an error.
    """
    for granted in found.values():
        if not granted:
            return False
        for one in granted:
            if one.functions or not 0 <= one.minor < inventory.LARGEST_MINOR:
                return False
            if min(one.amounts.values(), default=0) < 0:
                return False
    return True


def allocation(found: payloads.DeviceAllocations) -> inventory.Allocation:
    """Return the devices that an annotation names; ValueError where no node can have them."""
    _check_count(found)
    return {kind: tuple(map(_granted, granted)) for kind, granted in found.items() if granted}


def _plain(found: Mapping[str, tuple[_Plain, ...]]) -> inventory.Allocation:
    _check_count(found)
    return {
        kind: tuple(
            [
                inventory.Granted(one.minor, _amounts(one.minor, one.resources), id=one.id)
                for one in granted
            ]
        )
        for kind, granted in found.items()
        if granted
    }


def _check_count(found: Mapping[str, Sized]) -> None:
    if sum(map(len, found.values())) > MOST:
        raise ValueError(f"more than {MOST} devices")


def _amounts(minor: int, resources: Mapping[str, str]) -> dict[str, int]:
    """Return what is held of a device; ValueError where no device can be held so."""
    found = quantity.amounts(resource_names.current(resources))
    if not 0 <= minor < inventory.LARGEST_MINOR or min(found.values(), default=0) < 0:
        raise ValueError(f"minor {minor}, or what is held of it, is no amount of a device")
    return found


def _granted(one: payloads.DeviceAllocation) -> inventory.Granted:
    extension = one.extension or payloads.AllocationExtension()
    return inventory.Granted(
        one.minor,
        _amounts(one.minor, one.resources),
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
