"""How far long work has come: one line on a terminal that is erased at the end."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Final, Protocol, TextIO

from cli.output import terminal

WIDTH: Final = 24
_CLEAR: Final = "\r\x1b[2K"


class Step(Protocol):
    """Takes what is being done, and how much of all is done."""

    def __call__(self, text: str, done: int, total: int, /) -> None:
        """Show it."""


def silent(_text: str, _done: int, _total: int) -> None:
    """Show nothing."""


@contextlib.contextmanager
def bar(stream: TextIO | None = None) -> Iterator[Step]:
    """Yield a function that draws a bar; into pipes and dumb terminals it draws nothing."""
    out = sys.stderr if stream is None else stream
    if not out.isatty() or os.environ.get("TERM") == "dumb":
        yield silent
        return

    def draw(text: str, done: int, total: int) -> None:
        full = WIDTH * min(done, total) // max(total, 1)
        drawn = "#" * full + "." * (WIDTH - full)
        out.write(f"{_CLEAR}[{drawn}] {terminal.plain(text)[:60]}")
        out.flush()

    try:
        yield draw
    finally:
        out.write(_CLEAR)
        out.flush()
