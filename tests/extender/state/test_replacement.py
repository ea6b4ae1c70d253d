"""Trackers that are replaced keep what they would have kept from the beginning."""

import random

import pytest

from extender.state import cluster_state, deltas

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
