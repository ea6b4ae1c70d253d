"""Formats of answers by kubectl's names: a table for people, documents for programs."""

from typing import Any, Final

import yaml

from cli.output import json_path, terminal

TABLES: Final = ("text", "table", "wide")
DOCUMENTS: Final = ("json", "yaml", "name")
JSON_PATH: Final = "jsonpath="
METAVAR: Final = "table|wide|json|yaml|name|jsonpath=..."


def read(text: str) -> str:
    """Return the format that is asked for; ValueError when there is none of this name."""
    if text.startswith(JSON_PATH):
        json_path.parse(text.removeprefix(JSON_PATH))
        return text
    if text not in TABLES + DOCUMENTS:
        raise ValueError(f"{text}: there is no such format; write one of {METAVAR}")
    # What `text` was called in some commands.
    return "text" if text == "table" else text


def is_document(output: str) -> bool:
    """Whether a program reads the answer."""
    return output in DOCUMENTS or output.startswith(JSON_PATH)


def show(output: str, body: Any) -> None:
    """Print an answer as a document of the format that is asked for."""
    if output.startswith(JSON_PATH):
        terminal.written(json_path.found(json_path.parse(output.removeprefix(JSON_PATH)), body))
    elif output == "yaml":
        terminal.page(yaml.safe_dump(body, sort_keys=False, allow_unicode=False))
    elif output == "name":
        found = names(body)
        terminal.lines(found)
        if not found:
            terminal.warn("note: nothing in this answer has a name; -o json shows it")
    else:
        terminal.document(body)


def names(body: Any) -> list[str]:
    """Return the names of the objects of an answer, namespace/name where both are known."""
    if isinstance(body, dict):
        name = body.get("name")
        if isinstance(name, str):
            namespace = body.get("namespace")
            return [f"{namespace}/{name}" if namespace else name]
        return [one for inner in body.values() for one in names(inner)]
    return [one for inner in body for one in names(inner)] if isinstance(body, list | tuple) else []
