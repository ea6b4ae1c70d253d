"""Programs that tests hold as text, and start as processes of their own, import what there is."""

import ast
import importlib
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
OURS = re.compile(
    r"^from ((?:agent|api|cli|domain|extender|kube|manager|process|webhook)\S*) ", re.M
)


def programs():
    """Return every text in a test that imports modules of ours, by file and line."""
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text()
        if not OURS.search(source):
            continue
        for node in ast.walk(ast.parse(source)):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and "\n" in text and OURS.search(text):
                yield pytest.param(text, id=f"{path.relative_to(TESTS)}:{node.lineno}")


@pytest.mark.parametrize("text", list(programs()))
def test_what_a_program_imports_exists(text):
    for line in text.splitlines():
        if not OURS.match(line):
            continue
        (statement,) = ast.parse(line).body
        module = importlib.import_module(statement.module)
        for alias in statement.names:
            if not hasattr(module, alias.name):
                importlib.import_module(f"{statement.module}.{alias.name}")
