"""What `make bench` runs exists, and what is asked for by a wrong name is refused."""

import importlib

import pytest

from benchmarks import __main__ as suite


def test_names_are_unique():
    names = [step.name for step in suite.STEPS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", sorted({step.module for step in suite.STEPS}))
def test_every_step_is_a_module_with_an_entry(module):
    assert callable(importlib.import_module(f"benchmarks.{module}").main)


def test_an_unknown_name_is_refused_with_those_that_exist(capsys):
    with pytest.raises(SystemExit):
        suite.main(["nonsense"])
    assert "unknown: nonsense; known are throughput," in capsys.readouterr().err
