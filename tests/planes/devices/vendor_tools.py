"""Tools of vendors that print what their documentation shows, and the cards they belong to."""

from agent.host import files

HUAWEI = {
    "npu-smi info -l": "\tTotal Count                    : 1\n\n"
    "\tNPU ID                         : 1\n\tChip Count                     : 1\n",
    "npu-smi info -m": "\tNPU ID      Chip ID      Chip Logic ID      Chip Name\n"
    "\t1           0            0                  Ascend 910B3\n"
    "\t1           1            -                  Mcu\n",
    "npu-smi info -t board -i 1": "\tNPU ID                         : 1\n"
    "\tPCIe Bus Info                  : 0000:3B:00.0\n\tChip Fault                     : 0\n",
    "npu-smi info -t memory -i 1": "\tDDR Capacity(MB)               : 0\n"
    "\tHBM Capacity(MB)               : 65536\n",
    "npu-smi info -t common -i 1": "\tAicore Count                   : 20\n",
}
KUNLUN = {
    "xpu_smi -m": "0000:53:00.0 " + " ".join(str(n) for n in range(1, 18)) + " 32768 a b P800 x\n"
}
CAMBRICON = {
    "cnmon -l": "Card 0: MLU370-X8 (UUID: 6f9e)\n",
    "cnmon info -c 0": "Card 0\n    UUID                       : 6f9e-0b1c\n    PCI:\n"
    "        Domain ID              : 0\n        Bus num                : 5b\n"
    "        Device                 : 0\n        Function               : 0\n"
    "    Health:\n        Device                 : Good\n"
    "    Physical Memory Usage      :\n        Total                  : 49152 MiB\n",
}
METAX = {
    "mx-smi --show-hwinfo": "GPU#0\n  Model Name            : MXC500\n  UUID  : GPU-77\n"
    "  BDF : 0000:6B:00.0\n  Memory Capacity       : 64 GB\n",
    "mx-smi --count-ecc -i 0": "  SRAM uncorrectable : 0\n  DRAM double bit : 0\n"
    "  single bit : 7\n",
}
VENDORS = {"huawei": HUAWEI, "kunlun": KUNLUN, "cambricon": CAMBRICON, "metax": METAX}
CARDS = {
    "huawei": ("0000:3b:00.0", "0x19e5"),
    "kunlun": ("0000:53:00.0", "0x1d22"),
    "cambricon": ("0000:5b:00.0", "0xcabc"),
    "metax": ("0000:6b:00.0", "0x9999"),
}


class Scripted:
    """Tools that answer questions with texts; what they are not told to answer they refuse."""

    def __init__(self, answers):
        self.answers, self.asked = dict(answers), []

    def run(self, *words):
        question = " ".join(words)
        self.asked.append(question)
        answer = self.answers.get(question)
        if answer is None:
            raise files.ReadingError(f"{question}: exit code 1: unknown option")
        return answer


def plug(tree, vendor, dev):
    """Plug in the card of a vendor, with its device file where the vendor's has one."""
    bus, number = CARDS[vendor]
    tree.add(bus, vendor=number, kind="0x120000", product="0xd802")
    if vendor == "huawei":
        dev.mkdir(parents=True, exist_ok=True)
        (dev / "davinci0").touch()


def install(folder, answers):
    """Write tools as programs into a folder; returns it as a PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = {}
    for question, answer in answers.items():
        program, _, rest = question.partition(" ")
        text = answer.replace("'", "")
        programs.setdefault(program, []).append(f"'{rest}') printf '%s' '{text}';;\n")
    for program, cases in programs.items():
        path = folder / program
        path.write_text(f'#!/bin/sh\ncase "$*" in\n{"".join(cases)}*) exit 1;;\nesac\n')
        path.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"
