"""Order, first refusal, weighing and clamping belong to the pipeline alone."""

import numpy as np
import pytest

from extender import plugin_selection, registry, settings
from extender.framework import pipeline, protocols, verdicts


class Refuses:
    """A filter that refuses given rows."""

    def __init__(self, name, rows):
        self.name, self.rows, self.asked = name, rows, 0

    def filter(self, request, view, now):
        self.asked += 1
        if self.rows is None:
            return None
        codes = np.zeros(len(view.names), dtype=np.int16)
        codes[self.rows] = 1
        return verdicts.Verdict(codes, (verdicts.Status(f"{self.name} says no"),))

    def shortage(self, request, view, now):
        return np.zeros(len(view.names))

    def diagnose(self, request, view, row, now):
        return verdicts.Diagnosis(f"row {row}" if self.name == "first" else "")


class Scores:
    """A scorer with given values."""

    def __init__(self, name, values, **more):
        self.name, self.values, self.more = name, values, more

    def score(self, request, view, now):
        if self.values is None:
            return None
        return verdicts.Score(np.asarray(self.values, dtype=np.int64), **self.more)


@pytest.fixture
def three(picture, make):
    picture.add(make.node("n0"), make.node("n1"), make.node("n2"))
    return picture.cluster.view()


@pytest.fixture
def request_(picture, make):
    return picture.request(make.pod("p"))


def test_the_first_refusal_is_the_one_that_is_reported(three, request_):
    first, silent, second = Refuses("first", [0]), Refuses("x", None), Refuses("second", [0, 1])
    line = pipeline.Pipeline((first, silent, second), (), ())
    outcome = line.filter(request_, three, 0.0)
    found = [outcome.refusal(row) for row in range(3)]
    assert [entry.plugin if entry else "" for entry in found] == ["first", "second", ""]
    assert line.sentence(request_, three, 0, found[0], 0.0) == "first says no: row 0"
    assert line.sentence(request_, three, 1, found[1], 0.0) == "second says no"


def test_nobody_is_asked_once_every_node_is_refused(three, request_):
    first, second = Refuses("first", [0, 1, 2]), Refuses("second", [0])
    pipeline.Pipeline((first, second), (), ()).filter(request_, three, 0.0)
    assert (first.asked, second.asked) == (1, 0)


def test_a_row_whose_node_is_gone_is_never_refused(picture, make, request_):
    picture.add(make.node("n0"), make.node("n1"), make.pod("p0", node="n0"))
    picture.books.node(picture.cluster.node("n0"), None)
    view = picture.cluster.view()
    outcome = pipeline.Pipeline((Refuses("a", [0, 1]),), (), ()).filter(request_, view, 0.0)
    assert outcome.codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("scorers", "expected"),
    [
        pytest.param([], [0, 0, 0], id="no scorer"),
        pytest.param([(Scores("a", None), 3)], [0, 0, 0], id="no preference"),
        pytest.param([(Scores("a", [-5, 50, 300]), 1)], [0, 50, 100], id="clamped"),
        pytest.param([(Scores("a", [0, 5, 10], scale=True), 1)], [0, 50, 100], id="scaled"),
        pytest.param([(Scores("a", [0, 0, 0], scale=True), 1)], [0, 0, 0], id="all zero"),
        pytest.param(
            [(Scores("a", [0, 40, 100], more_is_better=False), 1)], [100, 60, 0], id="less is more"
        ),
        pytest.param(
            [(Scores("a", [0, 50, 100]), 1), (Scores("b", [90, 0, 0]), 3)],
            [67, 12, 25],
            id="weighed",
        ),
        pytest.param([(Scores("a", [9, 9, 9]), 0)], [0, 0, 0], id="no weight"),
    ],
)
def test_scores_are_brought_to_0_to_100(three, request_, scorers, expected):
    line = pipeline.Pipeline((), tuple(pipeline.Weighted(s, w) for s, w in scorers), ())
    assert line.score(request_, three, [0, 1, 2], 0.0).tolist() == expected


@pytest.mark.parametrize("scale", [False, True], ids=["clamped", "scaled"])
@pytest.mark.parametrize("more_is_better", [False, True], ids=["less", "more"])
def test_what_spoke_for_a_node_is_its_score_alone(three, request_, scale, more_is_better):
    for values in ([-5, 0, 1], [50, 100, 300]):
        scorer = Scores("a", values, scale=scale, more_is_better=more_is_better)
        line = pipeline.Pipeline((Refuses("f", []),), (pipeline.Weighted(scorer, 1),), ())
        for row in range(3):
            (alone,) = line.score(request_, three, [row], 0.0).tolist()
            spoken = line.grounds(request_, three, row, 0.0)
            assert spoken == ["f: passed", f"a: score {alone}"]


def test_a_reserver_that_refuses_ends_it(three, request_):
    class Grants:
        name = "grants"

        def reserve(self, request, view, row, now):
            return protocols.Allocation("grants", {"cpu": "1"}) if row else None

    class Never:
        name = "never"

        def reserve(self, request, view, row, now):
            return verdicts.Status("no") if row == 2 else None

    line = pipeline.Pipeline((), (), (Grants(), Never()))
    assert line.reserve(request_, three, 0, 0.0) == ()
    assert [entry.plugin for entry in line.reserve(request_, three, 1, 0.0)] == ["grants"]
    assert line.reserve(request_, three, 2, 0.0).plugin == "never"


def test_an_unknown_plugin_is_named():
    with pytest.raises(ValueError, match="Nonsense does not exist; known are BatchFit, LoadAware"):
        registry.check(settings.PluginSettings(enabled=("Nonsense",)))


def test_every_registered_plugin_can_be_built_and_is_of_some_use():
    chosen = settings.PluginSettings(enabled=tuple(registry.PLUGINS))
    built = registry.build(plugin_selection.select(chosen))
    assert set(built.plugins) == set(registry.PLUGINS)
    for plugin in built.plugins.values():
        assert isinstance(plugin, protocols.Filter)
        assert isinstance(plugin, protocols.StateTracker)


def test_arrays_that_plugins_are_shown_cannot_be_written(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    view = picture.cluster.view()
    for column in (view.allocatable, view.requested, *view.figures.values()):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
