"""Line and bar charts as shapes, which `svg_charts` and `png_charts` draw alike. Pure."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

WIDTH: Final = 860
HEIGHT: Final = 260
TEXT_SIZE: Final = 11
TITLE_SIZE: Final = 13
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 52, 30
_COLOURS: Final = ("#0b6bcb", "#d1495b", "#2e8b57", "#8a5fbf", "#c77800", "#4d4d4d")
_GRID: Final = "#dddddd"
_THOUSANDS: Final = 9999.5
_MARKS: Final = 5
_MOST_POINTS: Final = 1500
_ROW: Final = 24
_THINNEST: Final = 12
"""A bar beside which its amount can be read."""
_LABEL: Final = 180
_LONGEST: Final = 26


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line through points."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """A text whose start, middle or end stands on a baseline."""

    x: float
    y: float
    said: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = TEXT_SIZE
    bold: bool = False


Shape = Box | Line | Text


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """Shapes on a white ground."""

    title: str
    height: float
    shapes: tuple[Shape, ...]
    width: float = WIDTH


def lines(
    title: str, unit: str, hours: Sequence[float], series: Mapping[str, Sequence[float]]
) -> Chart:
    """Return a chart of figures over time, a line per series."""
    highest = _rounded(max((value for one in series.values() for value in one), default=0.0))
    first, last = (hours[0], hours[-1]) if hours else (0.0, 1.0)
    span = (last - first) or 1.0
    shapes = [*_head(title), *_grid(unit, highest)]
    apart = _rounded(span / _MARKS)
    for mark in range(int(span / apart) + 1):
        at = _x(mark * apart / span)
        shapes.append(Text(at, HEIGHT - 10, f"{first + mark * apart:g} h", "middle"))
    step = max(1, math.ceil(len(hours) / _MOST_POINTS))
    for number, (name, values) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = tuple(
            (_x((hour - first) / span), _y(value / highest))
            for hour, value in list(zip(hours, values, strict=True))[::step]
        )
        shapes += [Line(points, colour, 2), *_key(number, name, colour)]
    return Chart(title, HEIGHT, tuple(shapes))


def bars(title: str, unit: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> Chart:
    """Return a chart with a row of bars per label, the parts of a row beside each other."""
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    thick = max(_THINNEST, (_ROW - 8) // max(len(names), 1))
    tall = thick * max(len(names), 1) + 8
    highest = _rounded(max((value for _, parts in rows for value in parts.values()), default=0.0))
    wide = WIDTH - _LABEL - 70
    shapes = [*_head(title)]
    for number, name in enumerate(names):
        shapes += _key(number, name, _COLOURS[number % len(_COLOURS)])
    for at, (label, parts) in enumerate(rows):
        top = _TOP + tall * at
        shown = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 3]}..."
        shapes.append(Text(_LABEL - 8, top + tall / 2, shown, "end"))
        for number, name in enumerate(names):
            value = parts.get(name, 0.0)
            long = max(0.0, value / highest * wide)
            colour, y = _COLOURS[number % len(_COLOURS)], top + thick * number
            said = f"{_number(value)} {unit}" if value else "0"
            shapes.append(Box(_LABEL, y, long, thick - 1, colour))
            shapes.append(Text(_LABEL + long + 4, y + thick - 2, said))
    return Chart(title, _TOP + tall * len(rows) + _BOTTOM, tuple(shapes))


def _head(title: str) -> Iterator[Shape]:
    yield Text(8, 16, title, size=TITLE_SIZE, bold=True)


def _grid(unit: str, highest: float) -> Iterator[Shape]:
    for mark in range(_MARKS + 1):
        y = _y(mark / _MARKS)
        yield Line(((_LEFT, y), (WIDTH - _RIGHT, y)), _GRID, 1)
        yield Text(_LEFT - 6, y + 4, f"{_number(highest * mark / _MARKS)} {unit}".strip(), "end")


def _key(number: int, name: str, colour: str) -> Iterator[Shape]:
    x = 8 + 165 * (number % 5)
    yield Box(x, 24, 10, 10, colour)
    yield Text(x + 14, 33, name)


def _x(share: float) -> float:
    return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)


def _rounded(value: float) -> float:
    """Return a round number that is not smaller: 1, 2, 2.5 or 5 with zeros."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if size * step >= value * 0.999)


def _number(value: float) -> str:
    """Write a number as people do: four digits, and none in powers of ten."""
    return f"{value:,.0f}" if abs(value) >= _THOUSANDS else f"{value:.4g}"
