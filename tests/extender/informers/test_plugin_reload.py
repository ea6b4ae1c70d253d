"""Other arguments: calls are answered by the old ones until the new ones are complete."""

import json

import numpy as np
import pytest

from api.plugin_args import node
from domain.scheduler_settings import documents
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet
from extender import plugin_selection, registry, settings
from extender.informers.configuration import plugin_reload
from process.runtime import metrics

NODES = 60
SLICE = 20
NOW = 1782907200.0
LOAD = "LoadAwareScheduling"


def selection(cpu=None, *, off=(), **arguments):
    said = dict(arguments)
    if cpu is not None:
        said["usage_thresholds"] = {"cpu": cpu}
    found = {LOAD: node.LoadAwareSchedulingArgs(**said)} if said else {}
    sets = {"multiPoint": PluginSet((), frozenset(off))} if off else {}
    return plugin_selection.select(
        settings.PluginSettings(), documents.SchedulerSettings(found, sets)
    )


class Reloading:
    """A cluster of busy nodes: 78 % of their cpu is used, and a pod asks for one core more."""

    def __init__(self, picture, make):
        self.picture, self.make = picture, make
        self.registry = metrics.Registry()
        self.reload = plugin_reload.PluginReload(
            picture.cluster, picture.pipeline, picture.reader, picture.built, self.registry
        )
        for number in range(NODES):
            self.add(f"n{number}")
        self.pod = picture.request(make.pod("p", requests={"cpu": "1"}))
        picture.cluster.refresh()

    def add(self, name, cpu="100"):
        self.picture.add(self.make.node(name), self.make.metric(name, cpu=cpu))

    def refused(self):
        return len(self.names())

    def names(self):
        """Which nodes refuse the pod."""
        view, line = self.picture.cluster.view(), self.picture.pipeline
        rows = np.flatnonzero(view.known)
        outcome = line.filter(line.cycle(self.pod, view), view, rows, NOW)
        return {view.names[row] for row, code in zip(rows, outcome.codes, strict=True) if code}

    def take_over(self):
        while self.picture.cluster.refresh(SLICE):
            self.reload.finish()
        self.reload.finish()

    @property
    def changes(self):
        return self.registry.value("koord_extender_arguments_changes_total")


@pytest.fixture
def reloading(picture, make):
    return Reloading(picture, make)


def test_all_nodes_change_at_once_and_not_before_all_are_ready(reloading):
    assert reloading.refused() == NODES
    reloading.reload.want(selection(90))
    slices = 0
    while reloading.picture.cluster.refresh(SLICE):
        reloading.reload.finish()
        slices += 1
        assert (reloading.refused(), reloading.changes) == (NODES, 0)
    assert slices == NODES // SLICE - 1
    assert reloading.refused() == NODES, "complete, and not yet taken over"
    reloading.reload.finish()
    assert (reloading.refused(), reloading.changes) == (0, 1)
    assert reloading.reload.selection == selection(90)


def test_what_happens_meanwhile_is_judged_by_both(reloading):
    reloading.reload.want(selection(90))
    reloading.picture.cluster.refresh(SLICE)
    reloading.add("late")
    reloading.add("n0", cpu="127")
    reloading.add("n59", cpu="10")
    gone = reloading.picture.cluster.node("n30")
    reloading.picture.books.node(gone, None)
    assert reloading.refused() == NODES - 1, "one is idle now, one is gone, one has come"
    reloading.take_over()
    assert reloading.names() == {"n0"}
    assert "n30" not in reloading.picture.cluster.view().rows


def test_the_last_of_several_changes_counts(reloading):
    reloading.reload.want(selection(90))
    reloading.picture.cluster.refresh(SLICE)
    reloading.reload.want(selection(50))
    reloading.take_over()
    assert (reloading.refused(), reloading.changes) == (NODES, 1)
    assert reloading.reload.selection == selection(50)


def test_a_plugin_whose_arguments_are_the_same_is_not_computed_anew(reloading):
    before = reloading.reload.plugins["BatchFit"]
    asked = []
    inner = before.node
    before.node = lambda info: asked.append(info.node.name) or inner(info)
    reloading.reload.want(selection(90))
    reloading.take_over()
    assert reloading.reload.plugins["BatchFit"] is before
    assert sorted(set(asked)) == sorted(asked), "by what is in force only, never for what comes"


def test_another_weight_takes_no_figures(reloading):
    sets = {"score": PluginSet((Enabled(LOAD, 7),))}
    weighed = documents.SchedulerSettings({}, sets)
    reloading.reload.want(plugin_selection.select(settings.PluginSettings(), weighed))
    assert reloading.picture.cluster.stale_rows() == 0
    reloading.reload.finish()
    assert [entry.weight for entry in reloading.picture.pipeline.scorers] == [7, 1, 1]


def test_other_resources_give_a_plugin_other_columns(reloading):
    plugin = reloading.reload.plugins[LOAD]
    reloading.reload.want(selection(supported_resources=("ephemeral-storage",)))
    reloading.add("n1", cpu="20")
    assert reloading.refused() == NODES - 1, "a report that is read for more is read for less"
    reloading.take_over()
    other = reloading.reload.plugins[LOAD]
    assert other.columns > plugin.columns
    assert reloading.refused() == NODES - 1
    reloading.reload.want(selection(90))
    reloading.take_over()
    assert (reloading.reload.plugins[LOAD].columns, reloading.refused()) == (plugin.columns, 0)


def test_a_plugin_is_disabled_and_enabled_again(reloading):
    reloading.reload.want(selection(off=(LOAD,)))
    reloading.take_over()
    assert set(reloading.reload.plugins) == {
        "BatchFit",
        "DeviceShare",
        "Coscheduling",
        "ElasticQuota",
        "Reservation",
    }
    assert set(reloading.picture.cluster.view().figures) == {
        "BatchFit",
        "DeviceShare",
        "Coscheduling",
        "ElasticQuota",
        "Reservation",
    }
    assert reloading.refused() == 0
    reloading.reload.want(selection())
    reloading.take_over()
    assert reloading.refused() == NODES


def test_what_was_refused_before_is_told_without_the_figures_of_others(reloading):
    picture, names = reloading.picture, [f"n{number}" for number in range(NODES)]
    asked = {"Pod": reloading.make.pod("p", requests={"cpu": "1"}), "NodeNames": names}
    picture.verbs.filter(json.dumps(asked).encode(), NOW)
    told = picture.explanations.get("default/p")
    assert "n0: node cpu usage exceeds the load-aware threshold: cpu: 100 of 128" in told.sentence()
    reloading.reload.want(selection(90, supported_resources=("a", "z")))
    reloading.take_over()
    assert "n0: node cpu usage exceeds the load-aware threshold;" in told.sentence()


def test_a_plug_in_that_is_enabled_later_finds_usage_in_the_reports_so_far(picture, make):
    picture.reader.read_for(registry.universe(()))
    found = Reloading(picture, make)
    found.reload.want(selection(off=(LOAD,)))
    found.take_over()
    assert found.refused() == 0
    found.reload.want(selection(70))
    found.take_over()
    assert found.refused() == NODES
