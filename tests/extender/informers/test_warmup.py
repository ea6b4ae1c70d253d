"""The picture is kept up to date in between, so that no call has to do much of it."""

import msgspec

from api.kubernetes import core
from extender.informers import event_handlers, warmup
from kube.informers import store
from process.configuration import switches
from process.runtime import clock, supervise

NODES = 120
SLICE = 20


class Listed:
    """Lists that are complete."""

    async def synced(self):
        """Say so."""


class Told:
    """Stores that are told of changes and pass them on as in the process itself."""

    def __init__(self, picture, members):
        self.watched = event_handlers.Informers(*(store.Store() for _ in range(6)))
        self.clock = clock.ManualClock()
        self.slices = warmup.Warmup(picture.cluster, members, self.clock)
        event_handlers.connect(
            self.watched, picture.books, switches.Switches("extender"), self.clock
        )
        self.slices.follow(self.watched)

    def pod(self, record, version):
        self.watched.pods.put(store.Meta(f"default/{record.uid}", record.uid, version), record)


def _fill(picture, make):
    picture.add(*(make.node(f"n{number}") for number in range(NODES)))


async def _loaded(told, tasks):
    tasks.start("load", told.slices.run)
    await told.clock.advance(1)
    assert told.slices.health() is None


async def test_what_is_listed_at_first_is_computed_before_it_is_ready(picture, make):
    told = Told(picture, Listed())
    _fill(picture, make)
    assert "listed" in told.slices.health()
    assert picture.cluster.stale_rows() == NODES
    async with supervise.Supervisor("test") as tasks:
        await _loaded(told, tasks)
    assert picture.cluster.stale_rows() == 0


async def test_a_flood_of_changes_leaves_little_to_the_next_call(picture, make):
    told = Told(picture, Listed())
    _fill(picture, make)
    async with supervise.Supervisor("test") as tasks:
        await _loaded(told, tasks)
        most = 0
        for number in range(NODES):
            raw = make.pod(f"p{number}", node=f"n{number}", requests={"cpu": "1"})
            record = picture.record(raw)
            told.pod(record, number + 1)
            picture.truth[f"default/p{number}"] = record
            most = max(most, picture.cluster.stale_rows())
        assert 0 < most <= SLICE + 1
        await told.clock.advance(1)
        assert picture.cluster.stale_rows() == 0


async def test_it_waits_for_a_change_and_for_nothing_else(picture, make):
    told = Told(picture, Listed())
    _fill(picture, make)
    async with supervise.Supervisor("test") as tasks:
        await _loaded(told, tasks)
        assert told.clock.next_wake is None
        record = picture.record(make.pod("p", node="n7", requests={"cpu": "1"}))
        picture.truth["default/p"] = record
        told.pod(record, 1)
        await told.clock.settle()
        assert picture.cluster.stale_rows() == 1
        assert told.clock.sleepers == 1
        await told.clock.advance(0.02)
        assert picture.cluster.stale_rows() == 0
        assert told.clock.next_wake is None


async def test_the_first_list_is_taken_in_without_summaries(picture, make):
    told = Told(picture, Listed())
    for number in range(NODES):
        node = picture.projector.node(msgspec.convert(make.node(f"n{number}"), core.Node))
        told.watched.nodes.put(store.Meta(node.name, node.name, number + 1), node)
    assert picture.cluster.stale_rows() == NODES


async def test_new_lending_rules_cost_a_call_nothing_and_are_followed_soon(picture, make):
    told = Told(picture, Listed())
    picture.lend(30)
    _fill(picture, make)
    async with supervise.Supervisor("test") as tasks:
        await _loaded(told, tasks)
        before = picture.cluster.view().figures["BatchFit"].copy()
        picture.lend(60)
        assert picture.cluster.stale_rows() == NODES
        view = picture.cluster.view()
        assert picture.cluster.stale_rows() == NODES, "a call computes none of them"
        assert (view.figures["BatchFit"] == before).all()
        row = picture.cluster.view("n7").rows["n7"]
        shown = picture.cluster.view("n7").figures["BatchFit"]
        # Whoever binds asks for the node by the rules that hold now.
        assert (shown[:, row] != before[:, row]).any()
        assert picture.cluster.stale_rows() == NODES - 1
        await told.clock.advance(1)
        assert picture.cluster.stale_rows() == 0
    rebuilt = picture.cluster.rebuilt()
    assert picture.cluster.fingerprint() == rebuilt.fingerprint()
