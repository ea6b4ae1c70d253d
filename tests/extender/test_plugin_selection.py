"""Settings and ConfigMap: which of the two holds, plug-in by plug-in."""

import pytest

from api.plugin_args import node
from domain.scheduler_settings import documents
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet
from extender import plugin_selection, registry, settings

LOAD = "LoadAwareScheduling"
QUOTA = "ElasticQuota"
GANGS = "Coscheduling"
DEVICES = "DeviceShare"
KEPT = "Reservation"
OWN = settings.PluginSettings(
    load_aware=settings.LoadAwareSettings(
        usage_thresholds={"cpu": 40}, node_metric_expiration_seconds=60
    )
)


def written(arguments=None, **sets):
    return documents.SchedulerSettings(arguments or {}, sets)


def enabled(*names, weight=1):
    return PluginSet(tuple(Enabled(name, weight) for name in names))


def disabled(*names):
    return PluginSet((), frozenset(names))


def test_without_a_configmap_the_settings_hold():
    found = plugin_selection.select(OWN)
    assert (
        found.at("filter")
        == found.at("reserve")
        == (*(GANGS, QUOTA, "BatchFit", LOAD, KEPT, DEVICES),)
    )
    assert found.points["score"] == (
        Enabled(GANGS, 1),
        Enabled(LOAD, 1),
        Enabled(KEPT, 1),
        Enabled(DEVICES, 1),
    )
    assert found.arguments[LOAD].usage_thresholds == {"cpu": 40}
    assert set(found.sources.values()) == {"settings"}


def test_arguments_of_the_configmap_win_as_a_whole():
    said = node.LoadAwareSchedulingArgs(usage_thresholds={"cpu": 70})
    found = plugin_selection.select(OWN, written({LOAD: said}))
    assert found.arguments[LOAD].usage_thresholds == {"cpu": 70}
    assert found.arguments[LOAD].node_metric_expiration_seconds == 180, "not that of the settings"
    assert found.sources[LOAD] == "ConfigMap koord-scheduler-config"
    assert found.sources["Reservation"] == "settings"


def test_arguments_of_one_plugin_leave_another_to_the_settings():
    said = {"Reservation": node.Arguments()}
    assert plugin_selection.select(OWN, written(said)).arguments[LOAD].usage_thresholds == {
        "cpu": 40
    }


@pytest.mark.parametrize(
    ("sets", "filters", "scorers"),
    [
        pytest.param(
            {},
            f"{GANGS} {QUOTA} BatchFit {LOAD} {KEPT} {DEVICES}",
            f"{GANGS}=1 {LOAD}=1 {KEPT}=1 {DEVICES}=1",
            id="nothing said",
        ),
        pytest.param(
            {"filter": disabled(LOAD)},
            f"{GANGS} {QUOTA} BatchFit {KEPT} {DEVICES}",
            f"{GANGS}=1 {LOAD}=1 {KEPT}=1 {DEVICES}=1",
            id="one point",
        ),
        pytest.param(
            {"multiPoint": disabled(LOAD)},
            f"{GANGS} {QUOTA} BatchFit {KEPT} {DEVICES}",
            f"{GANGS}=1 {KEPT}=1 {DEVICES}=1",
            id="everywhere",
        ),
        pytest.param(
            {"score": enabled(LOAD, weight=9)},
            f"{GANGS} {QUOTA} BatchFit {LOAD} {KEPT} {DEVICES}",
            f"{LOAD}=9 {GANGS}=1 {KEPT}=1 {DEVICES}=1",
            id="weight",
        ),
        pytest.param(
            {"filter": enabled(LOAD)},
            f"{LOAD} {GANGS} {QUOTA} BatchFit {KEPT} {DEVICES}",
            f"{GANGS}=1 {LOAD}=1 {KEPT}=1 {DEVICES}=1",
            id="order by mention",
        ),
        pytest.param(
            {"filter": enabled("NodeNUMAResource")},
            f"{GANGS} {QUOTA} BatchFit {LOAD} {KEPT} {DEVICES} NodeNUMAResource",
            f"{GANGS}=1 {LOAD}=1 {KEPT}=1 {DEVICES}=1",
            id="one more",
        ),
    ],
)
def test_sets_change_what_the_settings_enable(sets, filters, scorers):
    found = plugin_selection.select(settings.PluginSettings(), written(**sets))
    assert " ".join(found.at("filter")) == filters
    assert " ".join(f"{one.name}={one.weight}" for one in found.points["score"]) == scorers


def test_plugins_that_are_enabled_read_what_they_have_written_themselves():
    built = registry.build(plugin_selection.select(OWN))
    every = registry.every(built)
    assert len(every) == len(registry.PLUGINS) > len(built.plugins)
    codecs = registry.codecs(every)
    assert sum(one is built.plugins[DEVICES] for one in codecs) == 1
    for one in built.plugins.values():
        assert [other for other in every if other.name == one.name] == [one]


def test_a_scorer_without_a_weight_does_not_score():
    chosen = settings.PluginSettings(enabled=("LoadAwareScheduling",), weights={})
    found = plugin_selection.select(chosen)
    assert (found.points["score"], found.weight(LOAD), found.names()) == ((), 0, (LOAD,))
    again = plugin_selection.select(chosen, written(score=enabled(LOAD, weight=3)))
    assert again.weight(LOAD) == 3
