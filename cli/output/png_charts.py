"""Charts as one PNG picture, through the optional package Pillow, which brings its own font."""

import importlib
import io
from collections.abc import Sequence
from typing import Any, Final, assert_never

from cli.output import charts

SCALE: Final = 2
"""Pixels per unit of a chart, as screens of today have."""
_FINER: Final = 2
"""So many times finer it is drawn, and then reduced, which makes edges smooth."""
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}
_MOST_PIXELS: Final = 1 << 27


class NoLibraryError(Exception):
    """The package that draws is not installed; says how it is."""


class TooLargeError(Exception):
    """The picture would not fit into memory; says what to write instead."""


def check() -> None:
    """Raise an error if nothing can be drawn here."""
    _Pillow()


def drawn(pictures: Sequence[charts.Chart]) -> bytes:
    """Return charts below each other as one PNG."""
    pillow = _Pillow()
    scale = SCALE * _FINER
    width = int(max((one.width for one in pictures), default=charts.WIDTH) * scale)
    height = int(sum(one.height for one in pictures) * scale) or scale
    if width * height > _MOST_PIXELS:
        raise TooLargeError("the charts are too large for one picture: write an HTML file instead")
    image = pillow.image.new("RGB", (width, height), "white")
    top = 0.0
    for one in pictures:
        _Canvas(pillow, image, top, scale).draw(one.shapes)
        top += one.height
    out = io.BytesIO()
    image.reduce(_FINER).save(out, "png", optimize=True)
    return out.getvalue()


class _Pillow:
    """The parts of the library; loaded only where a picture is wanted."""

    def __init__(self) -> None:
        try:
            self.image: Any = importlib.import_module("PIL.Image")
            self.drawing: Any = importlib.import_module("PIL.ImageDraw")
            self.fonts: Any = importlib.import_module("PIL.ImageFont")
        except ImportError as error:
            raise NoLibraryError(
                "a PNG needs the Python package Pillow, which is not installed: install "
                "koord[plots], or write an HTML file instead"
            ) from error


class _Canvas:
    """The part of a picture that one chart is drawn on."""

    def __init__(self, pillow: _Pillow, image: Any, top: float, scale: int) -> None:
        self._pen = pillow.drawing.Draw(image)
        self._fonts = pillow.fonts
        self._top = top
        self._scale = scale

    def draw(self, shapes: Sequence[charts.Shape]) -> None:
        for shape in shapes:
            match shape:
                case charts.Box(x, y, width, height, colour):
                    corner = self._at(x + width, y + height)
                    if width and height:
                        self._pen.rectangle((*self._at(x, y), *corner), fill=colour)
                case charts.Line(points, colour, width):
                    at = [self._at(x, y) for x, y in points]
                    self._pen.line(at, fill=colour, width=int(width * self._scale), joint="curve")
                case charts.Text():
                    self._text(shape)
                case _:
                    assert_never(shape)

    def _text(self, text: charts.Text) -> None:
        font = self._fonts.load_default(text.size * self._scale)
        self._pen.text(
            self._at(text.x, text.y),
            text.said,
            fill="black",
            font=font,
            anchor=_ANCHORS[text.anchor],
            stroke_width=self._scale // 4 if text.bold else 0,
        )

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return x * self._scale, (self._top + y) * self._scale
