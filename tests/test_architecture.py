"""The shape of the project: sizes, names, purity, and import contracts that really bite."""

import ast
import copy
import functools
import importlib.metadata
import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import grimp
import importlinter
import pytest
from importlinter import configuration
from importlinter.contracts import forbidden, independence, layers

ROOT = pathlib.Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: tuple[str, ...] = tuple(PROJECT["tool"]["importlinter"]["root_packages"])
CONTRACTS: list[dict[str, Any]] = PROJECT["tool"]["importlinter"]["contracts"]
PURE: tuple[str, ...] = tuple(
    next(c for c in CONTRACTS if c["name"] == "Decisions do no I/O and read no clock")[
        "source_modules"
    ]
)

MAX_FILE, MAX_FUNCTION, MAX_CLASS, MAX_PARAMETERS = 400, 50, 250, 6
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "core", "base_utils"}
OURS = "koord"

# Roots of eternal tasks that log a traceback and back off in a function of their own, and the one
# place that makes the error of a strategy a value, which the tick logs and counts.
ETERNAL_ROOTS = {
    "kube/controllers/controller.py",
    "agent/decide/isolation.py",
    "agent/hooks/lifecycle/adjustment.py",
    "descheduler/framework/planning/isolation.py",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
LOOKED_AT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)


def modules(*roots: str) -> Iterator[pathlib.Path]:
    """Yield the Python files of packages, modules (dotted) or folders."""
    for root in roots:
        place = ROOT / root.replace(".", "/")
        if place.is_dir():
            yield from sorted(place.rglob("*.py"))
        elif place.with_suffix(".py").exists():
            yield place.with_suffix(".py")


SOURCES = tuple(modules(*PACKAGES))


@functools.cache
def trees() -> dict[pathlib.Path, ast.Module]:
    """Parse every source once, and not before a test asks: each worker collects this file."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES}


def where(file: pathlib.Path, node: ast.AST | None = None) -> str:
    """Name a place the way editors open it."""
    line = f":{getattr(node, 'lineno', 1)}" if node is not None else ""
    return f"{file.relative_to(ROOT)}{line}"


def each(*kinds: type[ast.AST]) -> Iterator[tuple[pathlib.Path, Any]]:
    """Yield every node of some kinds in every source file."""
    assert set(kinds) <= set(LOOKED_AT)
    return ((file, node) for file, node in _looked_at() if isinstance(node, kinds))


@functools.cache
def _looked_at() -> tuple[tuple[pathlib.Path, ast.AST], ...]:
    """Walk once through everything that several tests look at."""
    return tuple(
        (file, node)
        for file, tree in trees().items()
        for node in _statements(tree)
        if isinstance(node, LOOKED_AT)
    )


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements and handlers; to walk through expressions as well takes a second."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for part in BODIES:
            left += getattr(node, part, ())


def lines_of(node: Any) -> int:
    """Count the lines of a definition, decorators not included."""
    return int(node.end_lineno - node.lineno + 1)


def parameters_of(node: Function) -> int:
    """Count what a caller has to know; self and cls come by themselves."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_files_are_short() -> None:
    files = (*SOURCES, *modules("tests", "benchmarks", "deploy"))
    sizes = {where(file): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: size for name, size in sizes.items() if size > MAX_FILE} == {}


def test_functions_are_short() -> None:
    found = each(ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{where(f, n)} {n.name}: {lines_of(n)}" for f, n in found if lines_of(n) > MAX_FUNCTION
    ]
    assert long == []


def test_functions_take_few_parameters() -> None:
    found = each(ast.FunctionDef, ast.AsyncFunctionDef)
    wide = [
        f"{where(file, node)} {node.name}: {parameters_of(node)}"
        for file, node in found
        if parameters_of(node) > MAX_PARAMETERS
    ]
    assert wide == []


def test_classes_are_short() -> None:
    found = each(ast.ClassDef)
    long = [f"{where(f, n)} {n.name}: {lines_of(n)}" for f, n in found if lines_of(n) > MAX_CLASS]
    assert long == []


def test_no_module_is_a_drawer() -> None:
    names = {
        where(file) for file in SOURCES if {file.stem, file.parent.name} & (DRAWERS - {"core"})
    }
    assert names == set()


def _is_dataclass(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target) in ("dataclass", "dataclasses.dataclass")


def test_dataclasses_of_pure_modules_are_frozen_with_slots() -> None:
    loose = []
    pure = set(modules(*PURE))
    assert pure
    for file, node in each(ast.ClassDef):
        for decorator in node.decorator_list if file in pure else ():
            if not _is_dataclass(decorator):
                continue
            given = {
                keyword.arg: ast.unparse(keyword.value)
                for keyword in (decorator.keywords if isinstance(decorator, ast.Call) else ())
            }
            if given.get("frozen") != "True" or given.get("slots") != "True":
                loose.append(f"{where(file, node)} {node.name}")
    assert loose == []


def test_structs_of_pure_modules_are_frozen() -> None:
    pure = set(modules(*PURE))
    loose = [
        f"{where(file, node)} {node.name}"
        for file, node in each(ast.ClassDef)
        if file in pure
        and not node.name.startswith("_")
        and any(ast.unparse(base) == "msgspec.Struct" for base in node.bases)
        and not any(k.arg == "frozen" and ast.unparse(k.value) == "True" for k in node.keywords)
    ]
    assert loose == []


def test_package_docstrings_are_one_short_page() -> None:
    wrong = []
    for file, tree in trees().items():
        if file.name == "__init__.py":
            text = ast.get_docstring(tree)
            if not text or len(text.splitlines()) > 10:
                wrong.append(where(file))
    assert wrong == []


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {file.parent for file in SOURCES}
    assert {where(folder) for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_package_names_clash_with_no_installed_distribution() -> None:
    installed = importlib.metadata.packages_distributions()
    clashes = {
        name: owners for name in PACKAGES if (owners := set(installed.get(name, ())) - {OURS})
    }
    assert clashes == {}
    assert not set(PACKAGES) & set(sys.stdlib_module_names)


def _names_root_settings(tree: ast.AST, process: str) -> Iterator[ast.AST]:
    """Yield where a module touches the root model of its process."""
    aliases = set()
    for node in _statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module == f"{process}.settings":
            yield from (alias for alias in node.names if alias.name == "Settings")
        elif isinstance(node, ast.ImportFrom) and node.module == process:
            aliases |= {a.asname or a.name for a in node.names if a.name == "settings"}
    for node in ast.walk(tree) if aliases else ():
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == "Settings" else None
        if isinstance(owner, ast.Name) and owner.id in aliases:
            yield node


def test_root_settings_are_seen_by_composition_roots_only() -> None:
    allowed = {"app.py", "parts.py", "registry.py", "gated_parts.py", "__main__.py"}
    processes = ("extender", "webhook", "manager", "descheduler", "agent", "runtimeproxy")
    wrong = [
        where(file, node)
        for process in processes
        for file in modules(process)
        if file.name not in allowed
        for node in _names_root_settings(trees()[file], process)
    ]
    assert wrong == []


def test_broad_handlers_stand_at_roots_only() -> None:
    wrong = []
    for file, node in each(ast.ExceptHandler):
        kinds = "" if node.type is None else ast.unparse(node.type)
        broad = node.type is None or re.search(r"\b(Exception|BaseException)\b", kinds)
        if not broad:
            continue
        raises = any(isinstance(inner, ast.Raise) and not inner.exc for inner in ast.walk(node))
        logs = any(
            isinstance(inner, ast.Attribute) and inner.attr == "exception"
            for inner in ast.walk(node)
        )
        if not raises and not logs and where(file) not in ETERNAL_ROOTS:
            wrong.append(where(file, node))
    assert wrong == []


def test_nothing_is_left_for_later() -> None:
    marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error")))
    wrong = [
        f"{where(file)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert wrong == []


def test_typing_is_strict_and_whole() -> None:
    mypy = PROJECT["tool"]["mypy"]
    assert mypy["strict"] is True
    assert set(mypy["packages"]) == set(PACKAGES)
    for override in mypy.get("overrides", ()):
        assert not {"disallow_untyped_defs", "ignore_errors", "strict"} & set(override)
        assert not {name.partition(".")[0] for name in override["module"]} & set(PACKAGES)


def test_every_package_is_shipped_linted_and_measured() -> None:
    tool = PROJECT["tool"]
    kept_here = {name.rstrip("*") for name in tool["setuptools"]["packages"]["find"]["exclude"]}
    folders = {file.parent.name for file in ROOT.glob("*/__init__.py")} - kept_here
    assert folders == set(PACKAGES)
    assert {
        name.rstrip("*") for name in tool["setuptools"]["packages"]["find"]["include"]
    } == folders
    assert set(tool["coverage"]["run"]["source"]) == folders


# --- import contracts -------------------------------------------------------------------------


KINDS: dict[str, type[importlinter.Contract]] = {
    "forbidden": forbidden.ForbiddenContract,
    "independence": independence.IndependenceContract,
    "layers": layers.LayersContract,
}
SESSION: dict[str, Any] = PROJECT["tool"]["importlinter"]


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom, read from the sources once for all contracts."""
    configuration.configure()
    external = SESSION["include_external_packages"]
    return grimp.build_graph(*PACKAGES, include_external_packages=external, cache_dir=None)


def _holds(contract: dict[str, Any], graph: grimp.ImportGraph) -> bool:
    """Check a contract as `lint-imports` does; it may change the graph that it is given."""
    # Its own reader hands truth values on as text.
    options = {key: str(v) if isinstance(v, bool) else v for key, v in contract.items()}
    made = KINDS[contract["type"]](contract["name"], SESSION, options)
    return made.check(copy.deepcopy(graph), verbose=False).kept


def _violation(contract: dict[str, Any]) -> tuple[str, str]:
    """Return who must not import whom, read from the contract itself."""
    if contract["type"] == "forbidden":
        return contract["source_modules"][-1], contract["forbidden_modules"][-1]
    if contract["type"] == "independence":
        first, *others = contract["modules"]
        if others and not first.endswith(".*"):
            return first, others[0]
        base = first.removesuffix(".*")
        return f"{base}.planted_first", f"{base}.planted_second"
    parts = [[part.strip(" ()") for part in layer.split("|")] for layer in contract["layers"]]
    inside = [f"{container}." for container in contract.get("containers", ())] or [""]
    return f"{inside[0]}{parts[-1][-1]}", f"{inside[0]}{parts[0][0]}"


def _plant(graph: grimp.ImportGraph, importer: str, imported: str) -> grimp.ImportGraph:
    """Return the graph with one more import, from a new module where the importer is a package."""
    planted = copy.deepcopy(graph)
    if importer in planted.modules and planted.find_children(importer):
        importer = f"{importer}.planted"
    for module in {importer, imported} - planted.modules:
        ours = module.partition(".")[0] in PACKAGES
        planted.add_module(module, is_squashed=not ours)
    planted.add_import(importer=importer, imported=imported)
    return planted


BY_NAME = {contract["name"]: contract for contract in CONTRACTS}


@pytest.mark.parametrize("name", BY_NAME)
def test_import_contracts_hold(imports: grimp.ImportGraph, name: str) -> None:
    assert _holds(BY_NAME[name], imports)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_contract_is_broken_by_a_planted_import(imports: grimp.ImportGraph, name: str) -> None:
    planted = _plant(imports, *_violation(BY_NAME[name]))
    assert not _holds(BY_NAME[name], planted)


# --- image ------------------------------------------------------------------------------------


def test_image_holds_every_package_and_runs_as_nobody() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    # Everything that the context holds is copied, and the context holds what is let through.
    assert re.search(r"^COPY \. \.$", text, re.MULTILINE)
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    assert {name for name in allowed if (ROOT / name).is_dir()} == set(PACKAGES)
    assert re.search(r"^USER \d+:\d+$", text, re.MULTILINE)
    assert 'ENTRYPOINT ["koord"]' in text
    joined = text.replace("\\\n", " ")
    installs = re.findall(r"pip (?:--python \S+ )?install ([^&\n]*)", joined)
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
