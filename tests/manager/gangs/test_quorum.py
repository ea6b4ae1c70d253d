"""When a gang counts as complete, and when as below its minimum."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manager.gangs import quorum
from tests import draws
from tests.manager.gangs import ganged

LEAST = 3


def gang(*pods, **given):
    """Return a gang of three by its pods: a node, `done`, `leaving`, or nothing."""
    made = [
        ganged.pod(
            f"done{number}" if kind == "done" else f"p{number}",
            node="" if kind == "waits" else "n1",
            phase={"done": "Succeeded", "failed": "Failed"}.get(kind, "Running"),
            deleting=kind == "leaving",
            min=LEAST,
            **given,
        )
        for number, kind in enumerate(pods)
    ]
    return ganged.observed(*made)


def after(*looks, **given):
    """Follow a gang through some looks, a second apart."""
    memory = None
    for number, pods in enumerate(looks):
        memory = quorum.followed(memory, gang(*pods, **given), 100.0 + number)
    return memory


UP, DONE, LEAVES, WAITS, FAILED = "runs", "done", "leaving", "waits", "failed"
WHOLE = (UP, UP, UP)


@pytest.mark.parametrize(
    ("looks", "complete", "lost"),
    [
        pytest.param([(UP, UP, WAITS)], False, False, id="gathers"),
        pytest.param([(UP, UP, WAITS)] * 9, False, False, id="gathers-for-long"),
        pytest.param([WHOLE], True, False, id="complete"),
        pytest.param([WHOLE, (UP, UP), (UP, UP)], True, True, id="a-pod-is-gone"),
        pytest.param([WHOLE, (UP, UP, LEAVES)], True, False, id="just-now"),
        pytest.param([WHOLE, *[(UP, UP, LEAVES)] * 2], True, True, id="a-pod-leaves"),
        pytest.param([WHOLE, *[(UP, UP, FAILED)] * 2], True, True, id="a-pod-has-failed"),
        pytest.param([WHOLE, (UP, UP), WHOLE, WHOLE], True, False, id="replaced"),
        pytest.param([WHOLE, (UP, UP, DONE), (UP, UP, DONE)], True, False, id="succeeded"),
        pytest.param([WHOLE, (UP, UP, DONE), (UP, UP), (UP, UP)], True, False, id="cleaned-up"),
        pytest.param([WHOLE, (UP, LEAVES, LEAVES), (LEAVES,) * 3], False, False, id="job-deleted"),
        pytest.param([WHOLE, (DONE, DONE, DONE), (), ()], False, False, id="job-finished"),
        pytest.param([WHOLE, (DONE,) * 3, (*[DONE] * 3, UP)], False, False, id="next-job-gathers"),
        pytest.param(
            [WHOLE, (DONE,) * 3, (*[DONE] * 3, *WHOLE), *[(*[DONE] * 3, UP, UP)] * 2], True, True,
            id="next-job-loses-one",
        ),
        pytest.param([(DONE,) * 3 + WHOLE], True, False, id="next-job-runs"),
        pytest.param([WHOLE, (), (UP, UP, WAITS), (UP, UP, WAITS)], False, False, id="again"),
        pytest.param([(UP, UP, UP, UP), WHOLE, WHOLE], True, False, id="more-than-the-minimum"),
    ],
)  # fmt: skip
def test_a_loss_is_a_complete_gang_below_its_minimum(looks, complete, lost) -> None:
    looks = [look or (WAITS,) for look in looks]
    memory = after(*looks)
    assert (memory.complete, memory.lost(100.0 + len(looks) - 1)) == (complete, lost)


def test_a_gang_of_which_nothing_was_seen_gets_a_grace() -> None:
    """A new manager may meet a gang in the middle of its bindings."""
    pods = (UP, UP, WAITS)
    memory = after(pods, bound_with="default/g")
    assert not memory.lost(100.0 + quorum.GRACE_SECONDS - 0.1)
    assert memory.lost(100.0 + quorum.GRACE_SECONDS)
    memory = quorum.followed(memory, gang(UP, UP, UP, bound_with="default/g"), 101.0)
    assert memory.complete
    assert not memory.lost(1000.0)


def placed(plan, *pods, first=0, **given):
    """Return pods that one plan has bound, by what has become of them."""
    return [
        ganged.bound(
            f"p{number}",
            plan,
            phase="Failed" if kind == FAILED else "Running",
            deleting=kind == LEAVES,
            min=LEAST,
            **given,
        )
        for number, kind in enumerate(pods, first)
    ]


WAITING = gang(WAITS, WAITS, WAITS)
RESUMED = [*placed("two", UP, completes="one"), *placed("one", UP, FAILED, first=1)]


@pytest.mark.parametrize("before", [None, WAITING], ids=["first-look", "gathered"])
@pytest.mark.parametrize(
    ("pods", "loss_after"),
    [
        pytest.param(placed("one", UP, UP, FAILED), quorum.SETTLE_SECONDS, id="one-failed"),
        pytest.param(placed("one", UP, LEAVES, FAILED), quorum.SETTLE_SECONDS, id="two-leave"),
        pytest.param(RESUMED, quorum.SETTLE_SECONDS, id="its-bindings-were-resumed"),
        pytest.param(placed("one", UP, UP), quorum.GRACE_SECONDS, id="one-is-gone-or-to-come"),
        pytest.param(
            [*placed("one", UP, UP, FAILED), ganged.pod("waits", min=LEAST)],
            quorum.GRACE_SECONDS,
            id="one-failed-and-one-may-be-to-come",
        ),
        pytest.param(
            [*placed("one", FAILED, LEAVES, LEAVES), *placed("two", UP, first=3)],
            quorum.GRACE_SECONDS,
            id="the-next-start-is-under-way",
        ),
        pytest.param(placed("one", FAILED, LEAVES, LEAVES), None, id="all-leave"),
    ],
)
def test_a_gang_that_was_complete_between_two_looks_has_lost_its_minimum(
    before, pods, loss_after
) -> None:
    memory = None if before is None else quorum.followed(None, before, 99.0)
    memory = quorum.followed(memory, ganged.observed(*pods), 100.0)
    if loss_after is None:
        assert not memory.lost(1e9)
        return
    assert not memory.lost(100.0 + loss_after - 0.1)
    assert memory.lost(100.0 + loss_after)
    assert memory.unsure is (loss_after == quorum.GRACE_SECONDS)


def test_as_long_as_members_arrive_others_may_follow() -> None:
    memory = quorum.followed(None, WAITING, 0.0)
    for now, pods in ((10.0, (UP,)), (35.0, (UP, UP)), (60.0, (UP, UP))):
        memory = quorum.followed(memory, ganged.observed(*placed("one", *pods)), now)
        assert memory.unsure
    assert not memory.lost(64.9)
    assert memory.lost(65.0)


def test_a_part_of_a_gang_that_need_not_start_as_a_whole_is_no_loss() -> None:
    notes = {"min": LEAST, "mode": "NonStrict"}
    waits = ganged.pod("waits", **notes)
    pods = [ganged.bound(name, "one", **notes) for name in ("a", "b")]
    memory = quorum.followed(None, ganged.observed(waits), 0.0)
    memory = quorum.followed(memory, ganged.observed(*pods, waits), 1.0)
    assert not memory.lost(1e9)
    memory = quorum.followed(memory, ganged.observed(*pods), 2.0)
    assert memory.lost(2.0 + quorum.GRACE_SECONDS)


@pytest.mark.parametrize(
    ("phase", "lost"), [(None, False), ("Scheduling", False), ("Running", True)]
)
def test_a_new_manager_takes_a_part_of_such_a_gang_for_no_loss(phase, lost) -> None:
    """Unless the status of its PodGroup says that it was complete."""
    notes = {"min": LEAST, "mode": "NonStrict", "group": phase is not None}
    pods = [ganged.bound(name, "one", **notes) for name in ("a", "b")]
    seen = [*pods, ganged.pod("waits", **notes)]
    if phase is not None:
        seen.append(ganged.group(least=LEAST, status={"phase": phase}, notes={"mode": "NonStrict"}))
    memory = None
    for now in (0.0, 1.0, 99.0):
        memory = quorum.followed(memory, ganged.observed(*seen), now)
    assert memory is not None
    assert memory.lost(1e9) is lost


def test_a_gang_that_came_anew_between_two_looks_has_no_losses_of_the_time_before() -> None:
    memory = quorum.followed(None, ganged.observed(*placed("one", *WHOLE)), 0.0)
    memory = quorum.followed(memory, ganged.observed(*placed("one", UP, UP, FAILED)), 1.0)
    old, new = placed("one", LEAVES, LEAVES, FAILED), placed("two", *WHOLE, first=3)
    memory = quorum.followed(memory, ganged.observed(*old, *new[:1]), 5.0)
    assert not memory.lost(6.0)
    memory = quorum.followed(memory, ganged.observed(*old, *new), 6.0)
    assert (memory.complete, memory.left_at) == (True, None)


def test_pods_of_another_minimum_or_of_work_that_is_done_prove_nothing() -> None:
    two = [ganged.bound(f"p{number}", "one", min=2) for number in range(2)]
    three = [ganged.bound(f"p{number}", "one", min=3) for number in range(2)]
    memory = quorum.followed(None, ganged.observed(*two), 0.0)
    for now in (1.0, 2.0, 99.0):
        memory = quorum.followed(memory, ganged.observed(*three), now)
    assert not memory.lost(1e9)
    done = [ganged.bound(f"d{number}", "one", phase="Succeeded", min=3) for number in range(3)]
    for now in (100.0, 101.0, 199.0):
        memory = quorum.followed(memory, ganged.observed(*done, *three), now)
    assert not memory.lost(1e9)


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        pytest.param({"phase": "Running"}, True, id="ran"),
        pytest.param({"phase": "Scheduled"}, True, id="was-scheduled"),
        pytest.param({"phase": "Scheduling"}, False, id="not-yet"),
        pytest.param(
            {"phase": "Scheduling", "conditions": [{"type": "Quorum", "status": "False"}]},
            True,
            id="said-so",
        ),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_the_status_of_a_pod_group_tells_a_new_manager_what_was(status, lost) -> None:
    pods = [ganged.pod(name, group=True, node="n1") for name in ("a", "b")]
    seen = ganged.observed(*pods, ganged.group(least=3, status=status))
    memory = quorum.followed(None, seen, 100.0)
    assert memory.lost(100.0 + quorum.GRACE_SECONDS) is lost


def test_another_minimum_takes_no_pod_away() -> None:
    pods = [ganged.pod(name, group=True, node="n1") for name in ("a", "b")]
    memory = quorum.followed(None, ganged.observed(*pods, ganged.group(least=2)), 100.0)
    larger = ganged.observed(*pods, ganged.group(least=3, status={"phase": "Running"}))
    for moment in (101.0, 200.0):
        memory = quorum.followed(memory, larger, moment)
    assert not memory.lost(300.0)


def test_a_gang_without_a_minimum_loses_nothing() -> None:
    pods = [ganged.bound(name, "one", group=True) for name in ("a", "b")]
    memory = None
    for now, left in ((0.0, pods), (1.0, pods[:1]), (99.0, pods[:1])):
        memory = quorum.followed(memory, ganged.observed(*left, ganged.group(least=0)), now)
    assert memory == quorum.Memory(0, placed=frozenset({"uid-default-a"}), plans=memory.plans)


@pytest.mark.parametrize("least", ["", "x", "0", "-3", "99999999999", "\u0663"])
def test_a_minimum_that_is_none_is_never_met_or_lost(least) -> None:
    pods = [ganged.pod(name, group=True, node="n1") for name in ("a", "b")]
    raw = ganged.raw_group()
    raw["spec"]["minMember"] = least
    made = ganged.objects.pod_group(raw)
    assert made is not None
    cluster = ganged.Cluster().put(*pods, made)
    assert made.fault
    assert cluster.book.observed("default/g") is None


KINDS = st.sampled_from([UP, DONE, LEAVES, WAITS, FAILED])
# A gang that was never complete loses nothing: every other look or so finds it complete.
LOOKS = st.just(list(WHOLE)) | st.lists(KINDS, min_size=1, max_size=5)


@settings(max_examples=draws.at_least(100))
@given(looks=st.lists(LOOKS, max_size=12))
def test_a_loss_is_never_claimed_without_cause(looks) -> None:
    """Whatever becomes of the pods: complete before, below the minimum now, and not gone."""
    memory, complete = None, False
    for number, pods in enumerate(looks):
        seen, now = gang(*pods), 100.0 + 10 * number
        complete |= quorum.standing(seen, memory).met
        memory = quorum.followed(memory, seen, now)
        living = pods.count(UP)
        if memory.lost_at is not None:
            assert complete
            assert 0 < living < LEAST
            assert memory.lost(now + quorum.SETTLE_SECONDS)
            assert quorum.standing(seen, memory).missing > 0
        if living >= LEAST:
            assert memory.complete
            assert not memory.lost(1e9)
        assert quorum.followed(memory, seen, now + 1) == memory, "the same look changes nothing"


@pytest.mark.parametrize(
    ("living", "minimum", "succeeded", "said"),
    [
        pytest.param(0, 1, 0, "0 of at least 1 pod have a node", id="a-gang-of-one"),
        pytest.param(1, 3, 1, "1 of at least 3 pods has a node, 1 has succeeded", id="one"),
        pytest.param(2, 5, 2, "2 of at least 5 pods have a node, 2 have succeeded", id="several"),
    ],
)
def test_the_sentence_agrees_with_its_numbers(living, minimum, succeeded, said):
    found = quorum.Standing(living=living, minimum=minimum, succeeded=succeeded)
    assert quorum.sentence(found) == said
