"""The commands of a page of the manual, and what the page shows below each."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
ORDER = ("laptop", "batch-job", "quota", "gang", "reservation", "observe")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
INTERRUPT = "^C"
# What only looks may be typed again until it shows what the page shows, as readers do.
LOOKS = ("koord status", "koord explain", "koord doctor", "koord agent scorecard", "kubectl get")


def of(page):
    """Every command of a page, and the keys that end one, with the output that the page shows."""
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ |^(?=\^C$)", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown.splitlines()


def shows(shown, said):
    """Whether a page may show these lines for what was said.

    A line of three dots is any lines, and three dots in a line are any text. How wide columns are
    depends on what else stands in them.
    """
    parts = [r"(?:.*\n)*?" if one == "..." else _line(one) for one in shown]
    text = "".join(f"{_narrow(line)}\n" for line in said)
    return re.fullmatch("".join(parts), text) is not None


def _line(shown):
    return ".*".join(map(re.escape, _narrow(shown).split("..."))) + "\n"


def _narrow(line):
    return re.sub(r" {2,}", "  ", line.rstrip())
