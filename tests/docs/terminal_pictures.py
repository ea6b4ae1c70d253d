"""Pictures of a terminal for the manual: what commands print, drawn as SVG."""

import os
import pathlib
import re
import textwrap
from xml.etree import ElementTree
from xml.sax import saxutils

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "terminal"
# Read before the root conftest cleans the environment of each test.
_RENEWED = bool(os.environ.get("KOORD_TERMINAL_PICTURES"))
COLUMNS, MARGIN, HEIGHT, WIDTH = 160, 18, 19, 7.8
SHOWN = {
    "status": "koord status",
    "explain": "koord explain pod latecomer -n shop",
    "top": "koord top nodes",
}
"""Each picture and its command, in the story that `koord dev` tells."""


def drawn(command, said):
    """The picture of a command and what it printed; long lines go on in the next, further in."""
    rows = [f"$ {command}"]
    for line in said:
        further = " " * (len(line) - len(line.lstrip()) + 2)
        rows += textwrap.wrap(
            line, COLUMNS, subsequent_indent=further, replace_whitespace=False
        ) or [""]
    width = round(max(map(len, rows)) * WIDTH) + 2 * MARGIN
    height = len(rows) * HEIGHT + 2 * MARGIN
    texts = []
    for number, row in enumerate(rows):
        # The length is given, so that columns stay columns whatever font there is.
        place = f'x="{MARGIN}" y="{MARGIN + 14 + number * HEIGHT}"'
        length = f'textLength="{round(len(row) * WIDTH, 1)}" lengthAdjust="spacingAndGlyphs"'
        colour = ' fill="#8bd5ca"' if not number else ""
        texts.append(f"<text {place} {length}{colour}>{saxutils.escape(kept(row))}</text>")
    style = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="#e6e9ef"'
    return "\n".join(
        (
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
                f' viewBox="0 0 {width} {height}" role="img">'
            ),
            f"<title>{saxutils.escape(command)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1e2030"/>',
            f"<g {style}>",
            *texts,
            "</g>",
            "</svg>",
            "",
        )
    )


def kept(row):
    """A row whose spaces nobody takes together."""
    return row.replace(" ", "\N{NO-BREAK SPACE}")


def rows(picture):
    """The lines of text in a picture."""
    found = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return [(one.text or "").replace("\N{NO-BREAK SPACE}", " ") for one in found]


async def check(terminal):
    """Draw every picture anew; those of the manual show the same commands and columns."""
    for name, command in SHOWN.items():
        picture = drawn(command, await terminal.run(command))
        file = FOLDER / f"{name}.svg"
        if _RENEWED:
            file.parent.mkdir(exist_ok=True)
            file.write_text(picture)
        made, shown = rows(picture), rows(file.read_text())
        # Figures differ from one run to the next, and the width of columns with them.
        assert _words(shown[:2]) == _words(made[:2]), f"{file}: KOORD_TERMINAL_PICTURES=1 renews it"


def _words(lines):
    return [re.sub(r"[\d.]+", "0", line).split() for line in lines]
