"""How much of every device is allocated, to which pods, and what is wrong, as gauges.

Every replica exports them. Devices and shares beyond `MOST_DEVICES` and `MOST_SHARES` count in the
sums by type only, so that neither large fleets nor tenants with many pods fill a collector.
"""

import asyncio
import dataclasses
from typing import Final

from domain.devices import device_report
from manager.devices import device_book
from process.runtime import clock as clocks
from process.runtime import metrics

MOST_DEVICES: Final = 10_000
"""Devices with metrics of their own."""
MOST_SHARES: Final = 10_000
"""Shares of pods with metrics of their own."""
PERIOD_SECONDS: Final = 15.0
_SLICE: Final = 16
"""Nodes that are counted before other tasks may run."""
_DEVICE: Final = ("node", "type", "minor")
_POD: Final = ("pod_namespace", "pod_name", *_DEVICE)

Rows = dict[tuple[str, ...], float]


@dataclasses.dataclass(slots=True)
class Figures:
    """The values of all gauges."""

    allocated: Rows = dataclasses.field(default_factory=dict)
    healthy: Rows = dataclasses.field(default_factory=dict)
    shares: Rows = dataclasses.field(default_factory=dict)
    devices: Rows = dataclasses.field(default_factory=dict)
    in_use: Rows = dataclasses.field(default_factory=dict)
    problems: Rows = dataclasses.field(
        default_factory=lambda: {(reason,): 0.0 for reason in device_report.PROBLEMS}
    )
    hidden: int = 0


def figures(book: device_book.DeviceBook) -> Figures:
    """Return the values, nodes by name."""
    found = Figures()
    for node, known in sorted(book.nodes.items()):
        for row in known.rows:
            _count(found, node, row)
        for problem in known.problems:
            found.problems[problem.reason,] = found.problems.get((problem.reason,), 0.0) + 1
    return found


def _count(found: Figures, node: str, row: device_report.Row) -> None:
    device = row.device
    if row.listed:
        total = (device.kind, "healthy" if device.healthy else "unhealthy")
        found.devices[total] = found.devices.get(total, 0.0) + 1
    share = row.percent / 100
    found.in_use[device.kind,] = found.in_use.get((device.kind,), 0.0) + share
    labels = (node, device.kind, str(device.minor))
    if len(found.allocated) < MOST_DEVICES:
        found.allocated[labels] = share
        found.healthy[labels] = float(row.listed and device.healthy)
    else:
        found.hidden += 1
    for one in row.shares:
        if len(found.shares) < MOST_SHARES:
            pod = (one.holding.namespace, one.holding.name)
            found.shares[*pod, *labels] = one.percent / 100
        else:
            found.hidden += 1


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceMetrics:
    """The gauges and what they are read from."""

    book: device_book.DeviceBook
    clock: clocks.Clock
    registry: metrics.Registry

    async def run(self) -> None:
        """Work until cancelled."""
        table = self.registry.table
        parts = {
            "allocated": table(
                "koord_device_allocated_ratio",
                "How much of a device pods hold together; 1 is the whole of it.",
                _DEVICE,
            ),
            "healthy": table(
                "koord_device_healthy",
                "Whether a device is listed by the Device object of its node, and healthy.",
                _DEVICE,
            ),
            "shares": table(
                "koord_device_pod_allocated_ratio", "How much of a device one pod holds.", _POD
            ),
            "devices": table(
                "koord_device_present",
                "Devices of all nodes by type and health.",
                ("type", "health"),
            ),
            "in_use": table(
                "koord_device_in_use",
                "How many devices of a type pods hold.",
                ("type",),
            ),
            "problems": table(
                "koord_device_problems",
                "Devices that cannot stay as they are; koord status --devices names them.",
                ("reason",),
            ),
        }
        hidden = self.registry.gauge(
            "koord_device_hidden_series", "Devices and shares of pods without metrics of their own."
        )
        first = True
        while True:
            count = 0
            for _ in self.book.refresh():
                count += 1
                if count % _SLICE == 0:
                    await asyncio.sleep(0)
            if count or first:
                values = figures(self.book)
                for name, found in parts.items():
                    found.replace(getattr(values, name))
                hidden.set(values.hidden)
                first = False
            await self.clock.sleep(PERIOD_SECONDS)
