"""Playing quotas forward: who starts, who leaves, who waits and for what."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.quota.simulation import fit, nominations, what_if, what_if_reclaim
from domain.quota.waiting import line
from tests.domain.quota.forests import a_forest, a_pod, a_quota

NOW = 1000.0


def team(name, minimum, most, **other):
    return a_quota(name, {"cpu": minimum}, {"cpu": most}, **other)


def pod(uid, quota, cpu, node="", *, priority=0, seconds=None, started=0.0, gated=True, **more):
    use = a_pod(uid, quota, {"cpu": cpu}, assigned=bool(node), **more)
    state = line.State.BOUND if node else line.State.GATED if gated else line.State.OPENED
    waits = line.LinePod(uid, use, state, priority=priority, created_at=started)
    return what_if.Pod(uid, f"ns/{uid}", waits, node, started, seconds)


def a_node(name, cpu, pods=110, **more):
    return fit.Node(name, more.get("labels", {}), (), {"cpu": cpu, "pods": pods})


def play(quotas, pods, nodes, **terms):
    total = {"cpu": sum(node.allocatable["cpu"] for node in nodes)}
    forest = a_forest(quotas, [one.line.use for one in pods], total)
    return what_if.play(forest, nodes, pods, NOW, what_if.Terms(**terms))


def test_pods_start_as_far_as_their_quota_and_the_nodes_go():
    waiting = [pod(f"p{i}", "a", 10, started=i) for i in range(5)]
    found = play([team("a", 30, 30)], waiting, [a_node("n1", 100)])
    assert [(one.uid, one.at, one.node) for one in found.starts] == [
        ("p0", NOW, "n1"), ("p1", NOW, "n1"), ("p2", NOW, "n1"),
    ]  # fmt: skip
    assert [(one.uid, one.needs, one.of, one.place, one.of_line) for one in found.waits] == [
        ("p3", {"cpu": 10}, "a", 1, 2), ("p4", {"cpu": 10}, "a", 2, 2),
    ]  # fmt: skip
    assert "Insufficient quotas, quotaName: a" in found.waits[0].sentence
    assert found.forest.figures("a").used["cpu"] == 30


def test_amounts_that_no_machine_has_keep_nobody_else_from_starting():
    runs = [pod("huge", "b", 1 << 80, "n1"), pod("runs", "a", 10, "n2", seconds=NOW + 50)]
    nodes = [a_node("n1", 10), a_node("n2", 20), a_node("n3", 1 << 80)]
    found = play([team("a", 20, 20), team("b", 1, 1)], [*runs, pod("p", "a", 10)], nodes)
    assert [one.uid for one in found.starts] == ["p"]


def test_a_pod_starts_when_one_ends_whose_duration_is_known():
    runs = pod("runs", "a", 30, "n1", started=900.0, seconds=160.0)
    found = play([team("a", 30, 30)], [runs, pod("p", "a", 20)], [a_node("n1", 100)])
    assert [(one.uid, one.at) for one in found.starts] == [("p", 1060.0)]
    # The table of a comparison shows quotas before anything ends.
    assert found.forest.figures("a").used["cpu"] == 30


def test_nothing_is_played_beyond_the_horizon():
    runs = pod("runs", "a", 30, "n1", started=900.0, seconds=160.0)
    found = play([team("a", 30, 30)], [runs, pod("p", "a", 20)], [a_node("n1", 100)], horizon=59.0)
    assert found.starts == ()
    assert [one.uid for one in found.waits] == ["p"]


def test_a_pod_that_no_node_takes_says_what_the_nearest_lacks():
    runs = [pod("r1", "a", 8, "n1"), pod("r2", "a", 5, "n2")]
    found = play(
        [team("a", 100, 100)], [*runs, pod("p", "a", 7)], [a_node("n1", 10), a_node("n2", 10)]
    )
    (wait,) = found.waits
    assert (wait.uid, wait.needs, wait.of) == ("p", {"cpu": 2}, "")


def test_freed_room_goes_to_the_first_in_line_even_if_another_tried_before():
    waiting = [pod("low", "a", 10, started=1), pod("high", "a", 10, priority=5, started=2)]
    runs = pod("runs", "a", 10, "n1", seconds=NOW + 50)
    found = play([team("a", 10, 10)], [runs, *waiting], [a_node("n1", 100)])
    assert [(one.uid, one.at) for one in found.starts] == [("high", NOW + 50)]


@dataclasses.dataclass
class Evicts:
    """Evicts the pods that it is given, once."""

    removals: list

    def preempt(self, world, uid, now):
        return self.removals.pop() if self.removals else None

    def reclaim(self, world, now):
        found, self.removals = self.removals, []
        return found, float("inf")


def test_a_victim_loses_its_work_and_the_pod_gets_its_place():
    pods = [
        pod("victim", "a", 10, "n1", started=NOW - 3600), pod("p", "a", 10, priority=9, gated=False)
    ]  # fmt: skip
    evicts = Evicts([what_if.Removal(("victim",), "preemption", "p", "n1")])
    found = play([team("a", 10, 10)], pods, [a_node("n1", 20)], preemptor=evicts)
    (eviction,) = found.evictions
    assert (eviction.uid, eviction.kind, eviction.gains) == ("victim", "preemption", "p")
    assert eviction.lost == {"cpu": 36_000.0}
    assert [one.uid for one in found.starts] == ["p"]


def test_what_is_reclaimed_is_there_for_those_who_wait():
    pods = [pod("borrows", "b", 80, "n1"), pod("p", "a", 50)]
    evicts = Evicts([what_if.Removal(("borrows",), "reclaim", "a")])
    found = play([team("a", 50, 100), team("b", 50, 100)], pods, [a_node("n1", 100)],
                 reclaimer=evicts)  # fmt: skip
    assert [(one.uid, one.node) for one in found.starts] == [("p", "n1")]
    assert [one.gains for one in found.evictions] == ["a"]


def test_a_more_important_pod_takes_what_was_freed_for_another_one():
    pods = [
        pod("borrows", "b", 10, "n1"),
        pod("high", "a", 10, priority=9, gated=False), pod("low", "a", 10, gated=False),
    ]  # fmt: skip
    evicts = Evicts([what_if.Removal(("borrows",), "reclaim", "low", "n1")])
    found = play([team("a", 10, 20), team("b", 10, 20)], pods, [a_node("n1", 10)],
                 reclaimer=evicts)  # fmt: skip
    assert [one.uid for one in found.starts] == ["high"]


def test_room_is_kept_from_pods_of_the_same_priority_for_as_long_as_it_is_nominated():
    small = pod("small", "a", 6, gated=False, started=1)
    large = pod("large", "a", 10, gated=False, started=2)
    # Only half of what the large one needs becomes free.
    runs = [pod("leaves", "a", 6, "n1"), pod("stays", "a", 4, "n1")]
    evicts = Evicts([what_if.Removal(("leaves",), "reclaim", "large", "n1")])
    found = play([team("a", 90, 90)], [*runs, small, large], [a_node("n1", 10)],
                 reclaimer=evicts)  # fmt: skip
    assert [(one.uid, one.at) for one in found.starts] == [
        ("small", NOW + nominations.KEPT_SECONDS)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("priority", "starts"),
    [
        pytest.param(0, [("p", NOW + 30)], id="of the same priority, after it ended"),
        pytest.param(1, [("p", NOW)], id="of a higher one, at once"),
    ],
)
def test_a_nomination_of_the_beginning_counts(priority, starts):
    expected = msgspec.structs.replace(pod("e", "a", 20, gated=False), nominated="n1")
    found = play([team("a", 90, 90)], [expected, pod("p", "a", 4, priority=priority, gated=False)],
                 [a_node("n1", 10)])  # fmt: skip
    assert [(one.uid, one.at) for one in found.starts] == starts


def borrowed(**more):
    young = pod("young", "b", 30, "n1", started=NOW - 600)
    return play(
        [team("a", 50, 100), team("b", 50, 100)],
        [pod("old", "b", 60, "n1", started=NOW - 7200), young, pod("p", "a", 40)],
        [a_node("n1", 100)], **more,
    )  # fmt: skip


def test_borrowers_leave_after_the_grace_for_who_is_entitled_and_no_sooner():
    found = borrowed(reclaimer=what_if_reclaim.Reclaimer(120.0))
    (eviction,) = found.evictions
    assert (eviction.uid, eviction.at, eviction.kind) == ("young", NOW + 120, "reclaim")
    assert (eviction.gains, eviction.lost) == ("p", {"cpu": 30 * 720.0})
    assert [(one.uid, one.at) for one in found.starts] == [("p", NOW + 120)]
    assert borrowed(reclaimer=what_if_reclaim.Reclaimer(120.0), horizon=100.0).evictions == ()


def test_for_a_pod_that_another_one_overtook_borrowers_leave_elsewhere_and_later():
    pods = [
        pod("b1", "b", 40, "n1", started=NOW - 60), pod("b2", "b", 40, "n2", started=NOW - 90),
        pod("p", "a", 40, started=1),
        pod("high", "", 40, priority=9, gated=False, started=2),
    ]  # fmt: skip
    found = play([team("a", 40, 80), team("b", 0, 10)], pods, [a_node("n1", 40), a_node("n2", 40)],
                 reclaimer=what_if_reclaim.Reclaimer(10.0))  # fmt: skip
    assert [(one.uid, one.at) for one in found.evictions] == [("b1", NOW + 10), ("b2", NOW + 100)]
    assert [(one.uid, one.at, one.node) for one in found.starts] == [
        ("high", NOW + 10, "n1"), ("p", NOW + 100, "n2"),
    ]  # fmt: skip


def test_nobody_leaves_who_is_exempt_or_for_nobody():
    reclaimer = what_if_reclaim.Reclaimer(0.0, exempt=lambda uid: True)
    assert borrowed(reclaimer=reclaimer).evictions == ()
    over = [pod("p", "b", 90, "n1")]
    quotas = [team("a", 50, 100), team("b", 50, 60)]
    assert play(quotas, over, [a_node("n1", 100)],
                reclaimer=what_if_reclaim.Reclaimer(0.0)).evictions == ()  # fmt: skip
    found = play(quotas, over, [a_node("n1", 100)],
                 reclaimer=what_if_reclaim.Reclaimer(60.0, revokes=True))  # fmt: skip
    assert [(one.uid, one.at, one.kind) for one in found.evictions] == [
        ("p", NOW + 60, "revoke")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("refused", "starts"),
    [
        (what_if.Refused.TRIED_AGAIN, ["other", "refused"]),
        (what_if.Refused.TRIED_LAST, ["opened", "other"]),
        (what_if.Refused.SLEEP, ["opened"]),
    ],
    ids=lambda value: value.name if isinstance(value, what_if.Refused) else "",
)
def test_a_pod_that_was_refused_before_is_tried_first_last_or_when_a_pod_has_left(refused, starts):
    # A change has opened both quotas: in one the refused pod and the gated one rule each other out.
    pods = [
        was_refused(pod("refused", "a", 10, gated=False, priority=9)),
        pod("opened", "a", 8),
        was_refused(pod("other", "b", 5, gated=False)),
    ]
    found = play([team("a", 10, 10), team("b", 5, 5)], pods, [a_node("n1", 100)], refused=refused)
    assert sorted(start.uid for start in found.starts) == starts


def was_refused(one):
    waits = msgspec.structs.replace(one.line, unschedulable_since=NOW - 600)
    return msgspec.structs.replace(one, line=waits)


def test_pods_behind_gates_of_others_keep_waiting():
    blocked = pod("p", "a", 1)
    blocked = msgspec.structs.replace(
        blocked, line=msgspec.structs.replace(blocked.line, state=line.State.BLOCKED)
    )
    found = play([team("a", 10, 10)], [blocked], [a_node("n1", 20)])
    assert [one.sentence for one in found.waits] == ["other scheduling gates keep it waiting"]


@pytest.mark.parametrize("node", [a_node("n1", 4, pods=1), a_node("n1", 3)], ids=["pods", "cpu"])
def test_a_node_is_never_filled_beyond_what_it_offers(node):
    found = play([team("a", 9, 9)], [pod("p", "a", 2), pod("q", "a", 2)], [node])
    assert len(found.starts) == 1


CASE = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 20), st.integers(0, 3), st.booleans(),
              st.integers(1, 500)),
    max_size=12,
)  # fmt: skip


@given(CASE, st.integers(10, 60))
def test_whatever_happens_limits_hold_and_nothing_is_lost_twice(drawn, size):
    quotas = [team("a", 10, 40), team("b", 20, 40), team("c", 0, 30)]
    nodes, free = [a_node("n1", size), a_node("n2", size)], {"n1": size, "n2": size}
    pods = []
    for number, (quota, cpu, priority, runs, seconds) in enumerate(drawn):
        node = next((name for name, left in free.items() if runs and left >= cpu), "")
        if node:
            free[node] -= cpu
        pods.append(pod(f"p{number}", quota, cpu, node, priority=priority, seconds=NOW + seconds))
    found = play(quotas, pods, nodes)
    started = [one.uid for one in found.starts]
    assert len(started) == len(set(started))
    assert {one.uid for one in found.waits} | set(started) == {p.uid for p in pods if not p.node}
    at_once = [one for one in found.starts if one.at == NOW]
    used = {name: size - free[name] for name in free}
    for one in at_once:
        used[one.node] += next(p for p in pods if p.uid == one.uid).asks["cpu"]
    assert max(used.values()) <= size
    for name in "abc":
        figures = found.forest.figures(name)
        mine = sum(p.asks["cpu"] for p in pods if p.line.use.quota == name and p.node)
        assert figures.used["cpu"] <= max(figures.cap["cpu"], mine)
    assert found == play(quotas, pods, nodes)
