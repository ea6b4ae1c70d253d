"""A round: the order of plug-ins, what becomes of suggestions, what is remembered and told."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from descheduler.configuration import head
from descheduler.configuration.arguments import parts
from descheduler.framework import protocols
from descheduler.framework.filtering import safeguards
from descheduler.framework.planning import decisions, limiter, pipeline, profiles, round_plan
from tests.descheduler.builders import NOW, job, node, picture_of, pod
from tests.descheduler.framework.rounds import Fork, Scores, Suggests, left, planned, profile

NODES = [node("a"), node("b"), node("c")]
PODS = [pod(f"web-{number}", "abc"[number % 3]) for number in range(6)]
SEEN = picture_of(NODES, PODS)


def test_deschedule_plug_ins_of_all_profiles_run_before_balance():
    order = []

    def says(text, one):
        def suggest(view, memory):
            order.append(text)
            yield protocols.Suggestion(one, "T", "", protocols.Purpose.REMOVE)
            return {}

        return suggest

    first = profile(deschedule=[says("p.D", PODS[0])], balance=[says("p.B", PODS[1])])
    second = profile(
        name="q",
        deschedule=[says("q.D0", PODS[2]), says("q.D1", PODS[3])],
        balance=[says("q.B", PODS[4])],
    )
    plan = planned(SEEN, first, second)
    assert order == ["p.D", "q.D0", "q.D1", "p.B", "q.B"]
    assert [move.profile for move in plan.moves] == ["p", "q", "q", "p", "q"]


def test_a_plug_in_is_told_what_became_of_each_suggestion():
    plugin = Suggests(*PODS[:3])
    fork, scores = Fork(), Scores({"web-0": "b", "web-2": "a"})
    plan = planned(SEEN, profile(balance=[plugin]), objective_=scores, targets=fork)
    assert plugin.answers == [protocols.Target("b"), False, protocols.Target("a")]
    assert fork.moved == scores.made == [("web-0", "b"), ("web-2", "a")]
    assert plan.refused == (round_plan.Refused("B0", "no gain", 1, ("default/web-1: 0.0",)),)
    assert plan.summary == (
        "moves 2 pods, spread 31 % → 12 %; refused 1 suggestion, most often: no gain"
    )


def test_without_an_objective_pods_leave_for_anywhere():
    plugin, fork = Suggests(PODS[0]), Fork()
    plan = planned(SEEN, profile(balance=[plugin]), targets=fork)
    assert (plugin.answers, fork.removed) == ([True], ["web-0"])
    assert plan.summary == "moves 1 pod"


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [node("a")],
        [node("a"), node("b", ready=False)],
        [node("a"), node("b", labels={"x": "y"})],
    ],
    ids=["none", "one", "one ready", "one selected"],
)
def test_fewer_than_two_ready_nodes_are_no_round(nodes):
    selector = parts.LabelSelector(match_expressions=({"key": "x", "operator": "DoesNotExist"},))
    plugin = Suggests(PODS[0])
    plan = planned(picture_of(nodes, PODS), profile(balance=[plugin]), node_selector=selector)
    assert plan.summary == "no round: fewer than two nodes are ready"
    assert plugin.remembered is None


def test_cordoned_nodes_are_shown_and_those_of_other_profiles_are_not():
    nodes = [node("b", schedulable=False, labels={"pool": "x"}), node("a"), node("c", ready=False)]
    shown = []

    def look(view, memory):
        shown.append([one.name for one in view.nodes])
        yield from ()
        return {}

    of_pool = parts.LabelSelector(match_labels={"pool": "x"})
    planned(
        picture_of(nodes), profile(balance=[look]), profile(balance=[look], node_selector=of_pool)
    )
    assert shown == [["a", "b"], ["b"]]


def test_a_plug_in_that_fails_ends_alone():
    def fails(view, memory):
        yield protocols.Suggestion(PODS[0], "T", "", protocols.Purpose.BALANCE)
        raise KeyError("x")

    after = Suggests(PODS[1])
    memory = round_plan.RoundMemory({("p", "B0"): {"kept": 1}})
    plan = planned(SEEN, profile(balance=[fails, after]), memory=memory)
    assert left(plan) == ["web-0", "web-1"]
    assert plan.failures == (round_plan.Failure("p", "B0", "KeyError: 'x'"),)
    assert plan.memory.plugins[("p", "B0")] == {"kept": 1}
    assert plan.summary == "moves 2 pods; failed: B0"


def test_a_plug_in_that_never_ends_is_ended():
    def endless(view, memory):
        while True:
            yield protocols.Suggestion(PODS[0], "T", "", protocols.Purpose.BALANCE)

    plan = planned(SEEN, profile(balance=[endless, Suggests(PODS[1])]))
    assert left(plan) == ["web-0", "web-1"]
    assert plan.failures[0].error.startswith("EndlessError")
    (refused,) = plan.refused
    assert refused.reason == decisions.TWICE
    assert len(refused.examples) == round_plan.EXAMPLES


def test_an_objective_that_fails_for_one_pod_refuses_it():
    scores = Scores({"web-0": ZeroDivisionError("x"), "web-1": "c"})
    plan = planned(SEEN, profile(balance=[Suggests(*PODS[:2])]), objective_=scores)
    assert left(plan) == ["web-1"]
    (refused,) = plan.refused
    assert (refused.reason, refused.examples) == (
        decisions.UNJUDGED,
        ("default/web-0: ZeroDivisionError: x",),
    )


def test_a_fork_that_fails_for_one_pod_refuses_it():
    class Broken(Fork):
        def move(self, one, to):
            if one.name == "web-0":
                raise LookupError(to)
            super().move(one, to)

    fork, scores = Broken(), Scores({"web-0": "b", "web-1": "c"})
    plan = planned(SEEN, profile(balance=[Suggests(*PODS[:2])]), objective_=scores, targets=fork)
    assert (left(plan), fork.moved) == (["web-1"], [("web-1", "c")])
    assert [one.reason for one in plan.refused] == [decisions.UNMADE]


def test_plug_ins_are_shown_what_is_free():
    found = []

    def asks(view, memory):
        found.extend(view.fit.rows(["a", "b"]).fitting(PODS[0]))
        yield from ()
        return None

    planned(SEEN, profile(balance=[asks]))
    assert found == [True, True]


def test_the_check_before_an_eviction_is_asked_of_all_filters():
    class Late:
        def for_round(self, view):
            return self

        def refusal(self, one):
            return ""

        def late_refusal(self, one):
            return "too late" if one.name == "web-1" else ""

    said = []

    def asks(view, memory):
        said.extend(view.evictable.late_refusal(one) for one in PODS[:2])
        yield from ()
        return {}

    plan = planned(SEEN, profile(balance=[asks], filters=(Late(),)))
    assert said == ["", "too late"]
    assert plan.kept == (round_plan.Kept("p", "too late", 1),)


def test_memory_is_kept_by_profile_and_plug_in():
    plugin = Suggests()
    configured = (profile(balance=[plugin]), profile(name="q", balance=[plugin]))
    first = planned(SEEN, *configured)
    assert first.memory.plugins == {("p", "B0"): {"rounds": 1}, ("q", "B0"): {"rounds": 1}}
    assert first.notes[0] == round_plan.Note("p", "B0", "looked")
    second = planned(SEEN, *configured, memory=first.memory)
    assert second.memory.plugins[("q", "B0")] == {"rounds": 2}


def test_pods_on_no_node_and_strangers_are_refused():
    waiting, stranger = pod("waits"), pod("gone", "a")
    seen = picture_of(NODES, [*PODS, waiting])
    plan = planned(seen, profile(balance=[Suggests(waiting, stranger)]))
    assert [(one.reason, one.count) for one in plan.refused] == [(decisions.NOT_THERE, 2)]


def test_safeguards_hold_in_every_profile_and_what_is_kept_is_counted():
    held = pod("held", "a", flaw="spec")
    plan = planned(
        picture_of(NODES, [*PODS, held]), profile(balance=[Suggests(held, held, PODS[0])])
    )
    assert left(plan) == ["web-0"]
    assert plan.kept == (round_plan.Kept("p", safeguards.UNREADABLE, 1),)


def test_limits_count_over_profiles():
    first, second = Suggests(*PODS[:2]), Suggests(*PODS[2:4])
    configured = (profile(balance=[first]), profile(name="q", balance=[second]))
    plan = planned(SEEN, *configured, in_round=limiter.Limits(total=3))
    assert left(plan) == ["web-0", "web-1", "web-2"]
    assert plan.refused[0].reason == "maximum number of pods reached"


def test_an_hour_is_remembered_from_round_to_round():
    hourly = limiter.Limits(total=2)
    first = planned(SEEN, profile(balance=[Suggests(PODS[0])]), in_hour=hourly)
    again = profile(balance=[Suggests(PODS[1], PODS[2])])
    later = dataclasses.replace(SEEN, now=NOW + 60)
    assert left(planned(later, again, in_hour=hourly, memory=first.memory)) == ["web-1"]
    tomorrow = dataclasses.replace(SEEN, now=NOW + 7200)
    assert left(planned(tomorrow, again, in_hour=hourly, memory=first.memory)) == ["web-1", "web-2"]


def test_dry_runs_are_reported_counted_and_not_remembered():
    fork = Fork()
    cordon = protocols.Cordon("a", "B0", "drain")
    plugin = Suggests(*PODS[:2], cordon=cordon)
    limits = limiter.Limits(total=1)
    plan = planned(SEEN, profile(balance=[plugin]), targets=fork, in_round=limits, dry_run=True)
    assert plan.summary == (
        "would move 1 pod; refused 1 suggestion, most often: maximum number of pods reached"
    )
    assert plan.moves[0].dry_run
    assert (plan.memory.moves, plan.cordons, fork.removed) == ({}, (), ["web-0"])


def test_a_dry_run_of_one_plug_in_moves_nothing_for_the_others():
    fork = Fork()
    dry, live = Suggests(*PODS[:2], dry_run=True), Suggests(PODS[0])
    plan = planned(SEEN, profile(balance=[dry, live]), targets=fork)
    assert [(move.suggestion.pod.name, move.dry_run) for move in plan.moves] == [
        ("web-1", True),
        ("web-0", False),
    ]
    assert fork.removed == ["web-0"]
    assert plan.summary == "moves 1 pod, would move 1 pod"


def test_a_profile_in_dry_run_counts_its_own_moves_only():
    class Few:
        def for_round(self, view):
            return Refusing(view.migrating)

    class Refusing:
        def __init__(self, migrating):
            self._migrating = migrating

        def refusal(self, one):
            return "one is enough" if self._migrating.count(one) else ""

        def late_refusal(self, one):
            return ""

    dry = profile(balance=[Suggests(*PODS[:2])], filters=(Few(),), dry_run=True)
    live = profile(name="q", balance=[Suggests(*PODS[2:4])], filters=(Few(),))
    plan = planned(SEEN, dry, live)
    assert [(move.profile, move.dry_run) for move in plan.moves] == [("p", True), ("q", False)]


def test_nodes_are_cordoned_for_pods_that_leave():
    plugin = Suggests(PODS[0], PODS[3], cordon=protocols.Cordon("a", "B0", "drain"))
    plan = planned(SEEN, profile(balance=[plugin]))
    assert plan.cordons == (protocols.Cordon("a", "B0", "drain"),)


def test_annotations_are_collected():
    plugin = profiles.Plugin("Rank", Suggests(), lambda view: {PODS[0].uid: {"cost": "1"}})
    plan = planned(SEEN, profiles.Profile("p", "MigrationController", balance=(plugin,)))
    assert plan.annotations == {PODS[0].uid: {"cost": "1"}}


def test_options_are_those_of_the_configuration():
    configured = head.Head(cool_down=60.0, descheduling_interval=10.0, dry_run=False)
    found = pipeline_options(configured)
    assert (found.cool_down, found.interval_seconds, found.dry_run) == (60.0, 10.0, False)
    assert profiles.options(configured, observe=True).dry_run


def pipeline_options(configured):
    return profiles.options(configured)


def test_nothing_to_do_is_said_so():
    assert planned(SEEN, profile()).summary == "moves no pod"
    assert planned(SEEN, profile(), dry_run=True).summary == "would move no pod"


WISHES = st.lists(st.integers(0, 11), max_size=15)


@hypothesis.given(WISHES, WISHES, st.integers(0, 5), st.booleans(), st.data())
def test_a_round_is_deterministic_and_moves_no_pod_twice(first, second, most, dry_run, data):
    pods = [pod(f"w-{number}", "abc"[number % 3]) for number in range(12)]
    moving = data.draw(st.sets(st.integers(0, 11), max_size=3))
    jobs = [job(f"j{number}", f"w-{number}") for number in sorted(moving)]
    seen = picture_of(NODES, pods, jobs=jobs)
    limits = limiter.Limits(node=most, total=2 * most)
    half_dry = data.draw(st.booleans())

    def run():
        plug_ins = [
            Suggests(*(pods[number] for number in first), dry_run=half_dry),
            Suggests(*(pods[number] for number in second)),
        ]
        return planned(seen, profile(balance=plug_ins), in_round=limits, dry_run=dry_run)

    plan = run()
    assert plan == run()
    names = left(plan)
    assert len(names) == len(set(names)) <= 2 * most
    assert set(names) <= {f"w-{number}" for number in {*first, *second}}
    assert (
        not plan.memory.moves.keys()
        - {move.suggestion.pod.uid for move in plan.moves if not move.dry_run}
        - {f"uid-w-{number}" for number in moving}
    )


def test_the_module_says_which_rounds_do_not_run():
    assert pipeline.TOO_FEW_NODES in planned(picture_of(), profile()).summary
