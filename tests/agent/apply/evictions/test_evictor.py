"""Pods are evicted through the API: within budgets, at a limited rate, never twice."""

import errno
import time

import msgspec
import pytest

from agent.apply.evictions import evictor
from agent.model import edits
from api import resources
from kube.client import access, client
from kube.controllers import recorder
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from simulator import faults
from simulator.apiserver import apiserver
from tests import patience

LIMITS = evictor.Limits(burst=2, per_minute=6)


class Bench:
    """A control plane with pods of one node and an evictor in front of it."""

    def __init__(self, plane, clock, acting, answers):
        self.plane, self.clock, self.acting, self.answers = plane, clock, acting, answers
        self.uids = {}

    def pod(self, name, **labels):
        container = {"name": "c", "image": "i"}
        made = self.plane.objects.create(
            resources.PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "spec": {"nodeName": "node-1", "containers": [container]},
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )
        self.uids[name] = made["metadata"]["uid"]
        return edits.Eviction("default", name, self.uids[name], f"{name} is in the way")

    def want(self, *evictions, acting=True, present=None):
        known = set(self.uids.values()) if present is None else present
        self.acting.want(evictions if acting else (), known, () if acting else evictions)

    def left(self):
        there = self.plane.objects.list(resources.PODS).items
        return {
            pod["metadata"]["name"] for pod in there if not pod["metadata"].get("deletionTimestamp")
        }

    def outcomes(self):
        return [(answer.outcome, answer.eviction.name) for answer in self.answers]

    async def until(self, condition):
        await patience.arrives(condition, self.outcomes)

    def events(self):
        return [
            (event["reason"], (event.get("regarding") or event["involvedObject"])["name"])
            for event in self.plane.objects.list(resources.CORE_EVENTS).items
        ]


@pytest.fixture
async def bench():
    clock = ManualClock(float(int(time.time())))
    trouble = faults.Faults(clock)
    async with apiserver.running(clock=clock, options=apiserver.Options(faults=trouble)) as plane:
        entry = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with (
            client.Client(entry, clock=clock, user_agent="test") as kube,
            supervise.Supervisor("test") as supervisor,
        ):
            answers = []
            figures = metrics.Registry()
            events = recorder.Recorder(kube, "koord-agent", clock, instance="node-1")
            events.start(supervisor)
            acting = evictor.Evictor(
                kube, clock, events, figures, tell=answers.append, limits=LIMITS
            )
            supervisor.start("evict", acting.run)
            bench = Bench(plane, clock, acting, answers)
            bench.faults, bench.figures = trouble, figures
            yield bench


async def test_a_pod_is_evicted_once_and_an_event_says_why(bench):
    wish = bench.pod("greedy")
    bench.want(wish)
    await bench.until(lambda: bench.answers)
    assert bench.outcomes() == [("evicted", "greedy")]
    assert bench.acting.leaving == {wish.uid}
    assert bench.left() == set()
    for _ in range(3):
        bench.want(wish)
        await bench.clock.advance(60)
    assert len(bench.answers) == 1
    await bench.until(bench.events)
    assert bench.events() == [(evictor.EVICTED, "greedy")]
    bench.want(present=())
    assert bench.acting.leaving == set()


async def test_no_more_than_the_rate_allows(bench):
    wishes = [bench.pod(f"p{number}") for number in range(5)]
    bench.want(*wishes)
    await bench.until(lambda: len(bench.answers) == 2)
    await bench.clock.advance(9)
    assert len(bench.answers) == 2
    bench.want(*wishes)
    await bench.clock.advance(2)
    await bench.until(lambda: len(bench.answers) == 3)
    await bench.clock.advance(10)
    await bench.until(lambda: len(bench.answers) == 4)
    assert bench.outcomes() == [("evicted", f"p{number}") for number in range(4)]


async def test_what_is_not_wanted_any_more_is_not_sent(bench):
    wishes = [bench.pod(f"p{number}") for number in range(4)]
    bench.want(*wishes)
    await bench.until(lambda: len(bench.answers) == 2)
    bench.want()
    await bench.clock.advance(120)
    assert bench.left() == {"p2", "p3"}


async def test_a_budget_refuses_and_the_next_victim_goes(bench):
    protected, other = bench.pod("protected", app="web"), bench.pod("other")
    bench.plane.objects.create(
        resources.POD_DISRUPTION_BUDGETS,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    bench.want(protected, other)
    await bench.until(lambda: len(bench.answers) == 2)
    assert bench.outcomes() == [("refused", "protected"), ("evicted", "other")]
    assert bench.left() == {"protected"}
    assert bench.acting.refused == {protected.uid}
    bench.want(protected, other)
    await bench.clock.advance(4)
    assert len(bench.answers) == 2
    for expected in (3, 4):
        bench.want(protected, other)
        await bench.clock.advance(11)
        await bench.until(lambda many=expected: len(bench.answers) >= many)
    assert {outcome for outcome, name in bench.outcomes() if name == "protected"} == {"refused"}
    await bench.until(lambda: (evictor.REFUSED, "protected") in bench.events())


async def test_another_pod_of_that_name_stays(bench):
    bench.pod("reborn")
    bench.want(edits.Eviction("default", "reborn", "uid-of-the-one-before", "old"))
    await bench.clock.advance(1)
    await bench.until(lambda: bench.acting.leaving)
    assert bench.left() == {"reborn"}
    assert bench.answers == []


async def test_a_pod_that_left_by_itself_is_no_failure(bench):
    bench.want(edits.Eviction("default", "gone", "u", "old"))
    await bench.until(lambda: "u" in bench.acting.leaving)
    assert bench.answers == []
    assert bench.acting.problem is None


async def test_observing_says_each_once_and_evicts_nothing(bench):
    one, two = bench.pod("one"), bench.pod("two")
    bench.want(one, acting=False)
    bench.want(one, two, acting=False)
    bench.want(one, two, acting=False)
    await bench.clock.advance(60)
    assert bench.outcomes() == [("would have evicted", "one"), ("would have evicted", "two")]
    assert bench.left() == {"one", "two"}
    assert bench.events() == []


async def test_an_outage_is_named_and_ends(bench):
    wish = bench.pod("greedy")
    bench.faults.add(
        faults.Rule(faults.Refuse(500), verb="create", subresource="eviction", times=2)
    )
    bench.want(wish)
    await bench.until(lambda: bench.answers)
    assert bench.outcomes() == [("failed", "greedy")]
    assert "default/greedy cannot be evicted" in bench.acting.problem
    assert bench.acting.leaving == frozenset()

    async def want_again():
        bench.want(wish)
        await bench.clock.advance(10)

    await patience.until(lambda: len(bench.answers) == 3, want_again)
    assert bench.outcomes()[1:] == [("failed", "greedy"), ("evicted", "greedy")]
    assert bench.acting.problem is None
    assert bench.figures.value("koord_agent_evictions_total", {"outcome": "failed"}) == 2


def slow(wish, seconds):
    return msgspec.structs.replace(wish, own_grace_seconds=seconds)


async def test_who_takes_long_to_stop_still_uses_what_it_uses(bench):
    patient, quick = slow(bench.pod("patient"), 3600), bench.pod("quick")
    bench.want(patient, quick)
    await bench.until(lambda: len(bench.answers) == 2)
    assert bench.acting.leaving == {quick.uid}
    assert bench.acting.refused == {patient.uid}
    # Its grace period is over and it is still there: it counts again.
    await bench.clock.advance(39)
    assert bench.acting.leaving == {quick.uid}
    await bench.clock.advance(2)
    assert (bench.acting.leaving, bench.acting.refused) == (set(), {patient.uid, quick.uid})
    bench.want(patient, quick)
    await bench.clock.advance(60)
    assert len(bench.answers) == 2
    bench.want(present=())
    assert bench.acting.refused == set()


@pytest.mark.parametrize(
    ("wanted", "longest", "expected"),
    [(None, None, 30), (7, None, 7), (None, 12, 12), (7, 12, 7), (20, 12, 12), (0, None, 0)],
)
async def test_the_grace_period_that_is_asked_for(bench, wanted, longest, expected):
    wish = msgspec.structs.replace(slow(bench.pod("one"), 3600), grace_seconds=wanted)
    bench.acting._limits = msgspec.structs.replace(LIMITS, longest_grace_seconds=longest)
    bench.want(wish)
    await bench.until(lambda: bench.answers)
    assert bench.outcomes() == [("evicted", "one")]
    there = bench.plane.objects.list(resources.PODS).items
    # A pod that has no time at all is removed at once.
    assert [pod["metadata"]["deletionGracePeriodSeconds"] for pod in there] == (
        [expected] if expected else []
    )
    soon = wanted is not None or longest is not None
    assert (bench.acting.leaving == {wish.uid}) is soon


class Killing:
    """Who ends containers, where it is let."""

    def __init__(self):
        self.critical, self.killed, self.fails = True, [], False

    def may(self, _wish):
        return self.critical

    def kill(self, wish):
        if self.fails:
            raise PermissionError(errno.EPERM, "not permitted")
        self.killed.append(wish.name)
        return "killed c1"


@pytest.fixture
def killing(bench):
    bench.acting.killer = Killing()
    return bench.acting.killer


def away(bench, times=None):
    bench.faults.add(
        faults.Rule(faults.Refuse(503), verb="create", subresource="eviction", times=times)
    )


async def asked(bench, *wishes, seconds=3):
    """Let ticks ask for it."""
    for _ in range(seconds):
        bench.want(*wishes)
        await bench.clock.advance(1)


async def test_containers_are_killed_while_nobody_answers_and_memory_is_critical(bench, killing):
    wish = bench.pod("greedy")
    away(bench)
    bench.want(wish)
    await bench.until(lambda: bench.answers)
    # The API server is asked first.
    assert (bench.outcomes(), killing.killed) == ([("failed", "greedy")], [])
    await asked(bench, wish)
    await bench.until(lambda: killing.killed)
    assert killing.killed == ["greedy"]
    assert bench.outcomes()[-1] == ("killed", "greedy")
    assert "the API server is away; killed c1" in bench.answers[-1].reason
    # It comes back, and others have their turn before it is killed again.
    assert bench.acting.refused == {wish.uid}
    await asked(bench, wish)
    assert killing.killed == ["greedy"]


@pytest.mark.parametrize("how", ["not critical", "nobody may", "observed", "ceased"])
async def test_nothing_is_killed_where_it_must_not_be(bench, killing, how):
    wish = bench.pod("greedy")
    away(bench)
    if how == "not critical":
        killing.critical = False
    if how == "nobody may":
        bench.acting.killer = None
    bench.want(wish, acting=how != "observed")
    if how == "ceased":
        await bench.until(lambda: bench.answers)
        bench.acting.cease()
    await bench.clock.advance(1)
    for _ in range(20):
        if how != "ceased":
            bench.want(wish, acting=how != "observed")
        await bench.clock.advance(1)
    assert killing.killed == []
    assert "killed" not in [outcome for outcome, _ in bench.outcomes()]


async def test_the_api_server_is_asked_again_and_then_nobody_is_killed(bench, killing):
    one, two = bench.pod("one"), bench.pod("two")
    away(bench, times=1)
    bench.want(one)
    await bench.until(lambda: bench.answers)
    await bench.clock.advance(evictor.AWAY_SECONDS + 1)
    bench.want(two)
    await bench.until(lambda: len(bench.answers) == 2)
    assert bench.outcomes() == [("failed", "one"), ("evicted", "two")]
    assert killing.killed == []


async def test_a_pod_that_the_list_has_lost_for_a_moment_is_killed_all_the_same(bench, killing):
    """As a kubelet does that was restarted while the API server was asked."""
    wish = bench.pod("greedy")
    slow = bench.faults.add(faults.Rule(faults.Delay(5), verb="create", subresource="eviction"))
    away(bench)
    bench.want(wish)
    await bench.until(lambda: slow.met)
    bench.want(present=())
    await bench.clock.advance(6)
    await bench.until(lambda: bench.answers)
    assert bench.outcomes() == [("failed", "greedy")]
    await asked(bench, wish)
    await bench.until(lambda: killing.killed)


async def test_a_kill_that_fails_is_told(bench, killing):
    killing.fails = True
    wish = bench.pod("greedy")
    away(bench)
    await asked(bench, wish, seconds=6)
    await bench.until(lambda: len(bench.answers) == 2)
    assert bench.outcomes() == [("failed", "greedy")] * 2
    assert "killing failed" in bench.answers[-1].reason
