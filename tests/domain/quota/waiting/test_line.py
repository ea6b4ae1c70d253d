"""Who may go next among pods that wait for quota: fair, never too many, nobody for ever."""

import msgspec
import pytest

from domain.quota.waiting import line
from tests import processor_time
from tests.domain.quota.forests import a_quota
from tests.domain.quota.waiting.lines import (
    BOUND,
    OPENED,
    A,
    B,
    forest_of,
    opened,
    waits,
    zone,
)


@pytest.mark.parametrize(
    ("quotas", "pods", "expected"),
    [
        pytest.param([A], [waits("1", "a", 60), waits("2", "a", 60)], ["1"], id="as-many-as-fit"),
        pytest.param(
            [A],
            [waits("new", "a", 60, created_at=2), waits("old", "a", 60, created_at=1)],
            ["old"],
            id="older-first",
        ),
        pytest.param(
            [A],
            [waits("old", "a", 60), waits("urgent", "a", 60, created_at=9, priority=5)],
            ["urgent"],
            id="priority-before-age",
        ),
        pytest.param(
            [A],
            [waits("let-in", "a", 60, state=OPENED), waits("next", "a", 60)],
            [],
            id="who-was-let-in-is-charged",
        ),
        pytest.param(
            [A],
            [
                waits("stuck", "a", 60, state=OPENED, unschedulable_since=1.0),
                waits("next", "a", 70),
            ],
            ["next"],
            id="who-finds-no-node-withholds-nothing",
        ),
        pytest.param(
            [A],
            [
                waits("taken", "a", 60, state=OPENED, unschedulable_since=1.0, nominated=True),
                waits("next", "a", 70),
            ],
            [],
            id="who-has-room-made-for-it-is-charged",
        ),
        pytest.param(
            [A],
            [waits("bound", "a", 60, state=BOUND), waits("1", "a", 60), waits("2", "a", 40)],
            ["2"],
            id="smaller-ones-overtake",
        ),
        pytest.param(
            [A, B],
            [
                waits("have", "a", 40, state=BOUND),
                waits("borrows", "a", 10, created_at=1),
                waits("entitled", "b", 10, created_at=2),
            ],
            ["entitled", "borrows"],
            id="entitled-before-borrowers",
        ),
        pytest.param(
            [A, a_quota("b", {"cpu": 40}, {"cpu": 100}, priority=9)],
            [
                waits("used-a", "a", 40, state=BOUND),
                waits("used-b", "b", 60, state=BOUND),
                waits("low", "a", 10),
                waits("high", "b", 10),
            ],
            ["high", "low"],
            id="priority-of-the-quota",
        ),
        pytest.param(
            [A, B],
            [
                waits("used-a", "a", 60, state=BOUND),
                waits("used-b", "b", 50, state=BOUND),
                waits("a1", "a", 10),
                waits("b1", "b", 10),
                waits("b2", "b", 10, created_at=1),
            ],
            ["b1", "a1", "b2"],
            id="least-share-first",
        ),
        pytest.param(
            [A],
            [waits("firm", "a", 50, preemptible=False), waits("soft", "a", 50, created_at=1)],
            ["soft"],
            id="never-preempted-stays-within-the-minimum",
        ),
        pytest.param(
            [A],
            [waits("held", "a", 10, state=line.State.BLOCKED), waits("free", "a", 10)],
            ["free"],
            id="gates-of-others",
        ),
        pytest.param([A], [waits("lost", "gone", 9999)], ["lost"], id="a-quota-that-never-was"),
        pytest.param([A], [waits("none", "", 9999)], ["none"], id="no-quota"),
        pytest.param(
            [A],
            [waits(str(n), "a", 0) for n in range(3)],
            ["0", "1", "2"],
            id="asks-for-nothing",
        ),
        pytest.param(
            [a_quota("a", {}, {"cpu": 100, "pods": 2})],
            [waits(str(n), "a", 10) for n in range(3)],
            ["0", "1"],
            id="pods-are-a-resource",
        ),
    ],
)
def test_who_goes(quotas, pods, expected):
    found = opened(quotas, pods, rules=line.LineRules(unknown_seconds=0))
    assert found == expected


def test_ancestors_are_checked_where_the_rules_say_so():
    quotas = [
        a_quota("top", {"cpu": 50}, {"cpu": 50}, is_parent=True),
        a_quota("a", {"cpu": 0}, {"cpu": 100}, parent="top"),
        a_quota("b", {"cpu": 0}, {"cpu": 100}, parent="top"),
    ]
    pods = [waits("a1", "a", 40), waits("b1", "b", 40)]
    assert opened(quotas, pods, runtime=False) == ["a1", "b1"]
    assert opened(quotas, pods, runtime=False, check_parents=True) == ["a1"]


def test_no_more_at_once_than_asked_for_and_the_rest_in_the_next_round():
    pods = [waits(str(n), "a", 10, created_at=n) for n in range(5)]
    forest, one = forest_of([A], pods), line.Line()
    for pod in pods:
        one.put(pod)
    first = one.opening(forest, 0.0, 2)
    assert [each.uid for each in first.open] == ["0", "1"]
    assert first.more
    rest = one.opening(forest, 0.0, 10)
    assert [each.uid for each in rest.open] == ["2", "3", "4"]
    assert not rest.more


def test_a_gate_that_could_not_be_opened_is_opened_again():
    pods, one = [waits("1", "a", 60)], line.Line()
    one.put(pods[0])
    forest = forest_of([A], pods)
    assert one.opening(forest, 0.0, 9).open
    assert not one.opening(forest, 0.0, 9).open
    one.put(pods[0])
    assert one.opening(forest, 0.0, 9).open


def test_a_quota_of_which_nobody_could_go_is_looked_at_again_when_others_come():
    one, full = line.Line(), waits("full", "a", 95, state=BOUND)
    large, small = waits("large", "a", 50), waits("small", "a", 5)
    one.put(large)
    assert not one.opening(forest_of([A], [full, large]), 0.0, 9).open
    one.drop("large")
    one.put(small)
    opening = one.opening(forest_of([A], [full, small]), 0.0, 9)
    assert [each.uid for each in opening.open] == ["small"]


def churn(rules, head, small, rounds):
    """Let small pods come and go around a large one; return how many went before it."""
    quotas, one = [A], line.Line(rules)
    running = [waits(f"r{n}", "a", 10, state=BOUND) for n in range(10)]
    queue = [head, *(small(n) for n in range(rounds))]
    for pod in (*running, *queue):
        one.put(pod)
    for number in range(rounds):
        one.drop(running.pop(0).uid)
        forest = forest_of(quotas, [*running, *queue])
        for each in one.opening(forest, 0.0, 9).open:
            if each.uid == head.uid:
                return number
            pod = next(pod for pod in queue if pod.uid == each.uid)
            queue.remove(pod)
            running.append(waits(pod.uid, "a", 10, state=BOUND))
            one.put(running[-1])
        if not running:
            return None
    return None


@pytest.mark.parametrize(
    ("overtakes", "went"),
    [
        pytest.param(0, 4, id="strict"),
        pytest.param(7, 7 + 4, id="bounded"),
        pytest.param(None, None, id="best-effort"),
    ],
)
def test_a_large_pod_is_overtaken_only_so_often(overtakes, went):
    head = waits("head", "a", 50, created_at=-1)
    rules = line.LineRules(overtakes=overtakes)
    assert churn(rules, head, lambda n: waits(f"s{n}", "a", 10, created_at=n), 40) == went


def test_what_takes_nothing_that_the_first_lacks_may_always_overtake():
    quota = a_quota("a", {}, {"cpu": 100, "memory": 100})
    pods = [
        waits("used", "a", 90, state=BOUND),
        waits("head", "a", 50),
        *(waits(f"cpu{n}", "a", 1, created_at=n) for n in range(1, 4)),
        *(waits(f"mem{n}", "a", 0, memory=5, created_at=n) for n in range(1, 4)),
    ]
    found = opened([quota], pods, rules=line.LineRules(overtakes=1))
    assert found == ["cpu1", "mem1", "mem2", "mem3"]


def test_who_would_not_even_fit_an_empty_quota_holds_up_nobody():
    pods = [waits("huge", "a", 101), *(waits(f"s{n}", "a", 10, created_at=n) for n in range(3))]
    assert opened([A], pods, rules=line.LineRules(overtakes=0)) == ["s0", "s1", "s2"]


def test_siblings_overtake_what_waits_for_their_parent_only_so_often():
    quotas = [
        a_quota("top", {"cpu": 60}, {"cpu": 60}, is_parent=True),
        a_quota("a", {"cpu": 0}, {"cpu": 100}, parent="top"),
        a_quota("b", {"cpu": 10}, {"cpu": 100}, parent="top"),
    ]
    pods = [
        waits("used", "b", 30, state=BOUND),
        waits("head", "a", 40),
        *(waits(f"b{n}", "b", 5, created_at=n) for n in range(5)),
    ]
    rules = line.LineRules(overtakes=2)
    assert opened(quotas, pods, rules=rules, runtime=False, check_parents=True) == ["b0", "b1"]
    # A guarantee does not wait for a loan.
    pods[0] = waits("used", "a", 30, state=BOUND)
    found = opened(
        quotas, pods, rules=line.LineRules(overtakes=0), runtime=False, check_parents=True
    )
    assert found == ["b0", "b1"]


class TestNoNode:
    """Pods that were let in and find no node."""

    def test_another_like_it_tries_after_a_while_one_at_a_time(self):
        stuck = waits("stuck", "a", 10, state=OPENED, unschedulable_since=100.0)
        pods = [stuck, waits("2", "a", 10), waits("3", "a", 10), waits("other", "a", 11)]
        one = line.Line(line.LineRules(retry_seconds=30))
        for pod in pods:
            one.put(pod)
        forest = forest_of([A], pods)
        first = one.opening(forest, 110.0, 9)
        assert [each.uid for each in first.open] == ["other"]
        assert first.again_at == 130.0
        assert [each.uid for each in one.opening(forest, 130.0, 9).open] == ["2"]
        assert not one.opening(forest, 170.0, 9).open
        one.put(msgspec.structs.replace(one.get("2"), unschedulable_since=131.0))
        assert not one.opening(forest, 160.0, 9).open
        assert [each.uid for each in one.opening(forest, 161.0, 9).open] == ["3"]

    def test_all_go_once_one_of_them_has_a_node(self):
        stuck = waits("stuck", "a", 10, state=OPENED, unschedulable_since=100.0)
        pods = [stuck, waits("2", "a", 10), waits("3", "a", 10)]
        bound = waits("stuck", "a", 10, state=BOUND)
        assert opened([A], pods, now=110.0) == []
        assert opened([A], [bound, *pods[1:]], now=110.0) == ["2", "3"]

    def test_those_with_other_requirements_of_nodes_need_not_wait(self):
        stuck = waits("s", "a", 10, state=OPENED, unschedulable_since=1.0, placement=zone("x"))
        assert opened([A], [stuck, waits("2", "a", 10, placement=zone("y"))], now=2.0) == ["2"]


def test_holds_say_what_everybody_waits_for_and_their_place():
    pods = [
        waits("bound", "a", 60, state=BOUND),
        waits("let-in", "a", 30, state=OPENED),
        waits("big", "a", 80, created_at=1),
        waits("promised", "a", 30, created_at=2),
    ]
    opening, holds = line.plan(forest_of([A], pods), pods, 0.0, line.LineRules(overtakes=0))
    assert not opening.open
    big, promised = holds["big"], holds["promised"]
    assert (big.reason, big.place, big.of) == (line.INSUFFICIENT_QUOTA, 1, 2)
    assert big.shortage.exceeded == ("cpu",)
    assert big.note == big.shortage.text()
    assert (promised.reason, promised.place) == (line.WAITING_IN_LINE, 2)
    assert "promised to pods that were let in" in promised.note
    pods[1:2] = []
    _, holds = line.plan(forest_of([A], pods), pods, 0.0, line.LineRules(overtakes=0))
    assert "drains for a pod" in holds["promised"].note


def test_holds_of_those_who_found_no_node_say_what_their_quota_lacks():
    pods = [
        waits("bound", "a", 70, state=BOUND),
        waits("small", "a", 30, state=OPENED, unschedulable_since=1.0),
        waits("large", "a", 31, state=OPENED, unschedulable_since=1.0),
        waits("chosen", "a", 31, state=OPENED, unschedulable_since=1.0, nominated=True),
        waits("untried", "a", 31, state=OPENED),
        waits("elsewhere", "b", 10, state=OPENED, unschedulable_since=1.0),
    ]
    one = line.Line()
    for pod in pods:
        one.put(pod)
    holds = one.holds(forest_of([A, B], pods), 2.0)
    assert one.unplaced() == {"a", "b"}
    (held,) = holds.unplaced("a")
    assert (held.uid, held.reason, held.place) == ("large", line.INSUFFICIENT_QUOTA, 0)
    assert held.note == (
        f"{held.shortage.text()}; its gate was opened before, and no node had room for it"
    )
    assert not list(holds.unplaced("b"))


def test_a_hostile_number_of_different_requests_is_bounded_and_all_go_in_the_end():
    pods = [waits(f"p{n:05}", "a", n + 1, created_at=n) for n in range(1000)]
    quota = a_quota("a", {}, {"cpu": 2_100_000})
    one = line.Line()
    for pod in pods:
        one.put(pod)
    forest = forest_of([quota], pods, total={"cpu": 10_000_000})
    with processor_time.below(1.0):
        seen = set()
        while found := one.opening(forest, 0.0, 500).open:
            for each in found:
                seen.add(each.uid)
                one.drop(each.uid)
    assert len(seen) == 1000


def test_a_look_at_many_pods_is_cheap():
    quotas = [a_quota(f"q{n}", {"cpu": 10}, {"cpu": 100}) for n in range(200)]
    one, pods = line.Line(), []
    for number in range(200):
        pods.append(waits(f"r{number}", f"q{number}", 100, state=BOUND))
        pods += [waits(f"w{number}-{n}", f"q{number}", 5 + n % 4, created_at=n) for n in range(100)]
    for pod in pods:
        one.put(pod)
    forest = forest_of(quotas, pods, total={"cpu": 100_000})
    one.opening(forest, 0.0, 64)
    with processor_time.below(0.08):
        assert not one.opening(forest, 0.0, 64).open
