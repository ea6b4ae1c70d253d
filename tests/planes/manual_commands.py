"""Commands of docs/break-glass.md, as they are typed."""

import pathlib
import re
import shlex

MANUAL = pathlib.Path(__file__).parents[2] / "docs" / "break-glass.md"


def commands(section):
    """The blocks of commands under a heading of the manual, as they are typed."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", MANUAL.read_text(), re.M | re.S)
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    return [
        [shlex.split(line.removeprefix("$ kubectl ")) for line in block.splitlines()]
        for block in blocks
    ]


async def typed(kubectl, block):
    for words in block:
        await kubectl(*words)
