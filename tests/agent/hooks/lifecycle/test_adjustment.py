"""Hooks of one stage are asked in order, and none keeps anything from the others."""

import pytest

from agent.hooks.lifecycle import adjustment, reconciliation, subject
from agent.model import edits

R = edits.Role
STAGE = subject.Stage.CREATE_CONTAINER


def wants(name, found):
    return adjustment.Hook(name, lambda _subject, _rule: found).bind(None)


def fails(name, error):
    def adjust(_subject, _rule):
        raise error

    return adjustment.Hook(name, adjust).bind(None)


def quota(text):
    return adjustment.Adjustment({R.CPU_QUOTA: adjustment.Value(text, "why")})


@pytest.fixture
def container(placed):
    pod = placed("p")
    return subject.Subject(STAGE, subject.Level.CONTAINER, pod, pod.containers[0])


def test_of_two_values_for_one_property_the_first_counts(container):
    device = adjustment.DeviceNode("/dev/x", 1, 2, 0o666)
    first = adjustment.Adjustment(
        quota("1").values, environment={"A": "1"}, mounts={"/m": "/1"}, devices=(device,)
    )
    second = adjustment.Adjustment(
        {**quota("2").values, R.CPU_SHARES: adjustment.Value("9", "why")},
        environment={"A": "2", "B": "2"},
        mounts={"/m": "/2"},
        devices=(device,),
    )
    rules = adjustment.Rules({STAGE: (wants("a", first), wants("b", second))})
    found, problems = adjustment.adjust(container, rules)
    assert not problems
    assert {role: one.text for role, one in found.values.items()} == {
        R.CPU_QUOTA: "1",
        R.CPU_SHARES: "9",
    }
    assert found.environment == {"A": "1", "B": "2"}
    assert found.mounts == {"/m": "/1"}
    assert found.devices == (device,)


def test_hooks_of_other_stages_are_not_asked(container):
    rules = adjustment.Rules({subject.Stage.UPDATE_CONTAINER: (wants("a", quota("1")),)})
    assert adjustment.adjust(container, rules) == (adjustment.NOTHING, ())


@pytest.mark.parametrize(
    ("error", "text", "unexpected"),
    [
        (adjustment.HookError("annotation x: no number"), "annotation x: no number", False),
        (RecursionError("too deep"), "RecursionError: too deep", True),
    ],
    ids=["of-the-pod", "of-the-hook"],
)
def test_a_hook_that_fails_keeps_nothing_from_the_others(container, error, text, unexpected):
    rules = adjustment.Rules({STAGE: (fails("bad", error), wants("good", quota("1")))})
    found, (problem,) = adjustment.adjust(container, rules)
    assert found == quota("1")
    assert (problem.hook, problem.text) == ("bad", text)
    assert (problem.unexpected is error) is unexpected


def test_what_one_hook_could_not_honour_is_named_beside_its_values(container):
    part = adjustment.Adjustment(quota("1").values, problems=("no json",))
    rules = adjustment.Rules({STAGE: (wants("a", part), wants("b", quota("2")))})
    found, problems = adjustment.adjust(container, rules)
    assert found.values == quota("1").values
    assert problems == (adjustment.Problem("a", "no json"),)


def test_reconciliation_raises_what_a_hook_does_not_know(placed):
    with pytest.raises(ZeroDivisionError):
        reconciliation.of_pods([placed("p")], fails("bad", ZeroDivisionError()))


def test_reconciliation_names_a_problem_once_for_each_pod(placed):
    pods = [placed("p", sandbox="p/pause"), placed("q")]
    found = reconciliation.of_pods(pods, fails("bad", adjustment.HookError("no")))
    assert found == reconciliation.Outcome([], ("default/p: no", "default/q: no"), 0)


def test_every_cgroup_of_a_pod_is_asked_for_from_above_to_below(placed):
    found = reconciliation.of_pods([placed("p", sandbox="p/pause")], wants("a", quota("7")))
    assert [edit.group for edit in found.wanted] == ["p", "p/app", "p/pause"]
    assert {(edit.role, edit.value, edit.reason) for edit in found.wanted} == {
        (R.CPU_QUOTA, "7", "why")
    }


def test_a_cgroup_that_is_not_known_yet_has_no_edits_but_its_pod_counts(placed):
    first = edits.Edit(R.RESCTRL_GROUP, "g", "present", "why")
    part = adjustment.Adjustment(quota("7").values, beside=(first,))
    found = reconciliation.of_pods([placed("p", group="", containers=())], wants("a", part))
    assert (found.wanted, found.adjusted) == ([first], 1)
