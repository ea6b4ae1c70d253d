"""The one mutable picture."""

import pytest

from extender.state import bounds, deltas, invariants, records


def test_a_delta_made_for_another_state_is_refused(picture, make):
    picture.add(make.node("n1"))
    node = picture.cluster.node("n1")
    with pytest.raises(deltas.StaleError):
        picture.cluster.apply(deltas.NodeDelta("n1", None, node))


def test_pods_and_reports_may_come_before_their_node_and_outlive_it(picture, make, fresh_picture):
    picture.add(make.pod("early", node="n1", requests={"cpu": "3"}), make.metric("n1"))
    assert picture.cluster.nodes() == []
    picture.add(make.node("n1"))
    view = picture.cluster.view()
    assert view.requested[view.resources["cpu"], view.rows["n1"]] == 3000
    picture.books.node(picture.cluster.node("n1"), None)
    assert picture.cluster.nodes() == []
    assert len(picture.cluster.claims_on("n1")) == 1
    picture.add(make.pod("early", phase="Succeeded"))
    picture.books.report("n1", None)
    assert picture.cluster.fingerprint() == fresh_picture().cluster.fingerprint()


def test_rows_are_used_again_and_grow(picture, make):
    for number in range(200):
        picture.add(make.node(f"n{number}"))
    for number in range(0, 200, 2):
        picture.books.node(picture.cluster.node(f"n{number}"), None)
    for number in range(200, 260):
        picture.add(make.node(f"n{number}", cpu=str(number)))
    view = picture.cluster.view()
    assert len(view.names) == 200
    assert view.known.sum() == 160
    for name, row in view.rows.items():
        expected = int(name[1:]) * 1000 if int(name[1:]) >= 200 else 128000
        assert view.allocatable[0, row] == expected


def test_only_so_many_rows_are_refreshed_at_once(picture, make):
    for number in range(10):
        picture.add(make.node(f"n{number}"))
    assert picture.cluster.refresh(4) == 6
    assert picture.cluster.stale_rows() == 6
    picture.cluster.view()
    assert picture.cluster.stale_rows() == 0


def test_what_if_leaves_the_picture_alone(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"), make.metric("n1"), make.pod("p", node="n1", requests={"cpu": "9"}))
    before = picture.cluster.fingerprint()
    other = picture.cluster.what_if([records.NodeRecord("n1", (("cpu", 10000),), ())])
    assert other.view().figures["BatchFit"][0, 0] == 300
    assert picture.cluster.fingerprint() == before


def test_every_invariant_can_fail(picture, make):
    picture.lend(30)
    picture.add(make.node("n1"))
    job = make.pod("job", node="n1", band="koord-batch", requests={"cpu": "60"})
    record = picture.record(job)
    assert invariants.check(picture.books, [record]) == [
        "pod uid-job counts on None, belongs on n1"
    ]
    picture.add(job)
    assert invariants.over_lent(picture.cluster, "BatchFit") == ["n1 has lent 21600 too much"]
    picture.cluster._table.columns["requested"][0, 0] += 1
    assert invariants.drifted(picture.cluster) == ["node n1 differs from a rebuilt one"]
    picture.cluster._table.columns["requested"][0, 0] -= 1
    waiting = picture.record(make.pod("next", requests={"cpu": "1"}))
    picture.books.assume(waiting, "n1", 0.0, 0.0)
    placed = picture.cluster.claim(waiting.uid)
    picture.cluster.apply(deltas.ClaimDelta(waiting.uid, placed, None))
    assert "an assumption is not counted" in picture.problems()
    picture.cluster.apply(deltas.ClaimDelta(waiting.uid, None, placed))


@pytest.mark.parametrize(
    "change",
    [
        lambda picture, make: picture.add(make.pod("more", node="n1", requests={"cpu": "1"})),
        lambda picture, make: picture.add(make.pod("p", phase="Succeeded")),
        lambda picture, make: picture.add(make.metric("n1", cpu="7")),
        lambda picture, make: picture.add(make.node("n1", cpu="8")),
        lambda picture, _: picture.lend(40),
    ],
    ids=["pod-comes", "pod-ends", "report", "node", "lending"],
)
def test_plug_ins_see_every_change_of_a_node(picture, make, change):
    picture.lend(30)
    picture.add(make.node("n1"), make.metric("n1"), make.pod("p", node="n1", requests={"cpu": "9"}))

    def seen():
        view = picture.cluster.view("n1")
        return view.node(view.rows["n1"])

    before = seen()
    # Nothing has changed, so nothing is made anew.
    assert seen() is before
    change(picture, make)
    after = seen()
    assert after != before
    rebuilt = picture.cluster.rebuilt().view()
    assert after == rebuilt.node(rebuilt.rows["n1"])


def test_thousands_of_pods_ask_for_no_more_than_64_bits_hold(picture, make):
    picture.add(make.node("n1", **{"kubernetes.io/batch-cpu": "1000"}))
    huge = {"kubernetes.io/batch-cpu": str(1 << 60)}
    for number in range(2050):
        picture.add(make.pod(f"p{number}", node="n1", band="koord-batch", requests=huge))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][0, view.rows["n1"]] == 1000 - 2050 * bounds.LARGEST
    for number in range(2050):
        picture.add(make.pod(f"p{number}", phase="Succeeded"))
    view = picture.cluster.view()
    assert view.figures["BatchFit"][0, view.rows["n1"]] == 1000
