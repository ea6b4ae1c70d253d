"""Order, first refusal, weighing and clamping belong to the pipeline alone."""

import msgspec
import numpy as np
import pytest

from extender import plugin_selection, registry, settings
from extender.framework import assembly, cycle, pipeline, protocols, verdicts, weighing


class Named:
    """A plug-in that has something to say about every pod."""

    def __init__(self, name):
        self.name = name

    def pre_filter(self, pod, view):
        return "asked"


class Refuses(Named):
    """A filter that refuses given rows."""

    def __init__(self, name, refused, **more):
        super().__init__(name)
        self.refused, self.asked, self.more = refused, 0, more

    def filter(self, prepared, view, rows, now):
        self.asked += 1
        if self.refused is None:
            return None
        codes = np.isin(rows, self.refused).astype(np.int16)
        return verdicts.Verdict(codes, (verdicts.Status(f"{self.name} says no", **self.more),))

    def shortage(self, prepared, view, rows, now):
        return rows / 4

    def diagnose(self, prepared, view, row, now):
        return verdicts.Diagnosis(f"row {row}" if self.name == "first" else "")


class LooksAt(Named):
    """A filter that looks at nodes one by one and refuses given ones."""

    def __init__(self, name, refused):
        super().__init__(name)
        self.refused, self.seen = refused, []

    def filter_node(self, prepared, view, row):
        self.seen.append(row)
        return verdicts.Status(f"{self.name} says no") if row in self.refused else None


class Scores(Named):
    """A scorer with given values, by row."""

    def __init__(self, name, values, tiers=None, **more):
        super().__init__(name)
        self.values, self.tiers, self.more = values, tiers, more

    def score(self, prepared, view, rows, now):
        if self.values is None:
            return None
        values = np.asarray(self.values, dtype=np.int64)[rows]
        tiers = None if self.tiers is None else np.asarray(self.tiers)[rows]
        return verdicts.Score(values, tiers=tiers, **self.more)


class Grants(Named):
    """A reserver with given answers, by row, that keeps what it was shown of earlier ones."""

    def __init__(self, name, answers):
        super().__init__(name)
        self.answers, self.shown = answers, None

    def reserve(self, pod, prepared, view, row, grants):
        self.shown = dict(grants)
        return self.answers.get(row)


def assembled(*plugins, weights=()):
    """All extension points that these plug-ins implement."""
    weights = {plugin.name: 1 for plugin in plugins} | dict(weights)
    return assembly.assemble(lambda _: plugins, weights)


@pytest.fixture
def three(picture, make):
    picture.add(make.node("n0"), make.node("n1"), make.node("n2"))
    return picture.cluster.view()


@pytest.fixture
def request_(picture, make):
    return picture.request(make.pod("p"))


ALL = np.arange(3)


def judged(line, pod, view, rows=ALL):
    """The names of the plug-ins that refuse each candidate, empty where it passes."""
    outcome = line.filter(line.cycle(pod, view), view, rows, 0.0)
    found = [outcome.refusal(place) for place in range(rows.size)]
    return [refusal.plugin if refusal else "" for refusal in found]


def test_the_first_refusal_is_the_one_that_is_reported(three, request_):
    first, silent, second = Refuses("first", [0]), Refuses("x", None), Refuses("second", [0, 1])
    line = assembled(first, silent, second)
    assert judged(line, request_, three) == ["first", "second", ""]
    asked = line.cycle(request_, three)
    for row, said in enumerate(["first says no: row 0", "second says no"]):
        refusal = line.filter(asked, three, ALL, 0.0).refusal(row)
        assert line.sentence(asked, three, row, refusal, 0.0) == said
        assert line.shortage(asked, three, ALL, refusal, 0.0).tolist() == [0, 0.25, 0.5]


def test_nobody_is_asked_once_every_candidate_is_refused(three, request_):
    first, second, third = Refuses("first", [0, 2]), Refuses("second", [0]), LooksAt("third", [])
    line = assembled(first, second, third)
    assert judged(line, request_, three, np.array([2, 0])) == ["first", "first"]
    assert (first.asked, second.asked, third.seen) == (1, 0, [])


def test_only_survivors_are_looked_at_one_by_one(three, request_):
    vector, one, other = Refuses("vector", [1]), LooksAt("one", [0]), LooksAt("other", [0, 2])
    assert judged(assembled(one, other, vector), request_, three) == ["one", "vector", "other"]
    assert (one.seen, other.seen) == ([0, 2], [2])


def test_candidates_are_judged_in_their_order(three, request_):
    line = assembled(Refuses("a", [2]), LooksAt("b", [1]))
    assert judged(line, request_, three, np.array([2, 0, 1])) == ["a", "", "b"]


class Silent(Refuses):
    """A plug-in that has nothing to say about the pod."""

    def pre_filter(self, pod, view):
        return None


class Never(Named):
    """A plug-in that refuses the pod on every node."""

    def pre_filter(self, pod, view):
        return verdicts.Status("never", resolvable=True)


def test_a_plugin_without_a_say_is_not_asked(three, request_):
    silent = Silent("silent", [0, 1, 2])
    assert judged(assembled(silent), request_, three) == ["", "", ""]
    assert silent.asked == 0


def test_a_pod_may_be_refused_before_any_node_is_looked_at(three, request_):
    other = Refuses("other", [0])
    line = assembled(Never("never"), other)
    assert judged(line, request_, three) == ["never"] * 3
    assert other.asked == 0
    asked = line.cycle(request_, three)
    refusal = line.filter(asked, three, ALL, 0.0).refusal(0)
    assert line.sentence(asked, three, 0, refusal, 0.0) == "never"


def test_what_was_prepared_is_shared_until_the_state_changes(picture, make):
    class Counts(Named):
        asked = 0

        def pre_filter(self, pod, view):
            self.asked += 1
            return self.asked

    counts, kept = Counts("counts"), cycle.Cycles(most=2)
    line = assembled(counts)
    one, two, three_ = (picture.request(make.pod(name)) for name in ("one", "two", "three"))
    picture.add(make.node("n0"))
    view = picture.cluster.view()
    found = [kept.get(line, pod, view).prepared["counts"] for pod in (one, two, one, two)]
    assert found == [1, 2, 1, 2]
    picture.add(make.node("n1"))
    assert kept.get(line, one, picture.cluster.view()).prepared["counts"] == 3
    assert kept.get(line, three_, view).prepared["counts"] == 4
    assert kept.get(line, two, view).prepared["counts"] == 5, "the oldest of too many goes"


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
        pytest.param(
            [(Scores("a", [100, 0, 0]), 3), (Scores("b", [0, 0, 0], tiers=[0, 1, 2]), 1)],
            [75, weighing.TIER, 2 * weighing.TIER],
            id="a higher tier outranks every score",
        ),
    ],
)
def test_scores_are_brought_to_0_to_100(three, request_, scorers, expected):
    line = assembled(*(s for s, _ in scorers), weights={s.name: w for s, w in scorers})
    asked = line.cycle(request_, three)
    assert line.score(asked, three, ALL, 0.0).tolist() == expected
    assert line.score(asked, three, ALL[::-1], 0.0).tolist() == expected[::-1]


@pytest.mark.parametrize("scale", [False, True], ids=["clamped", "scaled"])
@pytest.mark.parametrize("more_is_better", [False, True], ids=["less", "more"])
def test_what_spoke_for_a_node_is_its_score_alone(three, request_, scale, more_is_better):
    for values in ([-5, 0, 1], [50, 100, 300]):
        scorer = Scores("a", values, scale=scale, more_is_better=more_is_better)
        line = assembled(Refuses("f", []), scorer)
        asked = line.cycle(request_, three)
        for row in range(3):
            (alone,) = line.score(asked, three, np.array([row]), 0.0).tolist()
            spoken = line.grounds(asked, three, row, 0.0)
            assert spoken == ["f: passed", f"a: score {alone}"]


class Two(msgspec.Struct, frozen=True):
    """An allocation."""

    number: int = 2


def test_reservers_see_what_earlier_ones_granted_and_one_refusal_ends_it(three, request_):
    first = Grants("first", {1: verdicts.Grant(Two()), 2: verdicts.Grant(figures={"cpu": "1"})})
    second = Grants("second", {2: verdicts.Status("no")})
    line = assembled(first, second)
    asked = line.cycle(request_, three)
    assert line.reserve(asked, three, 0) == {}
    granted = line.reserve(asked, three, 1)
    assert {name: grant.told() for name, grant in granted.items()} == {"first": {"number": 2}}
    assert second.shown == {"first": Two()}
    refusal = line.reserve(asked, three, 2)
    assert (refusal.plugin, refusal.status.reason) == ("second", "no")


class Permits(Named):
    """A permit plug-in with a given answer."""

    def __init__(self, name, answer):
        super().__init__(name)
        self.answer = answer

    def permit(self, pod, prepared, view, now):
        return self.answer


ALLOW, LATE = verdicts.Allow(wakes=("gang",)), verdicts.Status("late")
WAIT, LONGER = verdicts.Wait(5.0, "a", LATE), verdicts.Wait(9.0, "b", verdicts.Status("later"))


@pytest.mark.parametrize(
    ("answers", "allowed", "keys", "wakes"),
    [
        pytest.param([], True, (), (), id="nobody minds"),
        pytest.param([ALLOW], True, (), ("gang",), id="allowed"),
        pytest.param([ALLOW, LONGER, WAIT], False, ("b", "a"), (), id="who waits wakes nobody"),
        pytest.param(
            [WAIT, verdicts.Reject(LATE, wakes=("gang",))], False, (), ("gang",), id="rejected"
        ),
    ],
)
def test_a_pod_is_permitted_by_all(three, request_, answers, allowed, keys, wakes):
    line = assembled(*(Permits(f"p{at}", answer) for at, answer in enumerate(answers)))
    found = line.permit(line.cycle(request_, three), three, 0.0)
    assert (found.allowed, found.keys, found.wakes) == (allowed, keys, wakes)
    if found.waits:
        assert (found.until, found.expired().status) == (5.0, LATE)
    assert (found.refusal is not None) == (not allowed and not keys)


@pytest.mark.parametrize(
    ("kept_for", "priority", "refused"),
    [
        pytest.param("other", 0, True, id="another pod of equal priority"),
        pytest.param("other", 1, True, id="a pod of higher priority"),
        pytest.param("other", -1, False, id="a pod of lower priority"),
        pytest.param("pending", 5, False, id="the pod itself"),
    ],
)
def test_nominated_claims_count_as_the_scheduler_counts_them(
    picture, make, kept_for, priority, refused
):
    picture.add(make.node("n1", **{"kubernetes.io/batch-cpu": "1500"}))
    thousand = {"band": "koord-batch", "requests": {"kubernetes.io/batch-cpu": "1000"}}
    raw = make.pod(kept_for, **thousand)
    raw["spec"]["priority"] = priority
    kept = picture.record(raw)
    picture.books.nominate(kept, "n1", evidence="1")
    pod = picture.request(make.pod("pending", **thousand))
    view = picture.cluster.view()
    assert judged(picture.pipeline, pod, view, pipeline.ROW) == ["BatchFit" if refused else ""]
    picture.books.withdraw(kept.uid)


@pytest.mark.parametrize(("whatever", "times"), [(False, 2), (True, 1)])
def test_what_holds_whatever_is_on_a_node_is_not_asked_without_lesser_claims(
    picture, make, whatever, times
):
    picture.add(make.node("n1"))
    raw = make.pod("lesser")
    raw["spec"]["priority"] = -1
    picture.books.nominate(picture.record(raw), "n1", evidence="1")
    refuses, view = Refuses("f", [0], everywhere=whatever), picture.cluster.view()
    pod = picture.request(make.pod("p"))
    assert judged(assembled(refuses), pod, view, pipeline.ROW) == ["f"]
    assert refuses.asked == times


def test_an_unknown_plugin_is_named():
    known = "BatchFit, Coscheduling, DeviceShare, ElasticQuota, LoadAware"
    with pytest.raises(ValueError, match=f"Nonsense does not exist; known are {known}"):
        registry.check(settings.PluginSettings(enabled=("Nonsense",)))


def test_every_registered_plugin_can_be_built_and_is_of_some_use():
    chosen = settings.PluginSettings(enabled=tuple(registry.PLUGINS))
    built = registry.build(plugin_selection.select(chosen))
    assert set(built.plugins) == set(registry.PLUGINS)
    for plugin in built.plugins.values():
        assert isinstance(plugin, protocols.Filter | protocols.Scorer)
        assert isinstance(plugin, protocols.StateTracker)


def test_arrays_that_plugins_are_shown_cannot_be_written(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    view = picture.cluster.view()
    for column in (view.allocatable, view.requested, *view.figures.values()):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
