"""YAML with comments reads back as what was written."""

import hypothesis
import pytest
import yaml
from hypothesis import strategies

from cli.install import commented_yaml

PRINTABLE = strategies.text(
    # Control characters: the YAML library itself reads a quoted line break of C1 as a space.
    strategies.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc"])
    | strategies.just("\n")
)
SCALARS = (
    strategies.none()
    | strategies.booleans()
    | strategies.integers(-(10**9), 10**9)
    | PRINTABLE
    | strategies.sampled_from(["...", "abc...", "null", "0x1", "- a", "# no", "a: b", " x ", "~"])
)
KEYS = strategies.text("abcXYZ/.-_0", min_size=1)
VALUES = strategies.recursive(
    SCALARS,
    lambda inner: (
        strategies.lists(inner, max_size=4) | strategies.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def paths(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else []
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, below in inner:
        yield from paths(below, (*path, key))


@hypothesis.given(strategies.dictionaries(KEYS, VALUES, min_size=1, max_size=5))
def test_every_document_reads_back_with_a_comment_everywhere(document):
    comments = dict.fromkeys(paths(document), "because\nit is so")
    assert yaml.safe_load(commented_yaml.text(document, comments)) == document


@pytest.mark.parametrize(
    ("document", "comments", "expected"),
    [
        pytest.param({"a": 1}, {("a",): "why"}, "# why\na: 1\n", id="above a key"),
        pytest.param(
            {"a": [{"x": 1, "y": {"z": 2}}]},
            {("a", 0, "x"): "first", ("a", 0, "y", "z"): "deep"},
            "a:\n  # first\n- x: 1\n  y:\n    # deep\n    z: 2\n",
            id="in a list",
        ),
        pytest.param({"a": [{"n": "x", "w": 2}]}, {}, "a:\n- {n: x, w: 2}\n", id="short entries"),
        pytest.param({"a": []}, {(): "empty"}, "# empty\na: []\n", id="head"),
    ],
)
def test_a_comment_stands_where_it_belongs(document, comments, expected):
    assert commented_yaml.text(document, comments) == expected


def test_long_comments_are_wrapped():
    lines = commented_yaml.text({"a": 1}, {("a",): "word " * 60}).splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 100 for line in lines)
