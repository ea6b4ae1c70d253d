"""Claims: allocations, nominations, shadows, what-if and forks."""

import msgspec
import pytest

from api.koordinator.metadata import qos
from api.kubernetes import core
from extender.framework import nominations, views
from extender.state import (
    allocations,
    claims,
    cluster_state,
    deltas,
    ledger,
    records,
    status_nominations,
)
from tests.extender.clusters import slots

NODES = ("n1", "n2")


def _node(name):
    figures = (("cpu", 64000), (slots.RESOURCE, 2))
    return records.NodeRecord(name, figures, figures, uid=f"uid-{name}")


def _pod(name, node="", priority=0, slot=None, **more):
    wanted = records.PodRequirements((("cpu", 1000),), (), qos.Band.PROD, priority=priority)
    granted = {slots.NAME: slots.Slot(slot)} if slot is not None else allocations.NONE
    return records.PodRecord(
        f"ns/{name}", f"uid-{name}", node, wanted, 5.0, allocations=granted, **more
    )


@pytest.fixture
def books():
    made = ledger.Ledger(cluster_state.ClusterState([slots.Slots()], ("cpu",)))
    for name in NODES:
        made.node(None, _node(name))
    return made


def _free(view, node="n1"):
    return int(view.figures[slots.NAME][0, view.rows[node]])


def _cpu(view, node="n1"):
    return int(view.requested[0, view.rows[node]])


def test_an_allocation_counts_from_the_moment_it_is_assumed_to_the_end_of_its_pod(books):
    waiting = _pod("a")
    books.pod(None, waiting, 1.0)
    books.assume(waiting, "n1", 1.0, 1.0, {slots.NAME: slots.Slot(0)})
    assert slots.lowest_free(books.cluster.view(), 0) == slots.Slot(1)
    bound = msgspec.structs.replace(
        waiting, node="n1", assigned_at=1.0, allocations={slots.NAME: slots.Slot(0)}
    )
    version = books.cluster.view().version
    books.pod(waiting, bound, 2.0)
    view = books.cluster.view()
    assert (view.version, books.cluster.stale_rows()) == (version, 0)
    assert books.cluster.claim("uid-a").kind is claims.ClaimKind.BOUND
    assert view.cluster[slots.NAME] == (("n1", 0, "uid-a"),)
    books.pod(bound, None, 3.0)
    view = books.cluster.view()
    assert (_free(view), view.sparse(slots.NAME, 0), view.cluster[slots.NAME]) == (2, None, ())


def test_what_the_echo_says_was_allocated_replaces_what_was_assumed(books):
    waiting = _pod("a")
    books.assume(waiting, "n1", 1.0, 1.0, {slots.NAME: slots.Slot(0)})
    books.pod(waiting, _pod("a", "n1", slot=1), 2.0)
    assert books.cluster.view().sparse(slots.NAME, 0) == {1}


@pytest.mark.parametrize(
    ("text", "found", "unreadable"),
    [
        pytest.param("1", {slots.NAME: slots.Slot(1)}, (), id="allocated"),
        pytest.param("much", {}, (slots.NAME,), id="no number"),
        pytest.param("1" * 20000, {}, (slots.NAME,), id="too long"),
        pytest.param(None, {}, (), id="no annotation"),
    ],
)
def test_annotations_of_bound_pods_are_the_record_of_allocations(make, text, found, unreadable):
    notes = {slots.ANNOTATION: text} if text else {}
    raw = make.pod("p", node="n1", annotations=notes)
    projector = records.Projector(codecs=[slots.Slots()])
    record = projector.pod(msgspec.convert(raw, core.Pod))
    assert (record.allocations, record.unreadable) == (found, unreadable)
    assert allocations.written([slots.Slots()], record.allocations) == (notes if found else {})
    waiting = projector.pod(msgspec.convert(make.pod("p", annotations=notes), core.Pod))
    assert (waiting.allocations, waiting.unreadable) == ({}, ())


def test_a_node_can_be_looked_at_with_and_without_claims(books):
    books.pod(None, _pod("a", "n1", slot=0), 1.0)
    before = books.cluster.fingerprint()
    view = books.cluster.view()
    row = view.rows["n1"]
    without = view.with_claims(row, remove={"uid-a"})
    assert (_free(without), _cpu(without), without.sparse(slots.NAME, 0)) == (2, 0, None)
    assert without.cluster[slots.NAME] == ()
    more = claims.Claim(
        "uid-b", claims.ClaimKind.ASSUMED, "n1", _pod("b", "n1"), {slots.NAME: slots.Slot(1)}
    )
    both = view.with_claims(row, add=[more])
    assert (_free(both), _cpu(both), both.node(0).pods[1].uid) == (0, 2000, "uid-b")
    swapped = both.with_claims(0, remove={"uid-a"})
    assert swapped.sparse(slots.NAME, 0) == {1}
    with pytest.raises(ValueError, match="read-only"):
        both.figures[slots.NAME][0, 0] = 7
    assert books.cluster.fingerprint() == before


def test_nothing_done_to_a_fork_comes_back_and_the_other_way_round(books):
    books.pod(None, _pod("a", "n1", slot=0), 1.0)
    before = books.cluster.fingerprint()
    other = books.cluster.fork()
    assert other.fingerprint() == before
    held = ledger.Ledger(other)
    held.assume(_pod("b"), "n1", 1.0, 1.0, {slots.NAME: slots.Slot(1)})
    held.node(_node("n2"), None)
    assert books.cluster.fingerprint() == before
    changed = other.fingerprint()
    books.pod(_pod("a", "n1", slot=0), None, 2.0)
    assert other.fingerprint() == changed
    assert books.cluster.claims_on("n1") == ()


def test_deltas_undone_in_reverse_leave_the_same_bytes(books):
    books.pod(None, _pod("a", "n1", slot=0), 1.0)
    before = books.cluster.fingerprint()
    claim = books.cluster.claim("uid-a")
    moved = msgspec.structs.replace(claim, node="n2", pod=_pod("a", "n2", slot=0))
    quota = _pod("quota")
    done = [
        deltas.ClaimDelta("uid-a", claim, None),
        deltas.ClaimDelta("uid-a", None, moved),
        deltas.ObjectDelta("quota", "team", None, quota),
        deltas.ObjectDelta("device", "n2", None, quota, node="n2"),
    ]
    for delta in done:
        books.cluster.apply(delta)
    view = books.cluster.view()
    assert view.node(view.rows["n2"]).objects == {("device", "n2"): quota}
    assert books.cluster.rebuilt().fingerprint() == books.cluster.fingerprint() != before
    books.cluster.undo(done)
    assert books.cluster.fingerprint() == before


def test_the_nomination_of_the_scheduler_is_kept_until_the_pod_is_placed(books):
    waiting = _pod("a", nominated="n1", priority=5)
    books.pod(None, waiting, 1.0)
    view = books.cluster.view()
    (claim,) = view.nominated[view.rows["n1"]]
    assert (claim.usable_by, claim.evidence, claim.pod.node) == (
        "uid-a",
        status_nominations.STATUS,
        "n1",
    )
    assert len(view.node(view.rows["n1"]).pods) == 1
    assert _cpu(view) == 0, "the scheduler's own totals leave nominations out"
    books.assume(waiting, "n2", 1.0, 1.0)
    assert books.cluster.view().nominated == {}
    books.forget("uid-a")
    assert list(books.cluster.view().nominated) == [view.rows["n1"]]
    books.pod(waiting, msgspec.structs.replace(waiting, nominated=""), 2.0)
    assert books.cluster.view().nominated == {}


def test_a_nomination_of_ours_does_not_depend_on_the_status_and_expires(books):
    waiting = _pod("a")
    books.pod(None, waiting, 1.0)
    granted = {slots.NAME: slots.Slot(1)}
    books.nominate(waiting, "n1", evidence="attempt-1", expires_at=9.0, granted=granted)
    assert slots.lowest_free(books.cluster.view(), 0) == slots.Slot(0)
    books.pod(waiting, waiting, 2.0)
    assert books.expire(8.0) == []
    assert [claim.id for claim in books.expire(9.0)] == ["nominated/uid-a"]
    assert books.cluster.view().sparse(slots.NAME, 0) is None
    assert books.nominations == {}


@pytest.mark.parametrize(
    ("node", "slot", "returns"),
    [("n1", 1, True), ("n1", 0, False), ("n2", 1, False)],
    ids=["what was kept", "another slot", "another node"],
)
def test_an_allocation_that_was_kept_returns_only_where_nobody_could_take_it(
    books, node, slot, returns
):
    waiting = _pod("a")
    books.pod(None, waiting, 1.0)
    kept = {slots.NAME: slots.Slot(1)}
    books.nominate(waiting, "n1", evidence="attempt-1", granted=kept)
    before = books.cluster.fingerprint()
    books.assume(waiting, node, 2.0, 2.0, {slots.NAME: slots.Slot(slot)})
    books.forget("uid-a")
    assert (books.cluster.fingerprint() == before) is returns
    assert (books.cluster.view().sparse(slots.NAME, 0) == {1}) is returns


def test_overlapping_allocations_of_one_node_are_found(books):
    for name, node, slot in [("a", "n1", 0), ("b", "n1", 0), ("c", "n1", 1), ("d", "n2", 0)]:
        books.pod(None, _pod(name, node, slot=slot), 1.0)
    found = [claims.conflicts(books.cluster.claims_on(name), [slots.Slots()]) for name in NODES]
    assert found == [[claims.Conflict(slots.NAME, "n1", "uid-a", "uid-b")], []]
    second = msgspec.structs.replace(books.cluster.claim("uid-b"), consumes="uid-a")
    books.cluster.apply(deltas.ClaimDelta("uid-b", books.cluster.claim("uid-b"), second))
    assert claims.conflicts(books.cluster.claims_on("n1"), [slots.Slots()]) == []


class _Counted(slots.Slots):
    """Counts how often figures are computed."""

    computed = 0

    def node(self, info):
        self.computed += 1
        return super().node(info)


@pytest.mark.parametrize(
    ("priority", "computed", "free"),
    [
        pytest.param(9, 1, 2, id="of lower priority: computed without it"),
        pytest.param(3, 0, 1, id="of higher priority: as the node is"),
    ],
)
def test_figures_of_a_node_are_computed_anew_only_without_nominations(priority, computed, free):
    tracker = _Counted()
    books = ledger.Ledger(cluster_state.ClusterState([tracker], ("cpu",)))
    books.node(None, _node("n1"))
    granted = {slots.NAME: slots.Slot(1)}
    nominee = _pod("a", priority=5)
    books.nominate(nominee, "n1", evidence="attempt-1", expires_at=9.0, granted=granted)
    view, before = books.cluster.view(), tracker.computed
    asking = _pod("b", priority=priority)
    request = views.PodInfo(asking.key, asking.uid, asking.requirements)
    one, row = nominations.seen_by(request, view, 0)
    assert (row, tracker.computed - before, _free(one)) == (0, computed, free)
    whole = view.with_claims(0, remove=nominations.ignored(request, view, 0))
    assert one.node(0) == whole.node(0)
    assert one.figures[slots.NAME].tolist() == whole.figures[slots.NAME].tolist()
    assert (one.requested.tolist(), one.nominated) == (whole.requested.tolist(), whole.nominated)
