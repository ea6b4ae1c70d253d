"""Whatever comes and goes: never too many, and no pod waits for nothing."""

import msgspec
from hypothesis import given, settings, stateful
from hypothesis import strategies as some

from domain.quota import model
from domain.quota.waiting import line
from tests.domain.quota.forests import a_forest, a_quota
from tests.domain.quota.waiting.lines import (
    BOUND,
    GATED,
    OPENED,
    A,
    B,
    opened,
    waits,
)

QUOTAS = ("a", "b", "c")


class Admitting(stateful.RuleBasedStateMachine):
    """Whatever happens in whatever order, nobody is let in too many, or kept for nothing."""

    def __init__(self):
        super().__init__()
        self.line = line.Line(line.LineRules(overtakes=None, unknown_seconds=0))
        self.caps = dict.fromkeys(QUOTAS, 60)
        self.total = 100
        self.pods = {}
        self.now = 0.0
        self.number = 0
        self.parents = False

    def forest(self, assigned=()):
        quotas = [a_quota("top", {"cpu": 60}, {"cpu": 90}, is_parent=True)]
        quotas += [
            a_quota(name, {"cpu": 20}, {"cpu": cap}, parent="top")
            for name, cap in self.caps.items()
            if cap
        ]
        uses = [
            msgspec.structs.replace(pod.use, assigned=pod.use.assigned or pod.uid in assigned)
            for pod in self.pods.values()
        ]
        rules = model.Rules(check_parents=self.parents, runtime=not self.parents)
        return a_forest(quotas, uses, {"cpu": self.total}, rules)

    def put(self, pod):
        self.pods[pod.uid] = pod
        self.line.put(pod)

    @stateful.initialize(parents=some.booleans())
    def begin(self, parents):
        self.parents = parents

    @stateful.rule(
        quota=some.sampled_from((*QUOTAS, "")),
        cpu=some.integers(0, 50),
        priority=some.integers(0, 2),
        firm=some.booleans(),
    )
    def comes(self, quota, cpu, priority, firm):
        self.number += 1
        self.put(
            waits(
                f"p{self.number}",
                quota,
                cpu,
                preemptible=not firm,
                priority=priority,
                created_at=self.number,
                preempts=False,
            )
        )

    @stateful.rule(data=some.data())
    def leaves(self, data):
        if self.pods:
            uid = data.draw(some.sampled_from(sorted(self.pods)))
            del self.pods[uid]
            self.line.drop(uid)

    @stateful.rule(data=some.data(), bound=some.booleans())
    def is_scheduled(self, data, bound):
        chosen = sorted(pod.uid for pod in self.pods.values() if pod.state is OPENED)
        if chosen:
            pod = self.pods[data.draw(some.sampled_from(chosen))]
            if not bound:
                self.put(msgspec.structs.replace(pod, unschedulable_since=self.now))
                return
            use = msgspec.structs.replace(pod.use, assigned=True)
            self.put(msgspec.structs.replace(pod, use=use, state=BOUND))

    @stateful.rule(name=some.sampled_from(QUOTAS), cap=some.sampled_from((0, 30, 60, 80)))
    def quota_changes(self, name, cap):
        self.caps[name] = cap

    @stateful.rule(total=some.sampled_from((0, 60, 100, 200)))
    def nodes_change(self, total):
        self.total = total

    @stateful.rule(seconds=some.sampled_from((1.0, 40.0)))
    def time_passes(self, seconds):
        self.now += seconds

    @stateful.rule(most=some.sampled_from((1, 3, 100)))
    def gates_open(self, most):
        forest = self.forest()
        fresh = line.Line(self.line.rules)
        for pod in self.pods.values():
            fresh.put(pod)
        charged = {pod.uid for pod in self.pods.values() if pod.charged}
        opening = self.line.opening(forest, self.now, most)
        assert opening == fresh.opening(forest, self.now, most), "recomputed is not incremental"
        assert len(opening.open) <= most
        for each in opening.open:
            pod = self.pods[each.uid]
            if each.quota not in ("", "koordinator-default-quota"):
                assert self.short(pod, charged) is None, "too many were let in"
            charged.add(each.uid)
            self.pods[each.uid] = self.line.get(each.uid)
        if not opening.more:
            self.nobody_waits_for_nothing(charged)

    def short(self, pod, charged):
        forest = self.forest(charged)
        name = forest.name_of(pod.use.quota, pod.use.namespace)
        return forest.shortage(name, pod.use.requests, preemptible=pod.use.preemptible)

    def nobody_waits_for_nothing(self, charged):
        holds = line.plan(self.forest(), self.pods.values(), self.now, self.line.rules)[1]
        for pod in self.pods.values():
            if pod.state is GATED and self.short(pod, charged) is None:
                assert "no node" in holds[pod.uid].note


TestAdmitting = Admitting.TestCase
TestAdmitting.settings = settings(max_examples=30, stateful_step_count=25)


@given(
    some.permutations(
        [
            waits(str(n), q, c)
            for n, (q, c) in enumerate(
                [("a", 30), ("a", 50), ("b", 20), ("b", 70), ("a", 10), ("b", 5)]
            )
        ]
    )
)
def test_the_order_of_events_makes_no_difference(pods):
    assert opened([A, B], pods) == opened([A, B], sorted(pods, key=lambda one: one.uid))
