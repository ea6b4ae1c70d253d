"""Accelerators of which their vendor's tool tells more than sysfs: the part all vendors share."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from agent.device_daemon.hardware import findings, printed, sysfs
from agent.devices import device_inventory, pci, vendor_records
from agent.host import files
from api import names
from domain import wording

CORE: Final = names.GPU_CORE
MEMORY: Final = names.GPU_MEMORY
CLASSES: Final = ("0x12", "0x0300", "0x0302", "0x0380")
"""PCI classes of processing accelerators and of display controllers; vendors also make adapters."""


class Told(msgspec.Struct, frozen=True):
    """One device as the tool of its vendor describes it."""

    uuid: str
    minor: int
    model: str
    resources: dict[str, str | int | float]
    bus: str = ""
    """PCI address; empty where the tool does not print it."""
    healthy: bool = True
    code: str = ""
    message: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What a tool tells: a device whose own questions fail is left out and named."""

    devices: tuple[Told, ...] = ()
    problems: tuple[str, ...] = ()


class Vendor(msgspec.Struct, frozen=True):
    """A vendor: how its devices are recognised, and how its tool is asked."""

    name: str
    """As it stands in records and labels."""
    kind: str
    pci_vendor: str
    ask: Callable[[findings.Host], Answer]
    not_products: frozenset[str] = frozenset()
    """Products of the vendor that are no accelerators."""

    def discover(self, host: findings.Host, _at: float) -> findings.Findings:
        """Look at the PCI bus; the tool is asked only where a device of the vendor is there."""

        def wanted(one: pci.Function, folder: str) -> bool:
            if one.vendor != self.pci_vendor or not one.kind.startswith(CLASSES):
                return False
            return pci.product(folder) not in self.not_products

        cards = sysfs.cards(host.sys, self.kind, wanted)
        if not cards:
            return findings.Findings()
        try:
            answer = self.ask(host)
        except files.ReadingError as error:
            vendor = {names.LABEL_GPU_VENDOR: device_inventory.label(self.name)}
            return findings.Findings(cards, labels=vendor, problems=(str(error),), silent=True)
        records = self._records(answer.devices, [card.bus for card in cards], host.sys)
        problems = list(answer.problems)
        if len(records) < len(cards):
            plugged = wording.count(len(cards), "is", "are")
            problems.append(f"{plugged} plugged in, the tool tells {len(records)}")
        return findings.Findings(
            findings.with_records(self.kind, cards, records),
            records,
            vendor_records.found_in(records).labels,
            tuple(problems[:8]),
        )

    def _records(
        self, devices: Sequence[Told], plugged: list[str], sys: str
    ) -> tuple[vendor_records.Record, ...]:
        buses = printed.paired([one.bus for one in devices], plugged)
        return tuple(
            vendor_records.Record(
                vendor=self.name,
                model=one.model,
                uuid=one.uuid,
                minor=str(one.minor),
                resources=one.resources,
                topology=printed.topology(sysfs.place(sys, bus), bus),
                status=vendor_records.Status(one.healthy, one.code, one.message),
            )
            for one, bus in zip(devices, buses, strict=True)
        )


def each(count: int, ask: Callable[[int], Told], what: str) -> Answer:
    """Ask for one device after another; one that fails is named and hides no other."""
    found: list[Told] = []
    problems: list[str] = []
    for index in range(min(count, printed.MOST)):
        try:
            found.append(ask(index))
        except files.ReadingError as error:
            problems.append(f"{what} {index}: {error}")
    return Answer(tuple(found), tuple(problems))
