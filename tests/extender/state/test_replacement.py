"""Trackers that are replaced keep what they would have kept from the beginning."""

import random

import pytest

from extender.state import cluster_state, deltas
from extender.state.table import node_table

COLUMNS = ("cpu", "memory")
UIDS = tuple("abcdefgh")


class Counting:
    """Counts pods by node (figure), names them (sparse), and counts all of them (cluster)."""

    def __init__(self, name, factor=1, width=1):
        self.name, self.columns, self.factor = name, width, factor

    def node(self, info):
        count = len(info.pods) * self.factor
        names = frozenset(pod.uid for pod in info.pods)
        return (count,) * self.columns, names or None

    def start(self):
        return 0

    def cluster(self, old, delta):
        if not isinstance(delta, deltas.ClaimDelta):
            return old
        return old + self.factor * ((delta.after is not None) - (delta.before is not None))


OLD = (Counting("stays"), Counting("changes"), Counting("goes", 5))
NEW = (Counting("changes", 3, width=2), OLD[0], Counting("comes", 7))


def _step(picture, make, rng):
    name = f"n{rng.randrange(12)}"
    kind = rng.choice(("node", "node", "gone", "metric", "pod", "pod", "pod"))
    if kind == "gone":
        picture.books.node(picture.cluster.node(name), None) if picture.cluster.node(name) else None
    elif kind == "pod":
        uid = rng.choice(UIDS)
        picture.add(make.pod(uid, node=name, phase=rng.choice(("Running", "Running", "Succeeded"))))
    else:
        picture.add(make.node(name) if kind == "node" else make.metric(name))


@pytest.mark.parametrize("seed", range(12))
def test_replaced_in_the_middle_of_changes_is_the_same_as_from_the_beginning(
    fresh_picture, make, seed
):
    rng, picture = random.Random(seed), fresh_picture()
    picture.cluster = cluster_state.ClusterState(OLD, COLUMNS)
    picture.books = type(picture.books)(picture.cluster)
    adopted = False
    for number in range(120):
        _step(picture, make, rng)
        if rng.random() < 0.3:
            picture.cluster.refresh(rng.randrange(3))
        if number == 40:
            picture.cluster.prepare(NEW, frozenset({"stays"}))
        if number > 40 and not adopted and rng.random() < 0.2:
            adopted = picture.cluster.adopt()
        view = picture.cluster.view()
        assert set(view.figures) == {one.name for one in (NEW if adopted else OLD)}
    while not adopted:
        picture.cluster.refresh(1)
        adopted = picture.cluster.adopt()
    assert not picture.cluster.adopt(), "nothing is prepared any more"
    # Built by the trackers that are in force by now, from nothing.
    fresh = picture.cluster.rebuilt()
    assert picture.cluster.fingerprint() == fresh.fingerprint()
    assert picture.cluster.view().figures["changes"].shape[0] == 2


class Followed(Counting):
    """Counts the changes that it receives."""

    changes = 0

    def cluster(self, old, delta):
        self.changes += 1
        return super().cluster(old, delta)


def test_a_value_of_the_whole_cluster_is_built_a_few_changes_at_a_time(fresh_picture, make):
    picture, new = fresh_picture(), Followed("whole")
    picture.cluster = cluster_state.ClusterState((), COLUMNS)
    picture.books = type(picture.books)(picture.cluster)
    picture.add(make.node("n0"))
    for number in range(300):
        picture.add(make.pod(f"p{number}", node="n0"))
    picture.cluster.prepare((new,), frozenset())
    assert new.changes == 0
    told = []
    for number in range(300, 310):
        before = new.changes
        left = picture.cluster.refresh(2)
        told.append(new.changes - before)
        # What happens meanwhile counts once, after what was known before.
        picture.add(make.pod(f"p{number}", node="n0"))
        assert left
        assert not picture.cluster.adopt()
    assert max(told) <= 2 * node_table._CHANGES_PER_ROW
    while picture.cluster.refresh(2):
        pass
    assert picture.cluster.adopt()
    assert picture.cluster.view().cluster["whole"] == 310
    assert picture.cluster.fingerprint() == picture.cluster.rebuilt().fingerprint()
