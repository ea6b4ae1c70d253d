"""The devices that the scheduler gave to pods, added to what the kubelet says of them. Pure.

The kubelet knows the devices that device plug-ins handed out. What the scheduler allocated stands
in the pod's annotation, which is believed as far as the pod asks for devices.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from agent.devices import device_inventory
from api import names
from api.kubernetes import core, pod_resources
from api.wire import protobuf_schema
from domain.devices import inventory, pod_holdings

RESOURCES: Final[Mapping[str, str]] = {
    "gpu": names.NVIDIA_GPU,
    "rdma": names.RDMA,
    "fpga": names.FPGA,
}
"""The resource by which programs that ask know a type of device."""
MOST_BYTES: Final = 16 << 20
"""Of one response, as clients of the kubelet take them."""
MOST_FAULTS: Final = 10
"""Pods whose annotation is named in a message; all of them are counted."""
_IDENTIFIER: Final = re.compile(r"[\x21-\x7e]{1,253}")

Name = tuple[str, str]
"""Namespace and name of a pod; the API has no uids."""


class ListError(ValueError):
    """What the kubelet answered is no list of pods, or the list with devices is too large."""


class Entry(msgspec.Struct, frozen=True):
    """The devices of one type that a pod was given."""

    resource: str
    identifiers: tuple[str, ...]
    containers: tuple[str, ...]
    """Containers that ask for this type, the first of which is told to have the devices."""


class Answer(msgspec.Struct, frozen=True):
    """A list with devices, and what of it was added."""

    message: bytes
    devices: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many were added, by resource."""
    faults: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By pod: why nothing, or not everything, was added."""


def names_of(message: bytes) -> frozenset[Name]:
    """Return the pods of a list of the kubelet; ListError where it is none."""
    return frozenset(map(_name, _read(message).pod_resources))


def with_devices(
    message: bytes, pods: Mapping[Name, core.Pod], known: device_inventory.Inventory | None
) -> Answer:
    """Return a list of the kubelet with the devices that its pods were allocated.

    A list to which nothing is added keeps its bytes. ListError where it is no list.
    """
    read = _read(message)
    counted: dict[str, int] = {}
    faults: dict[str, str] = {}
    for told in read.pod_resources:
        pod = pods.get(_name(told))
        if pod is None or not told.containers:
            continue
        entries, why = entries_of(pod, known)
        if why:
            faults["/".join(_name(told))] = why
        for entry in entries:
            if added := _add(told.containers, entry):
                counted[entry.resource] = counted.get(entry.resource, 0) + added
    if not counted:
        return Answer(message, faults=faults)
    if read.ByteSize() > MOST_BYTES:
        raise ListError(f"the list with devices has more than {MOST_BYTES} bytes")
    return Answer(read.SerializeToString(), counted, faults)


def entries_of(
    pod: core.Pod, known: device_inventory.Inventory | None
) -> tuple[tuple[Entry, ...], str]:
    """Return what a pod was given, by the name of the resource, and what of it cannot be told."""
    held = pod_holdings.holding(pod)
    if held is None:
        return (), ""
    found, unknown = [], []
    for kind, granted in held.held.items():
        identifiers: dict[str, None] = {}
        for one in granted:
            of_one = _identifiers(kind, one, known)
            identifiers |= dict.fromkeys(of_one)
            unknown += [] if of_one else [f"{kind} {one.minor}"]
        containers = tuple(name for name, _ in held.containers.get(kind, ()))
        resource = RESOURCES.get(kind, "")
        if resource and identifiers:
            found.append(Entry(resource, tuple(identifiers), containers))
    why = held.fault
    if unknown:
        why = f"no identifier is known of {', '.join(unknown[:8])}"
    return tuple(sorted(found, key=lambda one: one.resource)), why


def _identifiers(
    kind: str, one: inventory.Granted, known: device_inventory.Inventory | None
) -> tuple[str, ...]:
    """Return the addresses of virtual functions, else the device as it or the node names it."""
    written = [function.bus_id for function in one.functions] or [one.id]
    if not any(written) and known is not None:
        written = [
            device.identity
            for device in known.devices
            if (device.kind, device.minor) == (kind, one.minor)
        ]
    return tuple(filter(_IDENTIFIER.fullmatch, written))


def _add(containers: Any, entry: Entry) -> int:
    """Add devices to a container; return how many. What the kubelet says is not doubled."""
    told = {
        protobuf_schema.text(identifier)
        for container in containers
        for devices in container.devices
        if protobuf_schema.text(devices.resource_name) == entry.resource
        for identifier in devices.device_ids
    }
    fresh = [one for one in entry.identifiers if one not in told]
    if fresh:
        container = _chosen(containers, entry.containers)
        container.devices.add(resource_name=entry.resource, device_ids=fresh)
    return len(fresh)


def _chosen(containers: Any, asking: Iterable[str]) -> Any:
    named = {protobuf_schema.text(one.name): one for one in reversed(containers)}
    return next((named[name] for name in asking if name in named), containers[0])


def _read(message: bytes) -> Any:
    if len(message) > MOST_BYTES:
        raise ListError(f"the kubelet answered more than {MOST_BYTES} bytes")
    try:
        return pod_resources.CLASSES["ListPodResourcesResponse"].FromString(message)
    except protobuf_schema.DecodeError as error:
        raise ListError(f"the kubelet answered no list of pods: {error}") from error


def _name(told: Any) -> Name:
    return protobuf_schema.text(told.namespace), protobuf_schema.text(told.name)
