"""MLUs of Cambricon, through `cnmon`."""

from typing import Final

from agent.device_daemon.hardware import accelerator, findings, printed
from agent.host import files

TOOL: Final = "cnmon"
GOOD: Final = "Good"
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")


def ask(host: findings.Host) -> accelerator.Answer:
    """Return the MLUs: the tool lists them, and describes each."""
    listed = host.run(TOOL, "-l")
    count = sum("UUID" in line for line in listed.splitlines())
    model = next((word.strip(",;:()") for word in listed.split() if "MLU" in word), "")
    if not count or not model:
        raise files.ReadingError(f"{TOOL} -l lists no MLU with a UUID")

    def one(index: int) -> accelerator.Told:
        found = printed.fields(host.run(TOOL, "info", "-c", str(index)))
        health = next((value for name, value in found if name == "Device" and _word(value)), GOOD)
        return accelerator.Told(
            uuid=printed.value_of(found, "UUID", TOOL),
            minor=index,
            model=model,
            resources={accelerator.MEMORY: f"{memory_of(found)}Mi", accelerator.CORE: "100"},
            bus=address_of(found),
            healthy=health == GOOD,
            message="" if health == GOOD else f"{TOOL} says Device : {health}"[:200],
        )

    return accelerator.each(count, one, "MLU")


def memory_of(found: printed.Fields) -> int:
    """Return the MiB of the block `Physical Memory Usage`."""
    inside = False
    for name, value in found:
        inside = inside or name == "Physical Memory Usage"
        if inside and name == "Total":
            return printed.whole(value, TOOL)
    raise files.ReadingError(f"{TOOL} prints no Total of Physical Memory Usage")


def address_of(found: printed.Fields) -> str:
    """Return the PCI address, whose parts are printed in hexadecimal; empty without them."""
    parts = []
    for wanted in ("Domain", "Bus", "Device", "Function"):
        texts = (value for name, value in found if name.startswith(wanted) and not _word(value))
        text = next(filter(None, texts), "")
        if not text:
            return ""
        parts.append(int(text.removeprefix("0x"), 16))
    domain, bus, device, function = parts
    return printed.address(f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}")


def _word(value: str) -> bool:
    """Tell whether a value is a word of health and no number of a PCI device."""
    digits = value.removeprefix("0x")
    return not set(digits) <= _HEXADECIMAL or (len(digits) > 2 and not digits.isdigit())


VENDOR: Final = accelerator.Vendor("cambricon", findings.NPU, "0xcabc", ask)
