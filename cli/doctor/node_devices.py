"""What `koord doctor node` says of accelerators and adapters of this host."""

from collections.abc import Callable, Iterator
from typing import Final

from agent.devices import device_inventory, gpus, latest_findings, nvml, rdma
from agent.model import capability_matrix

GPUS: Final = latest_findings.ROWS[device_inventory.GPU]
ADAPTERS: Final = latest_findings.ROWS[device_inventory.RDMA]


def rows(
    sys: str, load: Callable[[], gpus.Driver] = nvml.load
) -> tuple[capability_matrix.Row, ...]:
    """Return a row for every kind of which this host has any, told or not."""
    cards = gpus.Gpus(sys, load)
    try:
        found = {GPUS: cards.discover(0.0), ADAPTERS: rdma.discover(sys)}
    finally:
        cards.close()
    return tuple(_rows(found))


def _rows(sources: dict[str, device_inventory.Found]) -> Iterator[capability_matrix.Row]:
    for name, found in sources.items():
        if not found.devices and not found.problems:
            continue
        healthy = sum(one.healthy for one in found.devices)
        said = [f"{len(found.devices)} found, {healthy} healthy", *found.problems]
        verdict = capability_matrix.Verdict.WORKS
        if not found.devices:
            verdict = capability_matrix.Verdict.UNAVAILABLE
        elif found.problems or healthy < len(found.devices):
            verdict = capability_matrix.Verdict.SUBSTITUTE
        yield capability_matrix.Row(name, verdict, "; ".join(said))
