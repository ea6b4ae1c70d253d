"""Who asks for a figure gets its source, and nobody else pays for it."""

import subprocess
import sys

import pytest

from agent import gates, measured, settings
from process import features, metrics

BY_GATE = {
    "PSICollector": "pressure",
    "CPICollector": "performance",
    "ColdPageCollector": "cold pages of groups",
    "ResctrlCollector": "cache use",
    "BlkIOReconcile": "volumes",
}
LOADED = """
import sys
import agent.app
from agent import measured, settings
from process import metrics
assert measured.of(settings.MeasureSettings(), (), metrics.Registry()) == ()
print(*(name for name in sys.modules if name.startswith("agent.observe.")))
"""


def names(enabled=(), **measure):
    made = measured.of(settings.MeasureSettings(**measure), enabled, metrics.Registry())
    for one in made:
        assert one.seconds >= 0
        one.close()
    return [one.name for one in made]


@pytest.mark.parametrize(("gate", "name"), BY_GATE.items())
def test_a_gate_asks_for_its_figures(gate, name):
    assert names([gate]) == [name]
    assert gate not in gates.enabled(features.Gates(gates.GATES, {}))


def test_settings_ask_for_those_without_a_gate():
    assert names() == []
    assert names(network="kubelet") == []
    assert names(disks=True, network="processes") == ["disks", "network"]


def test_nothing_is_loaded_that_nobody_asks_for():
    run = [sys.executable, "-c", LOADED]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    loaded = {name.rpartition(".")[2] for name in found}
    assert loaded.isdisjoint(
        {"pressure", "performance", "perf_event", "coldness", "generations", "damon", "resctrl"}
        | {"disks", "blockdevices", "volumes", "traffic"}
    )
