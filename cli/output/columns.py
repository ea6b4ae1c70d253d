"""Tables as aligned lines of plain text. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table."""

    title: str
    right: bool = False
    """Whether its cells are figures, which end below each other."""
    wide: bool = False
    """Whether only `-o wide` shows it."""
    narrow: bool = False
    """Whether `-o wide` leaves it out, since another column says more."""

    def shown(self, *, wide: bool) -> bool:
        """Whether a table of this width has it."""
        return not (self.narrow if wide else self.wide)


def left(*titles: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(map(Column, titles))


def right(*titles: str) -> tuple[Column, ...]:
    """Return columns of figures."""
    return tuple(Column(title, right=True) for title in titles)


def more(*titles: str) -> tuple[Column, ...]:
    """Return columns of text that only `-o wide` shows."""
    return tuple(Column(title, wide=True) for title in titles)


def cut(text: str, most: int) -> str:
    """Return a text that is short enough for a cell, with dots where something is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def lines(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], *, wide: bool = False
) -> Iterator[str]:
    """Yield the head and a line for each row; rows have cells for all columns."""
    picked = [i for i, column in enumerate(columns) if column.shown(wide=wide)]
    cells = [[columns[i].title for i in picked], *([row[i] for i in picked] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(
            text.rjust(width) if columns[i].right else text.ljust(width)
            for i, text, width in zip(picked, line, widths, strict=True)
        ).rstrip()
