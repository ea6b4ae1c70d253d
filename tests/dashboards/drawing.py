"""Dashboards as SVG: panels in their grid, with units, thresholds and legends.

The drawing is our own; Grafana's looks differ. What it shows is what the queries of the dashboard
found: panels of the types `timeseries`, `stat` and `heatmap`.
"""

import datetime
import itertools
import math
import re
from xml.sax import saxutils

WIDTH, COLUMNS, ROW, GAP, HEAD = 1400, 24, 34, 8, 44
INK, SOFT, LINE, PAGE, PANEL = "#d8dce2", "#9aa4b0", "#333a42", "#111418", "#1a1f25"
COLOURS = ("#6fb7ff", "#f2b84b", "#7bd88f", "#ff8f80", "#c59bff", "#4fd1c5", "#f58fc0", "#b8c26a",
           "#8fa3ff", "#e0a074")  # fmt: skip
TONES = {"green": "#7bd88f", "red": "#ff8f80"}
LETTER = 6.9
"""About how wide a letter of the legend is."""
TITLE_LETTER = 8.4
PARTS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("µs", 1e-6))


def figure(value, unit):
    """A value with its unit, as short as people write it."""
    if unit == "bytes":
        size = next((n for n, name in enumerate(BYTES) if abs(value) < 1024 ** (n + 1)), 4)
        return f"{_short(value / 1024**size)} {BYTES[size]}"
    if unit == "percentunit":
        return f"{_short(100 * value)} %"
    if unit == "s" and value:
        name, length = next((one for one in PARTS if abs(value) >= one[1]), PARTS[-1])
        return f"{_short(value / length)} {name}"
    return _short(value) + {"s": " s", "ops": " /s", "reqps": " /s"}.get(unit, "")


BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def _short(value):
    if abs(value) >= 10_000:
        return f"{value / 1000:.4g} K"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def ticks(low, high, count=4, base=10):
    """Round values between two others, and beyond them where that takes them in."""
    if high - low < 1e-12:
        low, high = min(0.0, low), max(high, low + 1.0)
    rough = (high - low) / count
    scale = float(base) ** math.floor(math.log(rough, base))
    round_ones = (1, 2, 2.5, 5, 10) if base == 10 else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, base)
    step = next(scale * one for one in round_ones if scale * one >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def named(template, labels):
    """The legend of a series; without a template, its labels."""
    if not template:
        return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "value"
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), template).strip()


def text(x, y, said, *, size=12, colour=INK, anchor="start", weight=400):
    """One line of text."""
    about = f'x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}"'
    about += f' text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {about}>{saxutils.escape(said)}</text>"


def page(dashboard, found, start, end):
    """A whole dashboard; `found` holds the series of each panel by its number."""
    panels = dashboard["panels"]
    height = HEAD + ROW * max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels)
    parts = [text(GAP + 4, 28, dashboard["title"], size=18, weight=600)]
    for one in panels:
        x, y, width, high = place(one["gridPos"])
        if one["type"] == "row":
            parts.append(text(x + 4, y + 20, one["title"], size=14, colour=SOFT, weight=600))
            continue
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{high:.0f}"'
            f' rx="3" fill="{PANEL}" stroke="{LINE}"/>'
        )
        parts.append(text(x + 10, y + 19, fitted(one["title"], width), size=13, weight=600))
        draw = {"stat": stat, "timeseries": timeseries, "heatmap": heatmap}[one["type"]]
        parts += draw(one, found[one["id"]], (x, y, width, high), (start, end))
    size = f'width="{WIDTH}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}">'
    about = f"<title>{saxutils.escape(dashboard['title'])}</title>"
    ground = f'<rect {size} fill="{PAGE}"/>'
    group = '<g font-family="system-ui, DejaVu Sans, sans-serif">'
    return "\n".join((opening, about, ground, group, *parts, "</g>", "</svg>", ""))


def fitted(title, width):
    """A title that ends before its panel does."""
    most = int((width - 20) / TITLE_LETTER)
    return title if len(title) <= most else f"{title[: most - 1]}…"


def place(grid):
    """Where a panel lies: left, top, width, height."""
    column = (WIDTH - GAP) / COLUMNS
    return (
        GAP + grid["x"] * column,
        HEAD + grid["y"] * ROW,
        grid["w"] * column - GAP,
        grid["h"] * ROW - GAP,
    )


def _unit(panel):
    return panel["fieldConfig"]["defaults"].get("unit", "short")


def stat(panel, series, area, _):
    """The last value, coloured by the thresholds."""
    x, y, width, height = area
    middle = (x + width / 2, y + height / 2 + 22)
    if not series:
        return [text(*middle, "No data", size=16, colour=SOFT, anchor="middle")]
    value = series[0][1][-1][1]
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", ())
    tone = "green"
    for step in steps:
        if step["value"] is None or value >= step["value"]:
            tone = step["color"]
    said = figure(value, _unit(panel))
    return [text(*middle, said, size=30, colour=TONES[tone], anchor="middle", weight=600)]


def timeseries(panel, series, area, span):
    """Lines over time, with axes and a legend."""
    x, y, width, height = area
    rows = legend_rows([name for name, _ in series], width - 20)
    values = [value for _, points in series for _, value in points]
    if not values:
        middle = (x + width / 2, y + height / 2 + 6)
        return [text(*middle, "No data", size=16, colour=SOFT, anchor="middle")]
    marks = ticks(min(0.0, *values), max(values), base=1024 if _unit(panel) == "bytes" else 10)
    left, right = x + 62, x + width - 14
    top, bottom = y + 34, y + height - 24 - 17 * len(rows)

    def across(moment):
        return left + (right - left) * (moment - span[0]) / (span[1] - span[0])

    def down(value):
        return bottom - (bottom - top) * (value - marks[0]) / (marks[-1] - marks[0])

    parts = []
    for mark in marks:
        at = down(mark)
        parts.append(f'<path d="M{left:.0f} {at:.1f}H{right:.0f}" stroke="{LINE}"/>')
        said = figure(mark, _unit(panel))
        parts.append(text(left - 6, at + 4, said, size=11, colour=SOFT, anchor="end"))
    for moment in times(*span):
        said = datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%H:%M")
        parts.append(text(across(moment), bottom + 16, said, size=11, colour=SOFT, anchor="middle"))
    for number, (_, points) in enumerate(series):
        placed = [(across(moment), down(value)) for moment, value in points]
        parts.append(
            f'<path d="{strokes(placed)}" fill="none" stroke="{COLOURS[number % len(COLOURS)]}"'
            ' stroke-width="1.5" stroke-linecap="round"/>'
        )
    return parts + legend(rows, x + 10, y + height - 17 * len(rows))


def heatmap(_, series, area, span):
    """Cells over time, a row for each series; the higher a value, the stronger its colour."""
    x, y, width, height = area
    most = max((value for _, points in series for _, value in points), default=0.0)
    if not most:
        return [text(x + width / 2, y + height / 2 + 6, "No data", size=16, colour=SOFT,
                     anchor="middle")]  # fmt: skip
    left, right, top, bottom = x + 82, x + width - 14, y + 34, y + height - 24
    high = (bottom - top) / len(series)
    moments = sorted({moment for _, points in series for moment, _ in points})
    wide = (right - left) / max(len(moments), 1)
    parts = []
    for number, (name, points) in enumerate(series):
        low = bottom - number * high
        parts.append(text(left - 6, low - high / 2 + 4, name, size=10, colour=SOFT, anchor="end"))
        for moment, value in points:
            if value:
                at = left + moments.index(moment) * wide
                parts.append(
                    f'<rect x="{at:.1f}" y="{low - high:.1f}" width="{wide:.1f}"'
                    f' height="{high - 1:.1f}" fill="{COLOURS[0]}"'
                    f' fill-opacity="{0.15 + 0.85 * value / most:.2f}"/>'
                )
    for moment in times(*span):
        said = datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%H:%M")
        at = left + (right - left) * (moment - span[0]) / (span[1] - span[0])
        parts.append(text(at, bottom + 16, said, size=11, colour=SOFT, anchor="middle"))
    return parts


def strokes(placed):
    """The path of a line, which ends where points are missing and begins anew after them."""
    steps = [later[0] - one[0] for one, later in itertools.pairwise(placed)]
    usual = min(steps, default=0.0)
    path = ""
    for at, (x, y) in enumerate(placed):
        begins = at == 0 or steps[at - 1] > 1.5 * usual
        path += f"{'M' if begins else 'L'}{x:.0f} {y:.1f}"
        # A point of its own is seen by the round ends of a line without length.
        if begins and (at + 1 == len(placed) or steps[at] > 1.5 * usual):
            path += "h0"
    return path


def times(start, end):
    """Whole minutes at even distances, four or five of them."""
    step = max(60, math.ceil((end - start) / 5 / 60) * 60)
    first = math.ceil(start / step) * step
    return range(int(first), int(end) + 1, step)


def legend_rows(names, width, most=3):
    """Names in rows of what fits; what fits nowhere is counted."""
    rows, used = [[]], 0.0
    for number, name in enumerate(names):
        long = 22 + LETTER * len(name)
        if rows[-1] and used + long > width:
            if len(rows) == most:
                rows[-1][-1] = (None, f"and {len(names) - number + 1} more")
                return rows
            rows.append([])
            used = 0.0
        rows[-1].append((number, name))
        used += long
    return rows


def legend(rows, x, y):
    """The rows of a legend."""
    parts = []
    for number, row in enumerate(rows):
        at, line = x, y + 17 * number + 8
        for colour, name in row:
            if colour is not None:
                tone = COLOURS[colour % len(COLOURS)]
                parts.append(
                    f'<path d="M{at:.0f} {line - 4:.0f}h12" stroke="{tone}" stroke-width="3"/>'
                )
            parts.append(text(at + 16, line, name, size=11, colour=SOFT))
            at += 22 + LETTER * len(name)
    return parts
