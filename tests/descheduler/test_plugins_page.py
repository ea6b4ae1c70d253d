"""docs/descheduler-plugins.md says of every plug-in what it is for; its examples can be used."""

import pathlib
import re

import pytest

from descheduler import registry
from descheduler.configuration import document, points

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "descheduler-plugins.md").read_text()
CONFIGURATION = (DOCS / "descheduler-configuration.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))
SUGGESTING = {points.DESCHEDULE, points.BALANCE}


def test_every_plug_in_that_suggests_pods_has_a_section_and_a_use():
    named = {name for name, extended in points.EXTENDED.items() if extended & SUGGESTING}
    assert SECTIONS.keys() == named
    uses = PAGE[: PAGE.index("## Even out")]
    assert {name for name in named if f"`{name}`" not in uses} == set()


@pytest.mark.parametrize("name", SECTIONS)
def test_examples_enable_the_plug_in_and_load_without_a_warning(name):
    (example,) = re.findall(r"^```yaml\n(.*?)^```", SECTIONS[name], re.M | re.S)
    reading = document.read(example)
    assert (reading.faults, reading.warnings) == ((), ())
    (profile,) = reading.configuration.profiles
    made = registry.made(profile)
    assert [one.name for one in (*made.deschedule, *made.balance)] == [name]


@pytest.mark.parametrize("name", SECTIONS)
def test_sections_lead_to_the_table_of_their_arguments(name):
    assert f"](descheduler-configuration.md#{name.lower()})" in SECTIONS[name]
    assert f"\n### {name}\n" in CONFIGURATION
