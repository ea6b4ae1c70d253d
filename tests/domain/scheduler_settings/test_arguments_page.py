"""docs/scheduler-arguments.md lists every argument with its default, and its example can be used.

`python -m tests.domain.scheduler_settings.test_arguments_page` prints the tables.
"""

import pathlib
import re

import yaml

from api.plugin_args import models
from api.plugin_args.arguments import Arguments
from api.wire import base
from domain.scheduler_settings import documents
from process.configuration import fields

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "scheduler-arguments.md"
EXAMPLE = ROOT / "deploy" / "examples" / "koord-scheduler-config.yaml"


def default(described, effective):
    """The default of an argument as the plug-in sees it."""
    value = effective
    for name in described.path.split("."):
        value = value.get(name, "") if isinstance(value, dict) else ""
    return "" if value in ("", [], {}) else f"`{base.encoded(value).strip(chr(34))}`"


def tables():
    """Every table of the page, by plug-in."""
    for name, model in models.MODELS.items():
        effective = models.effective(model())
        rows = [
            f"| `{one.path}` | {default(one, effective)} | {one.description} |"
            for one in fields.describe(model)
        ]
        yield name, "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def test_every_argument_is_listed_with_its_default() -> None:
    page = PAGE.read_text()
    assert [name for name, table in tables() if f"### {name}\n\n{table}\n" not in page] == []
    assert set(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == set(models.MODELS)


def test_the_example_is_what_the_page_shows_and_can_be_used() -> None:
    text = EXAMPLE.read_text()
    assert text in PAGE.read_text()
    reading = documents.read(yaml.safe_load(text)["data"])
    assert (reading.faults, reading.warnings) == ((), ())
    assert reading.settings is not None
    assert set(reading.settings.arguments) == set(models.MODELS)


def test_every_field_of_a_list_has_a_text() -> None:
    inside = [one for one in Arguments.__subclasses__() if one not in models.MODELS.values()]
    assert [
        f"{one.__name__}.{entry.path}"
        for one in (*inside, *models.MODELS.values())
        for entry in fields.describe(one)
        if not entry.description
    ] == []


if __name__ == "__main__":
    for title, rows in tables():
        print(f"### {title}\n\n{rows}\n")
