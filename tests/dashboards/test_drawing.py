"""Figures, axes and legends of drawn dashboards."""

import pytest

from tests.dashboards import drawing, scrapes

THRESHOLDS = {"steps": [{"color": "green", "value": None}, {"color": "red", "value": 1}]}


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.0, "s", "0 s"),
        (0.25, "s", "250 ms"),
        (90.0, "s", "1.5 min"),
        (86_400.0 * 90, "s", "90 d"),
        (1536.0, "bytes", "1.5 KiB"),
        (0.814, "percentunit", "81.4 %"),
        (0.5, "ops", "0.5 /s"),
        (12_500.0, "short", "12.5 K"),
    ],
)
def test_figures_are_short_and_have_their_unit(value, unit, said):
    assert drawing.figure(value, unit) == said


@pytest.mark.parametrize(
    ("low", "high", "base", "marks"),
    [
        pytest.param(0.0, 96.0, 10, [0, 25, 50, 75, 100], id="tens"),
        pytest.param(0.0, 0.0, 10, [0, 0.25, 0.5, 0.75, 1.0], id="nothing but zeros"),
        pytest.param(0.0, 3.5 * 1024, 1024, [0, 1024, 2048, 3072, 4096], id="bytes"),
        pytest.param(-3.0, 5.0, 10, [-4, -2, 0, 2, 4, 6], id="below zero"),
    ],
)
def test_axes_have_round_marks(low, high, base, marks):
    assert drawing.ticks(low, high, base=base) == pytest.approx(marks)


def test_a_legend_that_is_too_long_says_how_much_is_left_out():
    rows = drawing.legend_rows([f"name-{number:03}" for number in range(40)], 300)
    assert len(rows) == 3
    shown = sum(1 for row in rows for number, _ in row if number is not None)
    assert rows[-1][-1] == (None, f"and {40 - shown} more")


def test_a_legend_takes_labels():
    assert drawing.named("{{verb}} {{ code }}", {"verb": "bind", "code": "201"}) == "bind 201"


@pytest.mark.parametrize(("value", "tone"), [(0.0, "green"), (1.0, "red")])
def test_a_figure_has_the_colour_of_its_threshold(value, tone):
    panel = {"fieldConfig": {"defaults": {"unit": "short", "thresholds": THRESHOLDS}}}
    (drawn,) = drawing.stat(panel, [("", [(0, value)])], (0, 0, 100, 100), None)
    assert drawing.TONES[tone] in drawn


def test_a_panel_without_data_says_so():
    panel = {"fieldConfig": {"defaults": {}}}
    for draw in (drawing.stat, drawing.timeseries, drawing.heatmap):
        assert "No data" in "".join(draw(panel, [], (0, 0, 100, 100), (0, 1)))


def test_cells_of_a_heat_map_are_as_strong_as_their_values():
    series = [("0 to 10 %", [(0, 4.0), (60, 0.0)]), ("10 to 20 %", [(0, 0.0), (60, 2.0)])]
    drawn = drawing.heatmap({}, series, (0, 0, 400, 200), (0, 60))
    cells = [part for part in drawn if part.startswith("<rect")]
    assert [cell.partition("fill-opacity=")[2] for cell in cells] == ['"1.00"/>', '"0.57"/>']


@pytest.mark.parametrize(
    ("placed", "path"),
    [
        pytest.param([(0, 1), (10, 2), (20, 1)], "M0 1.0L10 2.0L20 1.0", id="one line"),
        pytest.param(
            [(0, 1), (10, 2), (40, 1), (50, 1)], "M0 1.0L10 2.0M40 1.0L50 1.0", id="a gap"
        ),
        pytest.param([(0, 1), (10, 1), (40, 3)], "M0 1.0L10 1.0M40 3.0h0", id="a lonely point"),
    ],
)
def test_lines_end_where_nothing_is_known(placed, path):
    assert drawing.strokes(placed) == path


def test_what_hostile_labels_say_stays_text():
    assert "<script>" not in drawing.text(0, 0, "<script>")


def test_labels_of_the_collector_win():
    told = '# TYPE x counter\nx{namespace="shop",result="a"} 2.0\ny 1.0\n'
    ours = 'namespace="koordinator-system",pod="p"'
    assert scrapes.lines(told, "p", 3.0) == [
        f'x{{{ours},exported_namespace="shop",result="a"}} 2.0 3.000\n',
        f"y{{{ours}}} 1.0 3.000\n",
    ]
