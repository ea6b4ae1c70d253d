"""Plug-ins that want pods without a node get them; otherwise these cost nothing."""

import pytest

from api.koordinator.metadata import qos
from extender.informers import unscheduled_feed
from extender.state import cluster_state, deltas, gang_facts, invariants, ledger, records
from kube.informers import store

KINDS = frozenset({deltas.UNSCHEDULED_POD})
NOTHING = frozenset()
ONE_CORE = records.PodRequirements((("cpu", 1000),), (), qos.Band.PROD)
MEMBERS = frozenset({deltas.UNSCHEDULED_MEMBER})
MANY = 450


def _pod(number, node="", gang=None):
    return records.PodRecord(f"ns/p{number}", f"u{number}", node, ONE_CORE, 5.0, gang=gang)


def _member(number):
    return _pod(number, gang=gang_facts.GangFacts())


class Feeding:
    """A ledger that follows a store of pods."""

    def __init__(self):
        self.applied = []
        self.cluster = cluster_state.ClusterState((), ("cpu",))
        self.cluster.followers.append(self.applied.append)
        self.books = ledger.Ledger(self.cluster)
        self.pods = store.Store()
        self.pods.listen(lambda change: self.books.pod(change.old, change.new, 10.0))
        self.feed = unscheduled_feed.UnscheduledFeed(self.books, self.pods)
        self.version = 0

    def put(self, pod):
        self.version += 1
        self.pods.put(store.Meta(pod.key, pod.uid, self.version), pod)

    def told(self):
        return {one.key for one in self.cluster.objects()}

    def catch_up(self, kinds):
        turns = 1
        while not self.feed.catch_up(kinds):
            turns += 1
        return turns


@pytest.fixture
def feeding():
    made = Feeding()
    yield made
    assert invariants.check(made.books, made.pods.values()) == []


def test_nothing_is_told_or_kept_until_somebody_wants_to_know(feeding):
    feeding.catch_up(NOTHING)
    for number in range(3):
        feeding.put(_pod(number))
    assert feeding.applied == []
    assert len(feeding.books.unscheduled) == 0


def test_those_that_wait_already_are_told_in_slices(feeding):
    for number in range(MANY):
        feeding.put(_pod(number))
    feeding.put(_pod("bound", node="n1"))
    assert not feeding.feed.catch_up(KINDS)
    first = len(feeding.told())
    assert 0 < first < MANY
    feeding.put(_pod("late"))
    feeding.put(_pod(0, node="n1"))
    feeding.put(_pod(MANY - 1, node="n1"))
    feeding.catch_up(KINDS)
    expected = {f"u{number}" for number in range(1, MANY - 1)} | {"ulate"}
    assert feeding.told() == expected


def test_all_of_them_end_when_nobody_wants_to_know(feeding):
    feeding.catch_up(KINDS)
    for number in range(MANY):
        feeding.put(_pod(number))
    assert len(feeding.told()) == MANY
    assert feeding.catch_up(NOTHING) > 1
    assert feeding.told() == set()
    feeding.put(_pod("later"))
    assert feeding.told() == set()


def test_an_assumed_pod_is_told_again_when_it_is_forgotten(feeding):
    feeding.catch_up(KINDS)
    feeding.put(_pod(1))
    feeding.books.assume(_pod(1), "n1", 10.0, 0.0)
    assert feeding.told() == set()
    feeding.put(_pod(1))
    assert feeding.told() == set(), "the watch has not shown the Binding yet"
    feeding.books.forget("u1")
    assert feeding.told() == {"u1"}


def test_a_pod_that_is_gone_is_not_told_when_its_assumption_ends(feeding):
    feeding.catch_up(KINDS)
    feeding.put(_pod(1))
    feeding.pods.remove("ns/p1", 5)
    feeding.books.assume(_pod(1), "n1", 10.0, 0.0)
    feeding.books.forget("u1")
    assert feeding.told() == set()


def test_members_of_gangs_are_told_alone_where_only_they_are_wanted(feeding):
    feeding.catch_up(MEMBERS)
    feeding.put(_pod(1))
    feeding.put(_member(2))
    assert (feeding.told(), len(feeding.books.unscheduled)) == ({"u2"}, 1)
    feeding.put(_pod(2))
    assert (feeding.told(), len(feeding.books.unscheduled)) == (set(), 0), "it has left its gang"
    feeding.put(_member(1))
    assert feeding.told() == {"u1"}


def test_the_others_come_and_go_as_they_are_wanted_and_members_stay(feeding):
    for number in range(MANY):
        feeding.put(_pod(number))
    feeding.put(_member("m"))
    feeding.catch_up(MEMBERS)
    assert feeding.told() == {"um"}
    feeding.catch_up(MEMBERS | KINDS)
    assert len(feeding.told()) == MANY + 1
    feeding.catch_up(MEMBERS)
    assert feeding.told() == {"um"}
    feeding.catch_up(NOTHING)
    assert feeding.told() == set()
