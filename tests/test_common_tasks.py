"""A newcomer's test: from a task in words to the module, by the names of folders and modules alone.

ARCHITECTURE.md lists tasks of the agent with the modules that they lead to. Here a reader who knows
nothing but the words of a task looks through all paths of the agent, and has to find one of these
modules among the first few.
"""

import functools
import graphlib
import pathlib
import re
import tomllib

import grimp
import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["root_packages"]
FEWEST_TASKS = 20
FIRST_FEW = 5
MOST_MODULES = 15
ON_TOP = {"__init__", "__main__", "app", "settings"}
_PATH = re.compile(r"`([\w/]+(?:/|\.py))`")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
# Words that say nothing of a place.
_IDLE = frozenset(
    _WORD.findall(
        "a add an and another are be change for get gets happens how in is of one other say says "
        "see something the their to what when where which who with"
    )
)


def table(head: str) -> list[tuple[str, str]]:
    """Return the rows of a table of ARCHITECTURE.md with two columns."""
    lines = PAGE.partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(first, second) for first, second in cells]


TASKS = table("| task | module |")


def words(text: str) -> frozenset[str]:
    """Return the words of a text, without their endings."""
    found = {word.lower() for word in _WORD.findall(text)} - _IDLE
    return frozenset(word.rstrip("s")[:5] for word in found)


@functools.cache
def paths() -> tuple[str, ...]:
    """Return every module and folder of the agent."""
    return tuple(
        f"{place.relative_to(ROOT)}{'/' if place.is_dir() else ''}"
        for place in sorted((ROOT / "agent").rglob("*"))
        if (place.is_dir() and place.name != "__pycache__")
        or (place.suffix == ".py" and not place.name.startswith("__"))
    )


def ranked(task: str) -> list[str]:
    """Return all places by how many words of a task their names have, shorter names first."""
    asked = words(task)

    def distance(path: str) -> tuple[int, int]:
        own = words(path.removeprefix("agent/"))
        return -len(asked & own), len(own)

    return sorted(paths(), key=distance)


def test_twenty_tasks_are_listed_once_each() -> None:
    tasks = [task for task, _ in TASKS]
    assert len(set(tasks)) == len(tasks) >= FEWEST_TASKS


@pytest.mark.parametrize(("task", "modules"), TASKS, ids=[task for task, _ in TASKS])
def test_the_names_alone_lead_from_a_task_to_its_module(task: str, modules: str) -> None:
    named = _PATH.findall(modules)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
    ours = [path for path in named if path.startswith("agent/")]
    found = ranked(task)
    assert min(found.index(path) for path in ours) < FIRST_FEW, found[:FIRST_FEW]


def test_words_that_lead_nowhere_are_noticed() -> None:
    assert "agent/hooks/cpu/cpu_burst.py" in ranked("change how CPU bursts are computed")[:2]
    assert "agent/hooks/cpu/cpu_burst.py" not in ranked("drain the swamp")[:FIRST_FEW]


def test_the_page_names_every_room_of_the_agent_and_no_other() -> None:
    rooms = {
        f"agent/{path.name}/"
        for path in (ROOT / "agent").iterdir()
        if (path / "__init__.py").exists()
    }
    rows = [line for line in PAGE.splitlines() if line.startswith("| `agent/")]
    assert {path for row in rows for path in _PATH.findall(row.split("|")[1])} - {
        "agent/app.py"
    } == rooms


def test_every_folder_that_the_page_names_is_there() -> None:
    named = {path for path in _PATH.findall(PAGE) if path.partition("/")[0] in PACKAGES}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_no_module_of_the_agent_stands_outside_of_a_room() -> None:
    assert {path.stem for path in (ROOT / "agent").glob("*.py")} == ON_TOP


def test_tests_of_the_agent_mirror_its_folders() -> None:
    mirrored = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests/agent").rglob("*/")}
    folders = [path for path in mirrored if path.name != "__pycache__"]
    assert len(folders) > 15
    assert [path for path in folders if not (ROOT / path / "__init__.py").exists()] == []
    flat = {path.stem for path in (ROOT / "tests/agent").glob("test_*.py")}
    assert len(flat) <= MOST_MODULES


def test_a_folder_with_many_modules_is_split() -> None:
    counted = {
        folder.relative_to(ROOT): len([one for one in folder.glob("*.py") if one.name[0] != "_"])
        for package in (*PACKAGES, "tests", "benchmarks")
        for folder in (ROOT / package, *(ROOT / package).rglob("*/"))
    }
    # One module per command: the names of the modules are those of the commands.
    del counted[pathlib.Path("cli/commands")]
    assert {folder: count for folder, count in counted.items() if count > MOST_MODULES} == {}


def test_every_late_import_of_the_agent_says_what_memory_it_saves() -> None:
    late = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "agent").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "noqa: PLC0415" in line
    ]
    assert late
    assert [line for line in late if not re.search(r"\d [KM]iB", line)] == []


def order(graph: grimp.ImportGraph) -> graphlib.TopologicalSorter[str]:
    """Return the modules in an order in which each could be loaded after what it imports."""
    sorter = graphlib.TopologicalSorter(
        {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    )
    sorter.prepare()
    return sorter


def test_no_module_of_the_repository_imports_itself_in_a_circle() -> None:
    """Late imports and those for types count as well, and so do tests and benchmarks."""
    graph = grimp.build_graph(*PACKAGES, "benchmarks", "tests", cache_dir=None)
    assert len(graph.modules) > 2000
    assert order(graph).is_active()
    graph.add_import(importer="api.names", imported="agent.app")
    with pytest.raises(graphlib.CycleError, match=r"cycle"):
        order(graph)
