"""NPUs of Huawei (Ascend), through `npu-smi`."""

import re
from typing import Final

from agent.device_daemon.hardware import accelerator, findings, printed
from agent.devices import pci
from agent.host import files
from api import names
from domain import wording

TOOL: Final = "npu-smi"
OLD_MEMORY_MIB: Final = 21_527
"""Of cards whose tool cannot be asked for memory (Ascend 310P)."""
CORES: Final = {"310P3": 8}
"""AI cores by model, where the tool does not count them."""
CPUS: Final = {"910B": 0, "910B2": 6, "910B3": 7, "910B4": 7}
"""AI CPUs by model, where the tool does not count them."""
WHOLE: Final = "100"
_DEVICE = re.compile(r"davinci(\d{1,4})")


def ask(host: findings.Host) -> accelerator.Answer:
    """Return the NPUs; each has a file `/dev/davinciN`, both in the order of their numbers."""
    cards = cards_of(host.run(TOOL, "info", "-l"))
    minors = sorted(
        int(match[1]) for name in pci.listed(host.dev) if (match := _DEVICE.fullmatch(name))
    )
    if len(cards) != len(minors):
        raise files.ReadingError(
            f"{TOOL} lists {wording.count(len(cards), 'NPU', 'NPUs')}, {host.dev} has "
            f"{wording.count(len(minors), 'file', 'files')} davinciN"
        )
    model = model_of(host.run(TOOL, "info", "-m"))
    cores, cpus = _cores(host, cards[0], model), _cpus(host, cards[0], model)

    def one(index: int) -> accelerator.Told:
        card, minor = cards[index], minors[index]
        board = printed.fields(host.run(TOOL, "info", "-t", "board", "-i", str(card)))
        faults = printed.sum_of(board, ("Chip Fault",), TOOL)
        counted = wording.count(faults, "chip fault", "chip faults")
        buses = [printed.address(value) for _, value in board]
        return accelerator.Told(
            uuid=f"npu-{card}-{minor}",
            minor=minor,
            model=model,
            resources={
                accelerator.MEMORY: f"{_memory(host, card)}Mi",
                names.NPU_CPU: str(cpus),
                names.NPU_CORE: str(cores),
                names.NPU_DVPP: WHOLE,
            },
            bus=next(filter(None, buses), ""),
            healthy=not faults,
            code="chip error" if faults else "",
            message=f"{TOOL} counts {counted}" if faults else "",
        )

    return accelerator.each(len(cards), one, "NPU")


def cards_of(text: str) -> list[int]:
    """Return the numbers of the cards in what `info -l` prints, in order."""
    found = [value for name, value in printed.fields(text) if name == "NPU ID"]
    cards = sorted({printed.whole(value, TOOL) for value in found})
    if not cards:
        raise files.ReadingError(f"{TOOL} info -l lists no NPU ID")
    return cards


def model_of(text: str) -> str:
    """Return the model in what `info -m` prints: the last two words of its second line."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or len(lines[1]) < 2:
        raise files.ReadingError(f"{TOOL} info -m names no chip")
    return "-".join(lines[1][-2:])


def _memory(host: findings.Host, card: int) -> int:
    try:
        text = host.run(TOOL, "info", "-t", "memory", "-i", str(card))
    except files.ReadingError:
        # The tool of older cards does not know the question; `board` has just been answered.
        return OLD_MEMORY_MIB
    sizes = ("DDR Capacity", "HBM Capacity")
    return printed.sum_of(printed.fields(text), sizes, TOOL)


def _cores(host: findings.Host, card: int, model: str) -> int:
    known = CORES.get(model.rpartition("-")[2])
    if known is not None:
        return known
    text = host.run(TOOL, "info", "-t", "common", "-i", str(card))
    return printed.sum_of(printed.fields(text), ("Aicore Count",), TOOL)


def _cpus(host: findings.Host, card: int, model: str) -> int:
    known = CPUS.get(model.rpartition("-")[2])
    if known is not None:
        return known
    text = host.run(TOOL, "info", "-t", "cpu-num-cfg", "-i", str(card), "-c", "0")
    return printed.sum_of(printed.fields(text), ("AI",), TOOL)


VENDOR: Final = accelerator.Vendor(
    "huawei", findings.NPU, "0x19e5", ask, frozenset({"0x1710", "0x1711"})
)
"""Products 1710 and 1711 are the management and graphics controllers of Huawei's servers."""
