"""Best effort gives way when online tasks wait."""

import dataclasses

import pytest

from agent.decide.strategies import pressure
from agent.model import state, strategy_settings

ON = strategy_settings.Pressure(enable=True)
GIB = 1 << 30


def waiting(cpu=None, memory=None, pods=()):
    return state.NodeState(at=0, pods=pods, online_pressure=state.Pressure(cpu, memory))


@pytest.mark.parametrize(
    ("cpu", "before", "after"),
    [(None, 30, 0), (45.0, 0, 10), (45.0, 95, 100), (30.0, 20, 20), (10.0, 20, 10), (0.0, 0, 0)],
    ids=["unknown", "grows", "at most all", "stays", "eases", "gone"],
)
def test_the_cut_follows_the_wait(cpu, before, after):
    assert pressure.judge(waiting(cpu), ON, before).cut_percent == after


def test_switched_off_it_asks_for_nothing():
    found = pressure.judge(waiting(90.0, 90.0), strategy_settings.Pressure(), 50)
    assert (found.cut_percent, found.task) == (0, None)


@pytest.mark.parametrize(
    ("thresholds", "cut", "expected"),
    [
        (state.Thresholds(True, 65), 0, (True, 65)),
        (state.Thresholds(True, 65), 30, (True, 35)),
        (state.Thresholds(True, 65), 80, (True, 0)),
        (state.Thresholds(False), 30, (True, 70)),
        (None, 30, (True, 70)),
        (state.Thresholds(False), 0, (False, 65)),
    ],
)
def test_suppression_is_lowered(thresholds, cut, expected):
    found = pressure.lowered(thresholds, ON, cut)
    assert (found.enable, found.cpu_suppress_percent) == expected


def test_thresholds_stay_without_the_trigger():
    assert pressure.lowered(None, ON, 0) is None
    thresholds = state.Thresholds(True, 65)
    assert pressure.lowered(thresholds, strategy_settings.Pressure(), 30) is thresholds


def test_memory_pressure_names_the_largest_of_the_lowest(placed):
    batch = dataclasses.replace(placed, quality="BE")
    pods = (
        batch("small", priority=5000, usage=state.Usage(memory=GIB)),
        batch("large", priority=5000, usage=state.Usage(memory=3 * GIB)),
        batch("higher", priority=5500, usage=state.Usage(memory=9 * GIB)),
        placed("online", usage=state.Usage(memory=9 * GIB)),
    )
    found = pressure.judge(waiting(memory=30.0, pods=pods), ON, 0).task
    assert [pod.pod.metadata.name for pod in found.victims] == ["large", "small", "higher"]
    assert "30 %" in found.reason
    assert pressure.judge(waiting(memory=19.0, pods=pods), ON, 0).task is None
