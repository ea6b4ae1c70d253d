"""Who asks for a figure gets its source, and nobody else pays for it."""

import pytest

from agent import settings
from agent.assembly import feature_gates, gated_collectors
from process.configuration import features
from process.runtime import metrics

BY_GATE = {
    "PSICollector": "pressure",
    "ThrottlingCollector": "throttling",
    "CPICollector": "performance",
    "ColdPageCollector": "cold pages of groups",
    "ResctrlCollector": "cache use",
    "BlkIOReconcile": "volumes",
}


def names(enabled=(), **measure):
    made = gated_collectors.of(settings.MeasureSettings(**measure), enabled, metrics.Registry())
    for one in made:
        assert one.seconds >= 0
        one.close()
    return [one.name for one in made]


@pytest.mark.parametrize(("gate", "name"), BY_GATE.items())
def test_a_gate_asks_for_its_figures(gate, name):
    assert names([gate]) == [name]
    assert gate not in feature_gates.enabled(features.Gates(feature_gates.GATES, {}))


def test_settings_ask_for_those_without_a_gate():
    assert names() == []
    assert names(network="kubelet") == []
    assert names(disks=True, network="processes") == ["disks", "network"]
