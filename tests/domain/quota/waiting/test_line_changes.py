"""Pods in line that could preempt, and pods whose quota comes, goes or changes."""

import msgspec
import pytest

from domain.quota.waiting import line
from tests.domain.quota.forests import a_quota
from tests.domain.quota.waiting.lines import (
    BOUND,
    OPENED,
    A,
    B,
    forest_of,
    waits,
)


class TestPreemption:
    """Pods that could preempt in their own quota."""

    FULL = (waits("low1", "a", 50, state=BOUND), waits("low2", "a", 50, state=BOUND))

    def admissions(self, pods, now=100.0, **rules):
        one = line.Line(line.LineRules(**rules))
        for pod in pods:
            one.put(pod)
        return [
            (each.uid, each.preempts) for each in one.opening(forest_of([A], pods), now, 9).open
        ]

    def test_one_of_a_quota_may_try(self):
        high = [waits(f"h{n}", "a", 30, priority=5, created_at=n) for n in range(2)]
        assert self.admissions([*self.FULL, *high]) == [("h0", True)]

    @pytest.mark.parametrize(
        "pods",
        [
            pytest.param([*FULL, waits("h", "a", 30)], id="no-higher-priority"),
            pytest.param([*FULL, waits("h", "a", 30, priority=5, preempts=False)], id="policy"),
            pytest.param([*FULL, waits("h", "a", 200, priority=5)], id="would-not-suffice"),
            pytest.param(
                [
                    waits("f", "a", 100, state=BOUND, preemptible=False),
                    waits("h", "a", 9, priority=5),
                ],
                id="never-preempted",
            ),
            pytest.param(
                [
                    FULL[0],
                    waits("low2", "a", 50, state=BOUND, leaving=True),
                    waits("h", "a", 30, priority=5),
                ],
                id="somebody-leaves-already",
            ),
            pytest.param(
                [*FULL, waits("o", "a", 9, state=OPENED), waits("h", "a", 30, priority=5)],
                id="somebody-was-let-in-before",
            ),
            pytest.param(
                [
                    *FULL,
                    waits("o", "a", 9, state=OPENED, unschedulable_since=99.0, nominated=True),
                    waits("h", "a", 30, priority=5),
                ],
                id="somebody-preempts-already",
            ),
        ],
    )
    def test_nobody_else(self, pods):
        assert self.admissions(pods) == []

    def test_the_next_tries_when_the_first_has_not_succeeded_for_a_while(self):
        tried = waits("h0", "a", 31, priority=5, state=OPENED, unschedulable_since=90.0)
        pods = [*self.FULL, tried, waits("h1", "a", 30, priority=5)]
        assert self.admissions(pods, now=119.0) == []
        assert self.admissions(pods, now=120.0) == [("h1", True)]

    def test_can_be_switched_off(self):
        pods = [*self.FULL, waits("h0", "a", 30, priority=5)]
        assert self.admissions(pods, preempts=False) == []


class TestQuotasThatComeAndGo:
    """Pods follow the quota that they name, or that their namespace is bound to."""

    def test_pods_of_a_quota_that_was_deleted_go_after_a_while(self):
        pods, one = [waits("1", "a", 500)], line.Line(line.LineRules(unknown_seconds=10))
        one.put(pods[0])
        assert not one.opening(forest_of([A], pods), 100.0, 9).open
        gone = one.opening(forest_of([B], pods), 105.0, 9)
        assert not gone.open
        assert gone.again_at == 115.0
        assert not one.opening(forest_of([A], pods), 110.0, 9).open, "it came back"
        assert one.opening(forest_of([B], pods), 111.0, 9).again_at == 121.0
        assert [each.uid for each in one.opening(forest_of([B], pods), 121.0, 9).open] == ["1"]

    def test_a_pod_moves_with_its_label(self):
        one = line.Line()
        full = waits("full", "a", 100, state=BOUND)
        pods = [full, waits("1", "a", 50)]
        for pod in pods:
            one.put(pod)
        assert not one.opening(forest_of([A, B], pods), 0.0, 9).open
        pods[1] = waits("1", "b", 50)
        one.put(pods[1])
        assert [each.quota for each in one.opening(forest_of([A, B], pods), 0.0, 9).open] == ["b"]

    @pytest.mark.parametrize("leaving", [False, True], ids=["gone", "being deleted"])
    def test_pods_that_nobody_may_preempt_leave_one_after_the_other(self, leaving):
        bound = [waits(str(n), "a", 50, state=BOUND, preemptible=False) for n in range(2)]
        pods, one = [*bound, waits("3", "a", 50)], line.Line()
        for pod in pods:
            one.put(pod)
        assert not one.opening(forest_of([A], pods), 0.0, 9).open
        one.drop("3")
        one.drop("0")
        if leaving:
            one.put(msgspec.structs.replace(bound[1], leaving=True))
        one.drop("1")
        one.put(pods[2])
        assert [each.uid for each in one.opening(forest_of([A], pods[2:]), 1.0, 9).open] == ["3"]

    def test_a_namespace_is_bound_to_another_quota(self):
        pods, one = [waits("1", "", 50, namespace="team")], line.Line()
        one.put(pods[0])
        small = a_quota("s", {}, {"cpu": 10}, namespaces=("team",))
        assert not one.opening(forest_of([small], pods), 0.0, 9).open
        large = a_quota("l", {}, {"cpu": 100}, namespaces=("team",))
        assert [each.quota for each in one.opening(forest_of([large], pods), 0.0, 9).open] == ["l"]
