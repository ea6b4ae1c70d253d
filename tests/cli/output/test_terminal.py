"""Nothing that a tenant wrote reaches a terminal as anything but text."""

import ast
import io
import json
import pathlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich import console, table

import cli
from cli.output import cells, terminal

HOSTILE = {
    "escape": "\x1b]0;owned\x07\x1b[2J",
    "one byte escape": "\x9b2J",
    "carriage return": "fine\rERROR",
    "backspace": "abc\x08\x08",
    "delete": "a\x7f",
    "null": "a\x00b",
    "bidirectional": "\u202egnirts",
    "zero width": "a\u200bb",
    "line separator": "a\u2028ERROR",
    "half of a pair": "a\ud800b",
    "markup": "[red]x[/foo][link=http://x]y",
}


def harmless(text):
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_every_way_out_escapes(text, capsys):
    terminal.say(text)
    terminal.lines([f"a: {text}"])
    terminal.warn(text)
    terminal.ask(text)
    shown = capsys.readouterr()
    assert harmless(shown.out)
    assert harmless(shown.err)
    terminal.document({text: [text]})
    shown = capsys.readouterr()
    assert harmless(shown.out)
    assert shown.out.isascii()
    assert json.loads(shown.out) == {text: [text]}, "a program reads what was written"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_cell_is_text_and_never_markup(text):
    shown = table.Table()
    shown.add_column("x")
    shown.add_row(cells.cell(text))
    screen = console.Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    with screen.capture() as captured:
        screen.print(shown)
    assert harmless(captured.get().replace("\x1b", ""))
    assert "\x1b]" not in captured.get()
    if "[" in text and "\x1b" not in text and "\x9b" not in text:
        assert text in captured.get()


@given(some.text(some.characters(exclude_categories=())))
def test_any_text_becomes_one_printable_line(text):
    assert terminal.plain(text).isprintable()


def test_a_message_forges_no_second_line(capsys):
    terminal.say("refused: a\n     ok  everything: fine\r\nx")
    assert capsys.readouterr().out.splitlines() == [
        "refused: a",
        "         ok  everything: fine\\r",
        "    x",
    ]


def test_what_was_not_written_for_people_is_cut():
    text = terminal.plain("a" * 100_000)
    assert text.endswith("… (95904 more characters)")


@pytest.mark.parametrize(
    "body", [{"a": float("nan")}, {"a": float("inf")}, {1: {2, 3}}, {"a": object}], ids=repr
)
def test_a_document_is_json_whatever_is_in_it(body, capsys):
    terminal.document(body)
    json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_a_document_of_any_depth_is_written(capsys):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    terminal.document(deep)
    assert json.loads(capsys.readouterr().out)
    while deep:
        deep = deep.pop()


def test_a_terminal_of_another_encoding_shows_what_it_can(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    terminal.say("käse …")
    assert raw.getvalue() == b"k\\xe4se \\u2026\n"


def test_no_other_module_writes_to_a_terminal():
    root = pathlib.Path(cli.__file__).parent
    found = []
    for file in sorted(root.rglob("*.py")):
        if file.parent.name == "output":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            words = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            written = words == "print" or words.endswith((
                "stdout.write", "stderr.write", "stdout.writelines", "stderr.writelines",
            ))  # fmt: skip
            if written:
                found.append(f"{file.relative_to(root)}:{node.lineno} {words}")
    assert found == []
