"""XPUs of Kunlunxin, through `xpu_smi`."""

from typing import Final

from agent.device_daemon.hardware import accelerator, findings, printed
from agent.host import files
from domain import wording

TOOL: Final = "xpu_smi"
MEMORY_WORD: Final = 18
MODEL_WORD: Final = 21
"""Places of the memory in MiB and of the model in a line of `xpu_smi -m`, from 0."""


def ask(host: findings.Host) -> accelerator.Answer:
    """Return the XPUs: one line of the tool describes one of them."""
    lines = [line.split() for line in host.run(TOOL, "-m").splitlines() if line.strip()]
    if not lines:
        raise files.ReadingError(f"{TOOL} -m prints nothing")

    def one(index: int) -> accelerator.Told:
        words = lines[index]
        if len(words) <= MODEL_WORD:
            printed_words = wording.count(len(words), "word", "words")
            raise files.ReadingError(f"{TOOL} -m prints {printed_words} in line {index + 1}")
        memory = printed.whole(words[MEMORY_WORD], TOOL)
        return accelerator.Told(
            uuid=f"xpu-{index}",
            minor=index,
            model=words[MODEL_WORD],
            resources={accelerator.MEMORY: f"{memory}Mi", accelerator.CORE: "100"},
            bus=printed.address(" ".join(words)),
        )

    return accelerator.each(len(lines), one, "XPU")


VENDOR: Final = accelerator.Vendor("kunlun", findings.NPU, "0x1d22", ask)
