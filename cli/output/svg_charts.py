"""Line and bar charts as SVG texts that need nothing else. Pure."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Final

WIDTH: Final = 860
HEIGHT: Final = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 44, 30
_COLOURS: Final = ("#0b6bcb", "#d1495b", "#2e8b57", "#8a5fbf", "#c77800", "#4d4d4d")
_MARKS: Final = 5
_MOST_POINTS: Final = 1500
_ROW: Final = 24
_LABEL: Final = 180
_LONGEST: Final = 26


def lines(
    title: str, unit: str, hours: Sequence[float], series: Mapping[str, Sequence[float]]
) -> str:
    """Return a chart of figures over time, a line per series."""
    highest = _rounded(max((value for one in series.values() for value in one), default=0.0))
    first, last = (hours[0], hours[-1]) if hours else (0.0, 1.0)
    span = (last - first) or 1.0
    parts = [*_head(title, HEIGHT), *_grid(unit, highest)]
    for mark in range(_MARKS + 1):
        hour = first + span * mark / _MARKS
        parts.append(_text(_x(mark / _MARKS), HEIGHT - 10, f"{hour:g} h", "middle"))
    step = max(1, math.ceil(len(hours) / _MOST_POINTS))
    for number, (name, values) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{_x((hour - first) / span):.1f},{_y(value / highest):.1f}"
            for hour, value in list(zip(hours, values, strict=True))[::step]
        )
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>'
        )
        parts += _key(number, name, colour)
    return "\n".join((*parts, "</svg>"))


def bars(title: str, unit: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Return a chart with a row of bars per label, the parts of a row beside each other."""
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    thick = max(4, (_ROW - 8) // max(len(names), 1))
    tall = thick * max(len(names), 1) + 8
    height = _TOP + tall * len(rows) + _BOTTOM
    highest = _rounded(max((value for _, parts in rows for value in parts.values()), default=0.0))
    wide = WIDTH - _LABEL - 70
    found = _head(title, height)
    for number, name in enumerate(names):
        found += _key(number, name, _COLOURS[number % len(_COLOURS)])
    for at, (label, parts) in enumerate(rows):
        top = _TOP + tall * at
        shown = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 3]}..."
        found.append(_text(_LABEL - 8, top + tall / 2, shown, "end"))
        for number, name in enumerate(names):
            value = parts.get(name, 0.0)
            long = max(0.0, value / highest * wide)
            colour, y = _COLOURS[number % len(_COLOURS)], top + thick * number
            found.append(
                f'<rect x="{_LABEL}" y="{y}" width="{long:.1f}" height="{thick - 1}" '
                f'fill="{colour}"/>'
            )
            said = f"{value:.4g} {unit}" if value else "0"
            found.append(_text(_LABEL + long + 4, y + thick - 2, said, "start"))
    return "\n".join((*found, "</svg>"))


def _head(title: str, height: float) -> list[str]:
    said = html.escape(title)
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" height="{height:g}" role="img" aria-label="{said}" '
            'font-family="sans-serif" font-size="11">'
        ),
        f"<title>{said}</title>",
        f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>',
        f'<text x="8" y="16" font-size="13" font-weight="bold">{said}</text>',
    ]


def _grid(unit: str, highest: float) -> list[str]:
    found = []
    for mark in range(_MARKS + 1):
        y = _y(mark / _MARKS)
        found.append(
            f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        said = f"{highest * mark / _MARKS:g} {unit}".strip()
        found.append(_text(_LEFT - 6, y + 4, said, "end"))
    return found


def _key(number: int, name: str, colour: str) -> list[str]:
    x = 8 + 165 * (number % 5)
    return [
        f'<rect x="{x}" y="24" width="10" height="10" fill="{colour}"/>',
        _text(x + 14, 33, name, "start"),
    ]


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(said)}</text>'


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
