"""A report of sentences, tables and charts as HTML, Markdown or CSV. Pure.

The HTML is one file that loads nothing. What people named is escaped in every format.
"""

import csv
import dataclasses
import html
import io
from collections.abc import Iterator, Sequence
from typing import Final

from cli.output import charts, svg_charts

FORMATS: Final = ("html", "markdown", "csv")
_CSS: Final = """
body { font-family: sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .7rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
svg { max-width: 100%; height: auto; }
"""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""With what a spreadsheet takes a cell for a formula."""


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column names the row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What is written."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    drawings: tuple[charts.Chart, ...] = ()
    """Only HTML shows them."""
    notes: tuple[str, ...] = ()


def written(report: Report, kind: str) -> str:
    """Return a report in one of the formats."""
    match kind:
        case "html":
            return "\n".join(_html(report)) + "\n"
        case "csv":
            return _csv(report)
        case _:
            return "\n".join(_markdown(report)) + "\n"


def _html(report: Report) -> Iterator[str]:
    title = html.escape(report.title)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f"<title>{title}</title><style>{_CSS}</style></head><body><h1>{title}</h1>"
    yield from (f"<p>{html.escape(one)}</p>" for one in report.sentences)
    yield from map(svg_charts.drawn, report.drawings)
    for table in report.tables:
        yield f"<h2>{html.escape(table.title)}</h2><table><thead>{_row('th', table.head)}</thead>"
        yield "<tbody>"
        yield from (_row("td", row) for row in table.rows)
        yield "</tbody></table>"
    if report.notes:
        yield "<h2>Notes</h2><ul>"
        yield from (f"<li>{html.escape(note)}</li>" for note in report.notes)
        yield "</ul>"
    yield "</body></html>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(one)}</{tag}>" for one in cells) + "</tr>"


def _markdown(report: Report) -> Iterator[str]:
    yield f"# {_marked(report.title)}"
    for one in report.sentences:
        yield ""
        yield _marked(one)
    for table in report.tables:
        yield from ("", f"## {_marked(table.title)}", "", _line(table.head))
        yield _line(("---", *("---:" for _ in table.head[1:])))
        yield from (_line(tuple(map(_marked, row))) for row in table.rows)
    if report.notes:
        yield from ("", "## Notes", "")
        yield from (f"- {_marked(note)}" for note in report.notes)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _marked(text: str) -> str:
    """Return a text in which nothing is markup."""
    said = " ".join(text.split())
    for one in ("\\", "|", "`", "*", "[", "]", "<"):
        said = said.replace(one, f"\\{one}")
    return said


def _csv(report: Report) -> str:
    """Return the tables one after another, each with its title in the first column."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    for table in report.tables:
        sheet.writerow(("table", *table.head))
        for row in table.rows:
            sheet.writerow((table.title, *map(_plain, row)))
    return out.getvalue()


def _plain(text: str) -> str:
    """Return a cell that no spreadsheet calculates; negative numbers stay numbers."""
    if not text.startswith(_FORMULA) or _is_number(text):
        return text
    return f"'{text}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
