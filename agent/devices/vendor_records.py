"""Records by which accelerators are described in files, one list of records in each. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from agent.devices import device_inventory, device_partitions
from api import names
from api.wire import quantity

_PREFIX: Final = "koordinator.sh/"
_SHORT: Final = {names.GPU_CORE.removeprefix(_PREFIX), names.GPU_MEMORY.removeprefix(_PREFIX)}


class Link(msgspec.Struct, frozen=True, rename="camel"):
    """A fast link to other devices."""

    peer_minor: str = ""
    type: str = ""


class Topology(msgspec.Struct, frozen=True):
    """Where a record says that its device is plugged in."""

    p2p_links: list[Link] | None = msgspec.field(default=None, name="p2pLinks")
    must_honor: bool = msgspec.field(default=False, name="mustHonorPartition")
    socket: str = msgspec.field(default="", name="socketID")
    node: str = msgspec.field(default="", name="nodeID")
    pcie: str = msgspec.field(default="", name="pcieID")
    bus: str = msgspec.field(default="", name="busID")


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """How a record says that its device is."""

    healthy: bool = True
    err_code: str = ""
    err_message: str = ""


class Record(msgspec.Struct, frozen=True):
    """One device as a file describes it."""

    vendor: str = ""
    model: str = ""
    uuid: str = ""
    minor: str = ""
    resources: dict[str, str | int | float] = {}
    topology: Topology | None = None
    status: Status | None = None


def found_in(records: Sequence[Record]) -> device_inventory.Found:
    """Return what records say; one without an identity or an index is named and left out."""
    found: list[device_inventory.Device] = []
    links: list[device_partitions.Link] = []
    problems: list[str] = []
    for record in records:
        minor = number(record.minor)
        if not record.uuid or minor is None:
            problems.append(f"record {record.uuid or '?'}: minor {record.minor!r} is no index")
            continue
        found.append(_device(record, minor, problems))
        written = (record.topology.p2p_links if record.topology else None) or ()
        links += [device_partitions.Link(minor, one.peer_minor, one.type) for one in written]
    partitions = device_partitions.text(links)
    annotations = {names.ANNOTATION_GPU_PARTITIONS: partitions} if partitions else {}
    return device_inventory.Found(tuple(found), _labels(records), annotations, tuple(problems))


def _labels(records: Sequence[Record]) -> Mapping[str, str]:
    if not records:
        return {}
    first = records[0]
    labels = {
        names.LABEL_GPU_VENDOR: device_inventory.label(first.vendor),
        names.LABEL_GPU_MODEL: device_inventory.label(first.model),
    }
    if first.topology is not None and first.topology.p2p_links is not None:
        strict = first.topology.must_honor
        labels[names.LABEL_GPU_PARTITION_POLICY] = "Honor" if strict else "Prefer"
    return {name: value for name, value in labels.items() if value}


def _device(record: Record, minor: int, problems: list[str]) -> device_inventory.Device:
    resources = {names.GPU_MEMORY_RATIO: device_inventory.WHOLE}
    for name, value in record.resources.items():
        try:
            resources[_PREFIX + name if name in _SHORT else name] = quantity.canonical(str(value))
        except ValueError:
            problems.append(f"record {record.uuid}: resources.{name} {value!r} is no quantity")
    status = record.status
    return device_inventory.Device(
        device_inventory.GPU,
        record.uuid,
        minor,
        resources,
        healthy=status is None or status.healthy,
        verdict=None if status is None else _verdict(status),
        place=_place(record.topology),
    )


def _verdict(status: Status) -> device_inventory.Verdict:
    if status.healthy:
        return device_inventory.Verdict(True, device_inventory.HEALTHY, "device is healthy")
    said = status.err_message or "device is unhealthy"
    return device_inventory.Verdict(False, device_inventory.reason(status.err_code), said[:1024])


def _place(topology: Topology | None) -> device_inventory.Place | None:
    if topology is None:
        return None
    node = -1 if not topology.node.strip() else _signed(topology.node, 0)
    return device_inventory.Place(node, topology.pcie, topology.bus, _signed(topology.socket, -1))


def _signed(text: str, otherwise: int) -> int:
    text = text.strip()
    digits = text.removeprefix("-")
    return int(text) if number(digits) is not None else otherwise


def number(text: str) -> int | None:
    """Read an index, None where the text is none."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None
