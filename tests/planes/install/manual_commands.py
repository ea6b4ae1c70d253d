"""Commands of docs/break-glass.md, as they are typed."""

import pathlib
import re
import shlex

MANUAL = pathlib.Path(__file__).parents[3] / "docs" / "break-glass.md"


def commands(section):
    """The blocks of commands under a heading of the manual, as they are typed."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", MANUAL.read_text(), re.M | re.S)
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    return [
        [shlex.split(line.removeprefix("$ kubectl ")) for line in block.splitlines()]
        for block in blocks
    ]


def keeping():
    """The command that keeps settings in a file before others are typed."""
    (line,) = re.findall(r"^\$ kubectl (.* > .*)$", MANUAL.read_text(), re.M)
    return [shlex.split(line)]


async def typed(kubectl, block, folder=pathlib.Path()):
    """Type commands in a folder; `>` writes what one says into a file."""
    for words in block:
        written = [word.replace("--patch-file=", f"--patch-file={folder}/") for word in words]
        if ">" in written:
            *command, _, file = written
            (folder / file).write_text(await kubectl(*command))
        else:
            await kubectl(*written)
