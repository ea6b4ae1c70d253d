"""Charts as SVG texts that need nothing else. Pure."""

import html
from typing import assert_never

from cli.output import charts


def drawn(chart: charts.Chart) -> str:
    """Return a chart as SVG, with its title for screen readers."""
    said = html.escape(chart.title)
    width, height = f"{chart.width:g}", f"{chart.height:g}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{said}" '
        f'font-family="sans-serif" font-size="{charts.TEXT_SIZE}">'
    )
    ground = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    shapes = map(_shape, chart.shapes)
    return "\n".join((head, f"<title>{said}</title>", ground, *shapes, "</svg>"))


def _shape(shape: charts.Shape) -> str:
    match shape:
        case charts.Box(x, y, width, height, colour):
            return (
                f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" '
                f'fill="{colour}"/>'
            )
        case charts.Line(points, colour, width):
            said = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            stroke = f'stroke="{colour}" stroke-width="{width:g}"'
            return f'<polyline fill="none" {stroke} points="{said}"/>'
        case charts.Text():
            return _text(shape)
        case _:
            assert_never(shape)


def _text(text: charts.Text) -> str:
    more = "" if text.size == charts.TEXT_SIZE else f' font-size="{text.size}"'
    more += ' font-weight="bold"' if text.bold else ""
    return (
        f'<text x="{text.x:.1f}" y="{text.y:.1f}" text-anchor="{text.anchor}"{more}>'
        f"{html.escape(text.said)}</text>"
    )
