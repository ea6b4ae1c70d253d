"""docs/write-a-plugin.md builds the sample plug-in: what it shows is what stands in its files."""

import ast
import inspect
import pathlib
import re

import pytest

from extender.framework import protocols
from tests.scenarios.extender import test_sample_plugin

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
FOLDER = ROOT / "tests" / "extender" / "sample_plugin"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _shown():
    """Yield every block of Python with the file that is named before it."""
    for found in BLOCK.finditer(PAGE):
        if found[1] == "python":
            named = re.findall(r"^`(\w+\.py)`:$", PAGE[: found.start()], re.MULTILINE)
            yield named[-1], found[2]


@pytest.mark.parametrize(("file", "block"), tuple(_shown()))
def test_every_line_of_code_is_that_of_the_sample(file, block):
    assert block in (FOLDER / file).read_text(encoding="utf-8")


def test_every_method_of_the_sample_is_on_the_page():
    tree = ast.parse((FOLDER / "plugin.py").read_text(encoding="utf-8"))
    (sample,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    methods = {node.name for node in sample.body if isinstance(node, ast.FunctionDef)}
    shown = "".join(block for _, block in _shown())
    assert {name for name in methods - {"__init__"} if f"def {name}(" not in shown} == set()


def _points():
    """The extension points by name, with their methods."""
    for name, point in vars(protocols).items():
        if inspect.isclass(point) and getattr(point, "_is_protocol", False) and name != "Protocol":
            yield name, {key for key in vars(point) if not key.startswith("_")}


@pytest.mark.parametrize(("point", "methods"), tuple(_points()))
def test_every_extension_point_is_named_and_used_by_the_sample(point, methods):
    assert f"`{point}`" in PAGE
    shown = ("Inspectable", "NodePage", "ClusterPage", "PodDiagnoser", "Measured")
    if point not in (*shown, "Nominator", "Ranker", "VictimCompanions"):
        sample = test_sample_plugin.KNOWN["Slots"](None)
        assert {name for name in methods if not hasattr(sample, name)} == set()


def test_the_line_that_registers_it_is_the_one_that_its_test_adds():
    (line,) = (found[2] for found in BLOCK.finditer(PAGE) if found[1] == "text")
    source = inspect.getsource(test_sample_plugin)
    assert line in source


def test_the_sample_imports_the_framework_alone():
    allowed = ("extender.framework", "api", "domain", "tests.extender.sample_plugin")
    foreign = set()
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [
                alias.name for alias in getattr(node, "names", ()) if ast.Import is type(node)
            ]
            foreign |= {n for n in names if not any(f"{n}.".startswith(f"{a}.") for a in allowed)}
    assert foreign <= {"collections.abc", "functools", "msgspec", "numpy", "zlib"}
