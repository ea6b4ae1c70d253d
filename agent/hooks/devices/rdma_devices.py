"""Which device files a container needs for the RDMA adapters that its pod was given."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from agent.hooks.devices import gpu_env
from agent.hooks.lifecycle import adjustment as adjustments
from agent.hooks.lifecycle import subject as subjects
from api import names
from api.wire import untrusted

FOLDER: Final = "/dev/infiniband"
MANAGEMENT: Final = f"{FOLDER}/rdma_cm"
"""Connection management, which every adapter needs."""
_BUS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
_VERBS = re.compile(r"[A-Za-z0-9_-]{1,64}")


class AllocationError(adjustments.HookError):
    """An allocation that cannot be honoured; the text names the annotation and what is wrong."""


Node = adjustments.DeviceNode


class _Function(msgspec.Struct, frozen=True, rename="camel"):
    bus_id: str = msgspec.field(default="", name="busID")


class _Extension(msgspec.Struct, frozen=True):
    vfs: list[_Function] | None = None


class _Adapter(msgspec.Struct, frozen=True):
    id: str = ""
    extension: _Extension | None = None


class _Allocated(msgspec.Struct, frozen=True):
    rdma: list[_Adapter] | None = None


def addresses(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the PCI addresses that a pod was given: its functions, else the whole adapter."""
    key = names.ANNOTATION_DEVICE_ALLOCATED
    written = annotations.get(key)
    if not written:
        return ()
    try:
        adapters = untrusted.decode(written, _Allocated, f"annotation {key}").rdma
    except untrusted.ReadError as error:
        raise AllocationError(str(error)) from error
    found: dict[str, None] = {}
    for adapter in adapters or ():
        functions = adapter.extension.vfs if adapter.extension is not None else None
        for address in [one.bus_id for one in functions] if functions else [adapter.id]:
            if not _BUS.fullmatch(address):
                raise AllocationError(
                    f"annotation {key}: {address[:40]!r} is no address of an rdma device; "
                    "it looks like 0000:3b:00.0"
                )
            found[address.lower()] = None
    return tuple(found)


def paths(wanted: tuple[str, ...], verbs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the device files of addresses, from the name of each one's verbs interface."""
    found = []
    for address in wanted:
        name = verbs.get(address, "")
        if not _VERBS.fullmatch(name):
            raise AllocationError(f"rdma device {address}: the host has no verbs interface of it")
        found.append(f"{FOLDER}/{name}")
    return (*found, MANAGEMENT) if found else ()


def nodes(
    wanted: tuple[str, ...], verbs: Mapping[str, str], numbers: Mapping[str, tuple[int, int]]
) -> tuple[Node, ...]:
    """Return the device files with their numbers; without one of them the container has no use."""
    found = []
    for path in paths(wanted, verbs):
        if path not in numbers:
            raise AllocationError(f"{path}: the host has no such character device")
        found.append(Node(path, *numbers[path]))
    return tuple(found)


class Rule(msgspec.Struct, frozen=True):
    """The adapters of this host."""

    verbs: Mapping[str, str]
    """The verbs interface by PCI address."""
    numbers: Mapping[str, tuple[int, int]]
    """Major and minor number by the path of the device file."""


def adjust(subject: subjects.Subject, rule: Rule) -> adjustments.Adjustment:
    """Return the device files of a new container whose pod was given RDMA adapters."""
    wanted = addresses(subject.pod.pod.metadata.annotations)
    if subject.container is None or not wanted:
        return adjustments.NOTHING
    gpu_env.entitled(subject)
    return adjustments.Adjustment(devices=nodes(wanted, rule.verbs, rule.numbers))


HOOK = adjustments.Hook("RDMADeviceInject", adjust)
