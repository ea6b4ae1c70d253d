"""GPUs of MetaX, through `mx-smi`."""

from typing import Final

from agent.device_daemon.hardware import accelerator, findings, printed
from agent.host import files
from domain import wording

TOOL: Final = "mx-smi"
MODEL: Final = "Model Name"
_ERRORS: Final = ("uncorrectable", "double bit")


def ask(host: findings.Host) -> accelerator.Answer:
    """Return the GPUs: the tool describes all of them in blocks that begin with the model."""
    cards = list(printed.blocks(printed.fields(host.run(TOOL, "--show-hwinfo")), MODEL))
    if not cards:
        raise files.ReadingError(f"{TOOL} --show-hwinfo prints no {MODEL}")

    def one(index: int) -> accelerator.Told:
        found = cards[index]
        memory = "".join(printed.value_of(found, "Memory Capacity", TOOL).split())
        counted = printed.fields(host.run(TOOL, "--count-ecc", "-i", str(index)))
        errors = sum(
            printed.whole(value, TOOL)
            for name, value in counted
            if any(word in name.lower() for word in _ERRORS)
        )
        return accelerator.Told(
            uuid=printed.value_of(found, "UUID", TOOL),
            minor=index,
            model=printed.value_of(found, MODEL, TOOL).split()[0],
            resources={
                accelerator.MEMORY: memory.replace("GB", "Gi").replace("MB", "Mi"),
                accelerator.CORE: "100",
            },
            bus=next(filter(None, (printed.address(value) for _, value in found)), ""),
            healthy=not errors,
            code="ECC error" if errors else "",
            message=f"{TOOL} counts {wording.count(errors, 'error', 'errors')} of memory"
            if errors
            else "",
        )

    return accelerator.each(len(cards), one, "GPU")


VENDOR: Final = accelerator.Vendor("metax", findings.GPU, "0x9999", ask)
