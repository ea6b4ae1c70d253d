"""Enabling and disabling by extension point, as kube-scheduler merges the sets of a profile."""

import pytest

from domain.scheduler_settings import plugin_sets
from domain.scheduler_settings.plugin_sets import Enabled, PluginSet

STANDARD = (Enabled("A"), Enabled("B", 3), Enabled("C"))


def enabled(*names):
    return PluginSet(tuple(Enabled(name.rstrip("+"), 7 if "+" in name else 1) for name in names))


def disabled(*names):
    return PluginSet((), frozenset(names))


def both(on, *off):
    return PluginSet(enabled(*on).enabled, frozenset(off))


@pytest.mark.parametrize(
    ("sets", "names"),
    [
        pytest.param({}, "A B C", id="nothing said"),
        pytest.param({"filter": disabled("B")}, "A C", id="one disabled"),
        pytest.param({"score": disabled("B")}, "A B C", id="disabled elsewhere"),
        pytest.param({"filter": disabled("*")}, "", id="all disabled"),
        pytest.param({"filter": both(["C", "D"], "*")}, "C D", id="only these"),
        pytest.param({"filter": enabled("D")}, "A B C D", id="one more comes last"),
        pytest.param({"filter": enabled("C")}, "C A B", id="named ones come first"),
        pytest.param({"filter": enabled("D", "C")}, "C A B D", id="both"),
        pytest.param({"multiPoint": disabled("A")}, "B C", id="disabled everywhere"),
        pytest.param({"multiPoint": both(["D"], "*")}, "D", id="only this everywhere"),
        pytest.param({"multiPoint": enabled("B")}, "A B C", id="keeps its place"),
        pytest.param(
            {"multiPoint": disabled("A"), "filter": enabled("A")}, "B C A", id="enabled again"
        ),
        pytest.param(
            {"multiPoint": enabled("D"), "filter": disabled("D")}, "A B C", id="disabled again"
        ),
    ],
)
def test_sets_are_merged_as_kube_scheduler_does(sets, names):
    found = plugin_sets.resolved("filter", STANDARD, sets)
    assert " ".join(one.name for one in found) == names


@pytest.mark.parametrize(
    ("sets", "weight"),
    [
        pytest.param({}, 3, id="standard"),
        pytest.param({"multiPoint": enabled("B+")}, 7, id="everywhere"),
        pytest.param({"score": enabled("B")}, 1, id="at the extension point"),
        pytest.param({"multiPoint": enabled("B+"), "score": enabled("B")}, 1, id="both"),
    ],
)
def test_the_nearest_weight_counts(sets, weight):
    found = {one.name: one.weight for one in plugin_sets.resolved("score", STANDARD, sets)}
    assert found["B"] == weight
