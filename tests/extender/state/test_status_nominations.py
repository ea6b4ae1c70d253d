"""Nominations that kube-scheduler clears: whose place is kept then, and for how long."""

import math
import random

import msgspec
import pytest

from api.koordinator.metadata import qos
from extender.state import cluster_state, invariants, ledger, records, status_nominations

NODES = ("n1", "n2")
LAG = status_nominations.LAG_SECONDS
START = 1000.0


def _pod(name, node="", priority=0, **more):
    wanted = records.PodRequirements((("cpu", 1000),), (), qos.Band.PROD, priority=priority)
    return records.PodRecord(f"ns/{name}", f"uid-{name}", node, wanted, 5.0, **more)


def _books():
    made = ledger.Ledger(cluster_state.ClusterState((), ("cpu",)))
    for name in NODES:
        figures = (("cpu", 64000),)
        made.node(None, records.NodeRecord(name, figures, figures, uid=f"uid-{name}"))
    return made


class Told:
    """A ledger, and what a watch tells it."""

    def __init__(self):
        self.books, self.now = _books(), START
        self.pods = {}

    def tell(self, pod):
        """The watch shows a pod as it is now."""
        self.books.pod(self.pods.get(pod.uid), pod, self.now)
        self.pods[pod.uid] = pod

    def gone(self, name):
        self.books.pod(self.pods.pop(f"uid-{name}"), None, self.now)

    def change(self, name, **fields):
        self.tell(msgspec.structs.replace(self.pods[f"uid-{name}"], **fields))

    def kept(self, name="high"):
        """Where a place is kept for a pod, and until when."""
        claim = self.books.nominations.get(f"uid-{name}")
        return None if claim is None else (claim.node, claim.expires_at)


@pytest.fixture
def told():
    made = Told()
    made.tell(_pod("low", "n1", priority=5))
    made.tell(_pod("high", priority=9, nominated="n1"))
    return made


LEFT = {
    "of lower priority": ({}, 1.0, ("n1", START + LAG)),
    "of lower priority, without a grace period": ({"leaves_at": -1.0}, 1.0, ("n1", START + LAG)),
    "of equal priority": ({"priority": 9}, 1.0, None),
    "on another node": ({"node": "n2"}, 1.0, None),
    "just in time": ({}, LAG - 0.1, ("n1", START + LAG)),
    "long ago": ({}, LAG, None),
}


@pytest.mark.parametrize(("more", "later", "expected"), LEFT.values(), ids=LEFT)
def test_the_place_is_kept_where_a_lesser_pod_has_left_lately(told, more, later, expected):
    fields = {"node": "n1", "priority": 5, "leaves_at": START} | more
    told.tell(_pod("victim", **fields))
    told.gone("victim")
    told.now += later
    told.change("high", nominated="")
    assert told.kept() == expected


def test_the_place_is_free_at_once_where_no_pod_has_left(told):
    told.change("high", nominated="")
    assert told.kept() is None
    assert told.books.cluster.view().nominated == {}


@pytest.mark.parametrize(("priority", "expected"), [(5, ("n1", START + LAG)), (9, None)])
def test_the_place_is_kept_while_lesser_pods_are_leaving(told, priority, expected):
    """As where the extender could not answer, which clears nominations as well."""
    told.tell(_pod("victim", "n1", priority=priority, leaves_at=START + 600.0))
    told.change("high", nominated="")
    assert told.kept() == expected


@pytest.fixture
def cleared(told):
    told.gone("low")
    told.now += 1.0
    told.change("high", nominated="")
    assert told.kept() == ("n1", START + LAG)
    return told


def test_what_else_the_watch_tells_of_the_pod_changes_nothing(cleared):
    cleared.now += 2.0
    cleared.change("high", fence="7")
    assert cleared.kept() == ("n1", START + LAG)
    assert invariants.check(cleared.books, cleared.pods.values()) == []


def test_it_expires(cleared):
    assert cleared.books.expire(START + LAG - 0.1) == []
    assert [claim.usable_by for claim in cleared.books.expire(START + LAG)] == ["uid-high"]
    assert cleared.books.cluster.view().nominated == {}


def test_a_clock_that_is_set_back_keeps_no_place_for_longer(cleared):
    assert cleared.books.expire(START - 3600.0) != []
    assert cleared.kept() is None


def test_pods_that_left_before_the_clock_was_set_back_keep_no_place(told):
    told.gone("low")
    told.now -= 3600.0
    told.change("high", nominated="")
    assert told.kept() is None


ENDS = {
    "deleted": (lambda told: told.gone("high"), None),
    "bound there": (lambda told: told.change("high", node="n1", nominated=""), None),
    "bound elsewhere": (lambda told: told.change("high", node="n2", nominated=""), None),
    "nominated elsewhere": (lambda told: told.change("high", nominated="n2"), ("n2", math.inf)),
    "nominated again": (lambda told: told.change("high", nominated="n1"), ("n1", math.inf)),
}


@pytest.mark.parametrize(("ends", "expected"), ENDS.values(), ids=ENDS)
def test_it_ends_as_soon_as_the_pod_has_another_place(cleared, ends, expected):
    ends(cleared)
    assert cleared.kept() == expected
    assert invariants.check(cleared.books, cleared.pods.values()) == []


def test_a_pod_that_took_its_name_gets_nothing_of_it(cleared):
    old, new = cleared.pods["uid-high"], _pod("high", priority=9)
    cleared.books.pod(old, msgspec.structs.replace(new, uid="uid-other"), cleared.now)
    assert cleared.books.nominations == {}


def test_who_sets_and_clears_it_again_and_again_keeps_it_no_longer(cleared):
    """A client that may write the status of a pod keeps the place by leaving the nomination."""
    while cleared.now < START + LAG:
        cleared.change("high", nominated="n1")
        cleared.change("high", nominated="")
        assert cleared.kept() == ("n1", START + LAG)
        cleared.now += 1.0
    cleared.change("high", nominated="n1")
    cleared.change("high", nominated="")
    assert cleared.kept() is None


def test_what_the_extender_gives_up_itself_is_not_kept_once_it_clears_its_hint(told):
    """It takes its note off the pod first, then its nomination."""
    told.change("high", nominated="")
    told.books.nominate(told.pods["uid-high"], "n1", evidence="preemption")
    told.change("high", nominated="n1", preemption="noted")
    told.gone("low")
    told.books.withdraw("uid-high")
    told.change("high", preemption="")
    told.change("high", nominated="")
    assert told.kept() is None


MEANWHILE = {
    "nothing": (lambda told: None, ("n1", math.inf)),
    "another change of the pod": (lambda told: told.change("high", fence="7"), ("n1", math.inf)),
    "cleared": (lambda told: told.change("high", nominated=""), None),
    "cleared after a lesser pod has left": (
        lambda told: (told.gone("low"), told.change("high", nominated="")),
        ("n1", START + LAG),
    ),
    "nominated elsewhere": (lambda told: told.change("high", nominated="n2"), None),
    "bound": (lambda told: told.change("high", node="n2", nominated=""), None),
    "deleted": (lambda told: told.gone("high"), None),
    "another of ours": (
        lambda told: told.books.nominate(told.pods["uid-high"], "n1", evidence="preemption"),
        ("n1", math.inf),
    ),
}


@pytest.mark.parametrize(("happens", "expected"), MEANWHILE.values(), ids=MEANWHILE)
def test_what_a_nomination_of_ours_replaced_is_kept_again_where_it_still_stands(
    told, happens, expected
):
    told.books.nominate(told.pods["uid-high"], "n2", evidence="preemption")
    assert told.kept() == ("n2", math.inf)
    happens(told)
    told.books.withdraw("uid-high")
    assert told.kept() == expected
    assert invariants.check(told.books, told.pods.values()) == []


def test_a_cleared_one_that_was_replaced_lasts_no_longer_for_it(cleared):
    cleared.books.nominate(cleared.pods["uid-high"], "n2", evidence="preemption")
    cleared.books.withdraw("uid-high")
    assert cleared.kept() == ("n1", START + LAG)
    cleared.books.nominate(cleared.pods["uid-high"], "n2", evidence="preemption", expires_at=START)
    cleared.books.expire(START + LAG)
    cleared.books.expire(START + LAG)
    assert cleared.kept() is None


def test_a_place_that_is_given_up_is_free_although_kube_scheduler_had_nominated_it_first(told):
    """The extender clears the nomination, which is as if its own hint were cleared."""
    told.books.nominate(told.pods["uid-high"], "n1", evidence="preemption")
    told.gone("low")
    told.books.withdraw("uid-high")
    assert told.kept() == ("n1", math.inf)
    told.change("high", nominated="")
    assert told.kept() is None


def test_a_failed_bind_gives_it_back_only_for_the_time_that_is_left(cleared):
    pod = cleared.pods["uid-high"]
    cleared.books.assume(pod, "n1", cleared.now, 1.0)
    assert cleared.books.cluster.view().nominated == {}
    cleared.books.forget(pod.uid)
    assert list(cleared.books.cluster.view().nominated) == [0]
    cleared.books.expire(START + LAG)
    assert cleared.books.cluster.view().nominated == {}


def test_more_departures_than_can_be_remembered_cost_only_the_place():
    left = status_nominations.Departures()
    for number in range(10_000):
        left.add(f"n{number}", 0, START)
    assert left.waited_until("n0", 1, START) == START
    assert left.waited_until("n9999", 1, START) == START + LAG


PODS = {"a": 1, "b": 5, "c": 5, "d": 9}
WAITING = ("c", "d")
STEPS = 3000


class History:
    """Nominations come, are cleared, move and end while pods of several priorities come and go."""

    def __init__(self, chance):
        self.chance, self.told, self.left = chance, Told(), []
        self.expected = {}
        """By name: node, and until when; infinity while the nomination stands."""
        self.cleared = 0
        self.steps = {
            self.comes: 4,
            self.goes: 3,
            self.begins_to_leave: 1,
            self.is_nominated: 6,
            self.is_told_again: 2,
            self.is_bound: 0.3,
            self.is_assumed: 1,
            self.is_forgotten: 1,
            self.passes: 2,
        }

    def run(self):
        for number in range(STEPS):
            step = self.chance.choices([*self.steps], [*self.steps.values()])[0]
            name = self.chance.choice([*PODS])
            step(name, self.told.pods.get(f"uid-{name}"), self.chance.choice(NODES))
            self.check(f"step {number}: {step.__name__} {name}")

    # -- steps -----------------------------------------------------------------------------

    def comes(self, name, pod, node):
        """Two that others may leave for, and two that are on nodes from the beginning."""
        if pod is None:
            self.told.tell(_pod(name, "" if name in WAITING else node, priority=PODS[name]))

    def goes(self, name, pod, node):
        del node
        if pod is not None:
            if pod.node:
                self.left.append((self.told.now, pod.node, PODS[name]))
            self.told.gone(name)
            self.expected.pop(name, None)

    def begins_to_leave(self, name, pod, node):
        del node
        if pod is not None and pod.node:
            self.told.change(name, leaves_at=self.told.now + 30.0)

    def is_nominated(self, name, pod, node):
        """To a node, or no longer."""
        if pod is None or pod.node:
            return
        node = self.chance.choice(("", node))
        before = self.expected.get(name)
        if node:
            self.expected[name] = node, math.inf
        elif before is not None and before[1] == math.inf:
            until = self._waited_until(before[0], PODS[name])
            if until > self.told.now:
                self.cleared += 1
                self.expected[name] = before[0], until
            else:
                del self.expected[name]
        self.told.change(name, nominated=node)

    def _waited_until(self, node, below):
        now = self.told.now
        for pod in self.told.pods.values():
            lesser = pod.requirements.priority < below
            if pod.node == node and lesser and pod.leaves_at >= 0:
                return now + LAG
        found = [at for at, where, lesser in self.left if where == node and lesser < below]
        return max([at + LAG for at in found], default=now)

    def is_told_again(self, name, pod, node):
        del node
        if pod is not None:
            self.told.change(name, fence=str(self.told.now))

    def is_bound(self, name, pod, node):
        if pod is not None and not pod.node:
            self.told.change(name, node=node, nominated="")
            self.expected.pop(name, None)

    def is_assumed(self, name, pod, node):
        del name
        if pod is not None and not pod.node and pod.uid not in self.told.books.assumptions:
            self.told.books.assume(pod, node, self.told.now, self.told.now)

    def is_forgotten(self, name, pod, node):
        del pod, node
        self.told.books.forget(f"uid-{name}")

    def passes(self, name, pod, node):
        del name, pod, node
        self.told.now += self.chance.choice((0.02, 0.02, 1.0, 5.0, LAG))
        self.told.books.expire(self.told.now)
        over = [name for name, (_, until) in self.expected.items() if until <= self.told.now]
        for name in over:
            del self.expected[name]

    # -- what has to hold ------------------------------------------------------------------

    def check(self, step):
        books, now = self.told.books, self.told.now
        found = {name: self.told.kept(name) for name in PODS if self.told.kept(name)}
        assert found == self.expected, step
        assert all(until == math.inf or until <= now + LAG for _, until in found.values()), step
        counted = {claim.usable_by for claim in books.cluster.all_claims().values()} - {""}
        assert counted == {f"uid-{name}" for name in found} - books.assumptions.keys(), step
        assert invariants.check(books, self.told.pods.values()) == [], step

    def ends(self):
        """What was cleared is kept no longer than it may be, whatever happens then."""
        self.told.books.expire(self.told.now + LAG)
        status = {uid for uid, pod in self.told.pods.items() if pod.nominated}
        assert self.told.books.nominations.keys() == status
        assert self.cleared >= 5


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_places_are_kept_as_long_as_they_should_be_and_no_longer(seed):
    history = History(random.Random(seed))
    history.run()
    history.ends()
