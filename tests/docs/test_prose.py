"""Pages are readable: short sentences, little table, links that lead."""

import pathlib
import re
import statistics
import xml.etree.ElementTree

import pytest
import yaml

from api.koordinator.metadata import qos

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
MANUAL = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "contributing")
MOST_WORDS = 18
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def listed(part):
    """The pages of a part of the navigation."""
    match part:
        case str():
            return [part]
        case dict():
            return [page for below in part.values() for page in listed(below)]
    return [page for below in part for page in listed(below)]


SECTIONS = {title: listed(part) for entry in NAVIGATION for title, part in entry.items()}
# What readers look up in a table, and what only contributors read.
TABLES = {*SECTIONS["Reference"], *SECTIONS["Development"]}


def prose(path):
    text = CODE.sub("", path.read_text())
    lines = [line for line in text.splitlines() if not line.startswith(("#", "|", "!"))]
    return "\n".join(lines)


def sentences(path):
    text = re.sub(r"\n\s*(?=[-*\d]|\n)", ".\n", prose(path))
    parts = re.split(r"(?<=[.:;?!])\s+", text)
    return [count for part in parts if (count := len(part.split())) > 1]


def table_words(path):
    rows = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return sum(len(row.split()) for row in rows)


@pytest.mark.parametrize("page", MANUAL, ids=lambda page: str(page.relative_to(DOCS)))
def test_sentences_are_short_and_tables_are_less_than_the_text(page):
    assert statistics.median(sentences(page)) <= MOST_WORDS
    if str(page.relative_to(DOCS)) not in TABLES:
        assert table_words(page) < len(prose(page).split())


def test_logs_of_test_runs_are_not_in_the_navigation():
    pages = [page for section in SECTIONS.values() for page in section]
    assert [page for page in pages if page.startswith("contributing/")] == []
    assert [one for one in MANUAL if " PASSED" in one.read_text()] == []


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").glob("*.md")), ROOT / "README.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_to_files(page):
    links = [link for link in LINK.findall(CODE.sub("", page.read_text())) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_diagrams_say_in_words_what_they_show():
    diagrams = sorted((DOCS / "concepts").glob("*.svg"))
    assert diagrams
    for path in diagrams:
        root = xml.etree.ElementTree.fromstring(path.read_text())
        space = "{http://www.w3.org/2000/svg}"
        assert root.findtext(f"{space}title")
        assert root.findtext(f"{space}desc")


def test_the_page_of_classes_has_every_class_and_the_range_of_every_band():
    page = (DOCS / "concepts" / "qos.md").read_text()
    assert [one for one in qos.QoS if one and f"- **{one}**" not in page] == []
    for band, values in qos.RANGES.items():
        assert f"| `{band}` | {values.start} to {values.stop - 1} |" in page
