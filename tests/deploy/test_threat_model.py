"""The threat model names tests that exist."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def named():
    text = (ROOT / "docs" / "threat-model.md").read_text()
    return sorted({(path, name) for path, name in NAMED.findall(text)})


def test_tests_are_named():
    assert len(named()) > 20


@pytest.mark.parametrize(("path", "name"), named())
def test_every_named_test_is_there(path, name):
    text = (ROOT / path).read_text()
    assert not name or re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), name
