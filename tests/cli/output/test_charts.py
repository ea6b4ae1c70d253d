"""Charts have well-formed SVG and PNG, whatever the figures and names, and both show the same."""

import io
import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cli.output import charts, png_charts, svg_charts

FIGURES = st.floats(0, 1e12)
HOURS = (0.0, 1.0, 2.0)
USED = {"used": (1.0, 4.0, 2.0), "lent": (3.0, 3.0, 3.0)}
ROWS = [("team-a", {"held": 3.0, "used": 1.5}), ("a" * 80, {"held": 0.0})]


def pictured(*drawings):
    return Image.open(io.BytesIO(png_charts.drawn(drawings)))


def colours(image):
    return {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}


@given(
    st.lists(FIGURES, min_size=1, max_size=40),
    st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), max_size=30),
)
def test_lines_are_well_formed_and_stay_inside(values, name):
    chart = charts.lines(name, "cores", list(range(len(values))), {name: values})
    line = next(s for s in chart.shapes if isinstance(s, charts.Line) and s.width == 2)
    for x, y in line.points:
        assert 0 <= x <= chart.width
        assert 0 <= y <= chart.height
    assert ET.fromstring(svg_charts.drawn(chart)) is not None


def test_bars_say_their_amounts():
    text = svg_charts.drawn(charts.bars("Teams", "h", ROWS))
    ET.fromstring(text)
    assert "3 h" in text
    assert "1.5 h" in text
    assert "a..." in text


@pytest.mark.parametrize(
    ("amount", "said"), [(22700.16, "22,700 h"), (9999.4, "9999 h"), (9999.6, "10,000 h")]
)
def test_large_amounts_are_written_without_powers_of_ten(amount, said):
    assert f">{said}<" in svg_charts.drawn(charts.bars("Teams", "h", [("a", {"held": amount})]))


@pytest.mark.parametrize(
    "chart", [charts.bars("none", "h", []), charts.lines("none", "", [], {})], ids=["bars", "lines"]
)
def test_nothing_is_drawn_as_an_empty_chart(chart):
    assert ET.fromstring(svg_charts.drawn(chart)) is not None
    assert pictured(chart).size[0] == charts.WIDTH * png_charts.SCALE


def test_a_picture_has_every_chart_and_every_colour_of_the_page():
    drawings = [charts.lines("Cores", "cores", HOURS, USED), charts.bars("Teams", "h", ROWS)]
    image = pictured(*drawings)
    height = sum(one.height for one in drawings)
    assert image.size == (charts.WIDTH * png_charts.SCALE, height * png_charts.SCALE)
    filled = {s.colour for one in drawings for s in one.shapes if not isinstance(s, charts.Text)}
    shown = {"#{:02x}{:02x}{:02x}".format(*one) for one in colours(image)}
    assert filled <= shown


def test_a_bar_is_as_long_as_its_amount():
    image = pictured(charts.bars("Teams", "h", [("a", {"held": 4.0}), ("b", {"held": 2.0})]))
    blue, pixels = (0x0B, 0x6B, 0xCB), image.convert("RGB").load()
    rows = [sum(pixels[x, y] == blue for x in range(image.width)) for y in range(image.height)]
    long, short = sorted({count for count in rows if count > 100}, reverse=True)
    assert long == pytest.approx(2 * short, abs=2)


def test_a_picture_that_no_memory_holds_is_refused():
    rows = [(str(number), {"held": 1.0}) for number in range(10_000)]
    with pytest.raises(png_charts.TooLargeError, match="write an HTML file instead"):
        png_charts.drawn([charts.bars("many", "h", rows)])


def test_without_the_library_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(
        png_charts.NoLibraryError, match=r"install koord\[plots\], or write an HTML"
    ):
        png_charts.check()
