"""Cells of tables: text, never markup. Apart, since a process must not pay for a table library."""

from rich import text as texts

from cli.output import terminal


def cell(text: object, style: str = "") -> texts.Text:
    """Return a cell of a table."""
    return texts.Text(terminal.plain(text), style=style)
