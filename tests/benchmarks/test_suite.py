"""What `make bench` runs exists, and what is asked for by a wrong name is refused."""

import importlib
import pathlib
import re

import pytest

from agent import settings
from benchmarks import __main__ as suite
from benchmarks import imports, steps
from benchmarks.node import agent
from benchmarks.quota_churn import programs
from benchmarks.scheduling import variants
from cli import main as command_line
from process.configuration import settings as process_settings


def test_names_are_unique():
    names = [each for step in steps.STEPS for each in (step.name, *step.figures)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["stalls"], ["stalls"], id="by step"),
        pytest.param(["F11"], ["stalls"], id="by figure"),
        pytest.param(["K", "writes"], ["koord-scheduler", "writes"], id="in the order of the list"),
        pytest.param(["F1.shared", "F1.busy"], ["throughput-shared"], id="once for two figures"),
        pytest.param([], [step.name for step in steps.STEPS], id="all"),
    ],
)
def test_steps_are_chosen_by_name_or_figure(names, expected):
    assert [step.name for step in steps.chosen(names)] == expected


def test_arguments_name_variants_that_exist():
    known = {"quota_churn.churn": set(programs.VARIANTS)}
    for step in steps.STEPS:
        words = (*step.quick, *step.full)
        asked = [word.partition("=")[2] for word in words if word.startswith("--variants=")]
        names = {name for text in asked for name in text.split(",")}
        assert names <= known.get(step.module, set(variants.VARIANTS)), step.name


@pytest.mark.parametrize("module", sorted({step.module for step in steps.STEPS}))
def test_every_step_is_a_module_with_an_entry(module):
    assert callable(importlib.import_module(f"benchmarks.{module}").main)


def test_an_unknown_name_is_refused_with_those_that_exist(capsys):
    with pytest.raises(SystemExit):
        suite.main(["nonsense"])
    assert "unknown: nonsense; known are throughput," in capsys.readouterr().err


def test_what_follows_two_dashes_is_given_to_the_benchmark(capfd, tmp_path):
    with pytest.raises(SystemExit):
        suite.main(["stalls", f"--lines={tmp_path / 'lines'}", "--", "--seconds=1", "--nonsense"])
    assert "unrecognized arguments: --nonsense" in capfd.readouterr().err


def test_the_agent_is_measured_with_the_settings_of_the_chart(tmp_path):
    (word,) = agent.words_of(agent.CHART, tmp_path)
    loaded = process_settings.load(
        settings.Settings,
        file=pathlib.Path(word.removeprefix("--config=")),
        environ={},
        prefix="NONE",
        flags=("--node-name=n",),
    )
    enforced = {name for name, mode in loaded.strategies.modes.items() if str(mode) == "enforce"}
    assert "cpu-suppress" in enforced
    assert enforced == set(agent.chart_settings()["strategies"]["modes"])


def test_the_imports_of_every_process_are_measured():
    assert set(imports.PROCESSES) - {"interpreter", "command-line"} == set(command_line.PROCESSES)
    for name, modules in imports.PROCESSES.items():
        package = command_line.PACKAGES.get(name, name)
        assert name in ("interpreter", "command-line") or f"{package}.app" in modules


def test_figures_are_numbered_as_the_page_says():
    """The agent is F7 and quota F9, on the page and in what the benchmarks print."""
    root = pathlib.Path(suite.__file__).parent
    for name in ("agent", "day", "beside_peers"):
        text = (root / "node" / f"{name}.py").read_text()
        assert "F7" in text
        assert "F9" not in text
    page = (root.parent / "docs" / "performance.md").read_text()
    assert "F9" not in page
    assert {"F1.busy", "F7.cpu", "F7.rss", "F8", "F12.writes"} <= set(
        re.findall(r"F\d+[.\w]*", page)
    )
