"""What the manager of one hardware type finds on a node. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from agent.devices import device_inventory, vendor_records

GPU: Final = "gpu"
NPU: Final = "npu"
RDMA: Final = "rdma"
FPGA: Final = "fpga"
KINDS: Final = (GPU, NPU, RDMA, FPGA)
SILENT_MESSAGE: Final = "the vendor's tool does not answer"


class Card(msgspec.Struct, frozen=True):
    """One device that is plugged in, whether or not a driver or tool tells more of it."""

    kind: str
    bus: str = ""
    """PCI address as domain:bus:device.function; empty where it is on no PCI bus."""
    identity: str = ""
    minor: int | None = None
    node: int | None = None
    """NUMA node; None when unknown."""
    healthy: bool | None = None
    """None when nothing tells it."""


class Findings(msgspec.Struct, frozen=True):
    """What one look of a manager found."""

    cards: tuple[Card, ...] = ()
    records: tuple[vendor_records.Record, ...] = ()
    """What goes into the device file, from which the node agent makes entries of the Device."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    silent: bool = False
    """Whether a tool failed, so that records are missing of devices that are plugged in."""


class Host(msgspec.Struct, frozen=True):
    """Where a manager looks, and how it asks the tools of vendors."""

    sys: str
    dev: str
    run: Callable[..., str]
    """Runs a tool with its arguments and returns what it prints; raises files.ReadingError."""
    driver: Callable[[], object]
    """Loads the driver of NVIDIA's GPUs; raises device_inventory.DriverError."""


Discover = Callable[[Host, float], Findings]
"""From a host and a monotonic moment in seconds to what one hardware type has there."""


def remembered(before: Findings, now: Findings, failures: int) -> Findings:
    """Return what is written of a manager whose tool failed `failures` times in a row.

    The first failure keeps what was said before; from the second on the devices are unhealthy.
    A device that left the PCI bus is not kept.
    """
    if not now.silent:
        return now
    plugged = {card.bus for card in now.cards}
    kept = tuple(
        one if failures < 2 else _unhealthy(one)
        for one in before.records
        if one.topology is None or one.topology.bus in plugged
    )
    labels = {**(before.labels if kept else {}), **now.labels}
    return msgspec.structs.replace(now, records=kept, labels=labels)


def _unhealthy(record: vendor_records.Record) -> vendor_records.Record:
    if record.status is not None and not record.status.healthy:
        return record
    status = vendor_records.Status(False, device_inventory.SILENT, SILENT_MESSAGE)
    return msgspec.structs.replace(record, status=status)


def with_records(
    kind: str, cards: Iterable[Card], records: Iterable[vendor_records.Record]
) -> tuple[Card, ...]:
    """Return plugged-in devices with identity, index and health from records, by PCI address."""
    by_bus = {
        one.topology.bus: one for one in records if one.topology is not None and one.topology.bus
    }
    found = []
    for card in cards:
        one = by_bus.get(card.bus)
        if one is not None:
            card = Card(
                kind,
                card.bus,
                one.uuid,
                vendor_records.number(one.minor),
                card.node,
                one.status is None or one.status.healthy,
            )
        found.append(card)
    return tuple(found)
