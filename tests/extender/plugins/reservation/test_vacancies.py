"""What Reservations have left, as columns, says what looking at nodes one by one says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.framework import views
from extender.plugins.reservation import judgement, tracker, vacancies
from tests.extender.clusters import reservation_cluster

RESTRICTED_OPTIONS = "scheduling.koordinator.sh/reservation-restricted-options"
NODES = ("n1", "n2", "n3")
THEIRS = [{"labelSelector": {"matchLabels": {"app": "theirs"}}}]


def _cluster():
    made = reservation_cluster.ReservationCluster()
    for name in NODES:
        made.node(name, pods="6")
    return made


def _compare(cluster, kept, asked):
    """Ask about all nodes with Reservations of the pod; return how many the columns let it use."""
    view = cluster.view()
    prepared = cluster.pipeline.cycle(views.PodInfo.of(asked), view).prepared.get("Reservation")
    if prepared is None or not prepared.owners:
        return 0
    rows = np.array(
        [
            row
            for name, row in view.rows.items()
            if any(name in tracker.cluster(view).index.uses[one].nodes for one in prepared.owners)
        ]
    )
    found = kept.among(prepared, view, rows)
    if found is None:
        return 0
    for row, tier, allocates in zip(
        rows.tolist(), found.tiers.tolist(), found.allocates.tolist(), strict=True
    ):
        judged = judgement.judge(prepared, tracker.of(view, row))
        if tier == vacancies.UNKNOWN:
            continue
        assert judged.status is None
        assert tier == judgement.tier(prepared, judged.into)
        assert allocates == any(one.allocates for one in judged.into)
    return int((found.tiers > 0).sum())


amounts = st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from(["0", "1", "2500m", "6"]), "memory": st.just("1Gi"),
                  "example.com/part": st.sampled_from(["1", "3"])},
)  # fmt: skip
offered = amounts.filter(bool) | st.just({"cpu": "4", "pods": "1"})
reservations = st.tuples(
    st.just("reservation"),
    st.integers(0, 5),
    st.fixed_dictionaries(
        {"node": st.sampled_from(NODES), "requests": offered, "once": st.booleans()},
        optional={
            "owners": st.just(THEIRS),
            "allocatePolicy": st.sampled_from(["Aligned", "Restricted"]),
            "unschedulable": st.just(True),
            "labels": st.just({"scheduling.koordinator.sh/reservation-order": "2"}),
            "annotations": st.sampled_from(
                [
                    {"scheduling.koordinator.sh/node-reservation": '{"resources": {"cpu": "1"}}'},
                    {RESTRICTED_OPTIONS: '{"resources": ["cpu"]}'},
                    {"scheduling.koordinator.sh/resource-status": '{"cpuset": "0-1"}'},
                ]
            ),
        },
    ),
)
pods = st.tuples(
    st.just("pod"),
    st.integers(0, 7),
    st.fixed_dictionaries(
        {"node": st.sampled_from(NODES), "requests": amounts, "app": st.sampled_from(["mine", "x"])}
    ),
)
ends = st.tuples(st.just("end"), st.integers(0, 5), st.just({}))
asks = st.tuples(
    st.just("ask"),
    st.just(0),
    st.fixed_dictionaries({"requests": amounts, "app": st.sampled_from(["mine", "theirs"])}),
)


@given(
    steps=st.lists(st.one_of(reservations, pods, ends, asks), max_size=25),
    last=st.lists(asks, min_size=1),
)
def test_columns_say_what_looking_at_each_node_says(steps, last):
    cluster, kept = _cluster(), vacancies.Vacancies()
    for kind, number, more in (*steps, *last):
        match kind:
            case "reservation":
                cluster.reservation(f"r{number}", **more)
            case "end" if f"r{number}" in cluster.known:
                cluster.end(f"r{number}")
            case "pod" if f"p{number}" in cluster.pods:
                cluster.release(f"p{number}")
            case "pod":
                cluster.place(f"p{number}", **more)
            case "ask":
                _compare(cluster, kept, cluster.pod("asked", **more))


def _known(cluster, kept, cpu="1", **more):
    return _compare(cluster, kept, cluster.pod("asked", cpu, **more))


def test_columns_follow_owners_that_come_and_reservations_that_end():
    cluster, kept = _cluster(), vacancies.Vacancies()
    cluster.reservation("a", node="n1", allocatePolicy="Restricted")
    cluster.reservation("b", node="n2", allocatePolicy="Restricted")
    cluster.reservation("c", node="n2", allocatePolicy="Restricted", requests={"cpu": "2"})
    assert _known(cluster, kept, "3") == 2
    assert _known(cluster, kept, "1", requests={"memory": "1Gi", "cpu": "1"}) == 2
    cluster.place("p", "3", node="n1")
    assert _known(cluster, kept, "3") == 1
    assert _known(cluster, kept) == 2
    cluster.end("a")
    assert _known(cluster, kept) == 1
    cluster.reservation("d", node="n3")
    assert _known(cluster, kept) == 2


def test_a_node_with_room_takes_the_pod_beside_a_reservation_that_is_full():
    cluster, kept = _cluster(), vacancies.Vacancies()
    full = {"allocatePolicy": "Restricted", "requests": {"cpu": "2"}}
    cluster.reservation("a", node="n1", **full)
    cluster.reservation("b", node="n2", **full)
    cluster.place("p", "2", node="n1")
    cluster.place("q", "2", node="n2")
    cluster.place("x", "7", node="n2", app="x")
    view, asked = cluster.view(), cluster.pod("asked", "2")
    prepared = cluster.pipeline.cycle(views.PodInfo.of(asked), view).prepared["Reservation"]
    found = kept.among(prepared, view, np.array([view.rows["n1"], view.rows["n2"]]))
    assert found.tiers.tolist() == [0, vacancies.UNKNOWN]
    assert not found.allocates.any()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"host_ports": [80]}, id="ports"),
        pytest.param(
            {"annotations": {"scheduling.koordinator.sh/reservation-affinity": {"name": "a"}}},
            id="affinity",
        ),
    ],
)
def test_a_pod_that_asks_for_more_than_resources_is_left_to_looking(more):
    cluster, kept = _cluster(), vacancies.Vacancies()
    cluster.reservation("a", node="n1")
    assert _known(cluster, kept, "1") == 1
    assert _known(cluster, kept, "1", **more) == 0


def test_an_order_is_left_to_looking():
    cluster, kept = _cluster(), vacancies.Vacancies()
    cluster.reservation("a", node="n1", labels={"scheduling.koordinator.sh/reservation-order": "1"})
    cluster.reservation("b", node="n2")
    assert _known(cluster, kept, "1") == 1


def test_amounts_beyond_any_machine_are_left_to_looking():
    cluster, kept = _cluster(), vacancies.Vacancies()
    cluster.reservation("a", node="n1", requests={"cpu": "1", "memory": "7Pi"})
    cluster.reservation("b", node="n2", requests={"cpu": "1", "memory": "9000Pi"})
    assert _known(cluster, kept, "1") == 1
