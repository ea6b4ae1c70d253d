"""Charts are well-formed SVG, whatever the figures and names."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from cli.output import svg_charts

FIGURES = st.floats(0, 1e12)


@given(
    st.lists(FIGURES, min_size=1, max_size=40),
    st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), max_size=30),
)
def test_lines_are_well_formed_and_stay_inside(values, name):
    text = svg_charts.lines(name, "cores", list(range(len(values))), {name: values})
    root = ET.fromstring(text)
    (line,) = [one for one in root.iter() if one.tag.endswith("polyline")]
    for point in line.attrib["points"].split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= svg_charts.WIDTH
        assert 0 <= y <= svg_charts.HEIGHT


def test_bars_say_their_amounts():
    rows = [("team-a", {"held": 3.0, "used": 1.5}), ("a" * 80, {"held": 0.0})]
    text = svg_charts.bars("Teams", "h", rows)
    ET.fromstring(text)
    assert "3 h" in text
    assert "1.5 h" in text
    assert "a..." in text
    assert ET.fromstring(svg_charts.bars("none", "h", [])) is not None
    assert ET.fromstring(svg_charts.lines("none", "", [], {})) is not None
