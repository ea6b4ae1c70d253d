"""Programs that tests hold as text, and start as processes of their own, import what there is."""

import ast
import importlib
import pathlib
import re

QUOTES = '"""'
TESTS = pathlib.Path(__file__).parent
OF_OURS = r"from (?:agent|api|cli|domain|extender|kube|manager|process|webhook)"
OURS = re.compile(rf"^{OF_OURS}\S* ", re.M)
# At the start of a line of a text that is written in one line.
ESCAPED = re.compile(rf"(?:[\"']|\\n){OF_OURS}")


def programs():
    """Yield every text in a test that imports modules of ours, with its file and line."""
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text()
        if not OURS.search(source) or not _may_hold_programs(source):
            continue
        for node in ast.walk(ast.parse(source)):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and "\n" in text and OURS.search(text):
                yield f"{path.relative_to(TESTS)}:{node.lineno}", text


def _may_hold_programs(source):
    """Tell whether a text of several lines may import ours; to parse all tests takes two seconds.

    Formatted sources write such texts between three double quotes, or with escaped line ends.
    """
    if "'''" in source or source.count(QUOTES) % 2 or ESCAPED.search(source):
        return True
    return any(OURS.search(f"\n{text}") for text in source.split(QUOTES)[1::2])


def missing(text):
    """Yield the modules and names that a program imports and that there are not."""
    for line in filter(OURS.match, text.splitlines()):
        (statement,) = ast.parse(line).body
        for alias in statement.names:
            try:
                if not hasattr(importlib.import_module(statement.module), alias.name):
                    importlib.import_module(f"{statement.module}.{alias.name}")
            except ModuleNotFoundError as error:
                yield str(error)


def test_what_programs_import_exists():
    # One test for all of them: to find them takes seconds, which each worker would spend.
    found = {place: list(missing(text)) for place, text in programs()}
    assert len(found) > 5
    assert {place: names for place, names in found.items() if names} == {}
