"""docs/descheduler-configuration.md lists every field with its default; its example can be used.

`python -m tests.descheduler.configuration.test_configuration_page` writes the tables anew.
"""

import pathlib
import re
import typing

import pytest
import yaml

from descheduler import registry
from descheduler.configuration import document, head
from descheduler.configuration.arguments import evictor, models
from process.configuration import fields
from tests.domain.scheduler_settings import test_arguments_page

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "descheduler-configuration.md"
EXAMPLE = ROOT / "deploy" / "examples" / "koord-descheduler-config.yaml"
PARTS = {"The file": head.Head, **models.MODELS}


def table(model):
    """Return one table of the page."""
    defaults = model.model_construct().model_dump(mode="json", by_alias=True, exclude_none=True)
    rows = [
        f"| `{one.path}` | {test_arguments_page.default(one, defaults)} | {one.description} |"
        for one in fields.describe(model)
    ]
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def sections():
    """Yield every title with the table below it."""
    for title, model in PARTS.items():
        yield title, f"### {title}\n\n{table(model)}\n"


def test_every_field_is_listed_with_its_default():
    page = PAGE.read_text()
    assert [title for title, text in sections() if text not in page] == []
    assert re.findall(r"^### (.+)$", page, re.MULTILINE) == list(PARTS)


@pytest.mark.parametrize("kind", [evictor.Extra, evictor.Default], ids=["off", "on"])
def test_every_protection_of_pods_is_explained(kind):
    assert [name for name in typing.get_args(kind) if f"`{name}`" not in PAGE.read_text()] == []


def test_the_example_is_what_the_page_shows_and_makes_profiles():
    text = EXAMPLE.read_text()
    assert text in PAGE.read_text()
    (written,) = yaml.safe_load(text)["data"].values()
    reading = document.read(written)
    assert (reading.faults, reading.warnings) == ((), ())
    made = [registry.made(one) for one in reading.configuration.profiles]
    assert [one.name for one in made] == ["hot-spots", "failed-pods"]


def rewrite():
    """Write the tables of the page anew."""
    page = PAGE.read_text()
    head_of_page = page[: page.index("### ")]
    PAGE.write_text(head_of_page + "\n".join(text for _, text in sections()))


if __name__ == "__main__":
    rewrite()
