"""Reservations as a watch tells of them: what their claims depend on is read, the rest is not."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.koordinator import scheduling
from api.wire import base
from extender.informers import reservations
from extender.state.reservations import reservation_claims
from kube.informers import store
from tests.extender.clusters import reservation_cluster

OWNER = {"namespace": "default", "name": "p", "uid": "uid-p"}


@pytest.fixture(scope="module")
def projector():
    return reservation_cluster.ReservationCluster().projector


def _raw(**more):
    raw = copy.deepcopy(reservation_cluster.written("r"))
    for path, value in more.items():
        *folders, last = path.split("__")
        part = raw
        for folder in folders:
            part = part[folder]
        part[last] = value
    return raw


CHANGES = {
    "labels": {"metadata__labels": {"team": "a"}},
    "annotations": {"metadata__annotations": {"example.com/note": "x"}},
    "deleted": {"metadata__deletionTimestamp": "2026-07-01T12:00:00Z"},
    "owners": {"spec__owners": [{"labelSelector": {"matchLabels": {"app": "b"}}}]},
    "policy": {"spec__allocatePolicy": "Restricted"},
    "phase": {"status__phase": "Succeeded"},
    "node": {"status__nodeName": "n2"},
    "amounts": {"status__allocatable": {"cpu": "2"}},
    "over": {"status__phase": "Waiting", "status__currentOwners": [OWNER]},
    "used": {"status__currentOwners": [OWNER], "status__allocated": {"cpu": "1"}},
    "version": {"metadata__resourceVersion": "7"},
    "another": {"metadata__uid": "uid-other"},
    "plain": {},
}


@given(steps=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=12))
def test_whatever_changes_the_claim_is_as_it_would_be_read_alone(projector, steps):
    reader = reservations.Reader(projector)
    for step in steps:
        raw = _raw(**CHANGES[step])
        alone = reservation_claims.claim(scheduling.read_reservation(raw), projector)
        assert reader.read(raw) == alone


def test_who_uses_a_reservation_is_not_read(projector):
    reader = reservations.Reader(projector)
    first = reader.read(_raw())
    assert reader.read(_raw(**CHANGES["used"])) is first
    assert reader.read(_raw(**CHANGES["policy"])) is not first


def test_the_pods_over_which_one_waits_are_read(projector):
    reader = reservations.Reader(projector)
    reader.read(_raw(status__phase="Waiting", status__currentOwners=[]))
    found = reservation_claims.offered(reader.read(_raw(**CHANGES["over"])))
    assert found.over == {"uid-p"}


def test_what_is_kept_of_one_that_cannot_be_read_is_not_taken_for_what_it_says(projector):
    reader = reservations.Reader(projector)
    first = reader.read(_raw())
    reader.known.put(store.Meta("r", "uid-r", 1), first)
    changed = {"status__allocatable": {"cpu": "2"}}
    # The part that cannot be read is one on which the claim does not depend.
    assert reader.read(_raw(**changed, status__allocated="nothing")) is first
    assert reader.read(_raw(**changed)).pod.requirements.requests == (("cpu", 2000),)


def test_what_never_could_be_read_is_an_error(projector):
    reader = reservations.Reader(projector)
    with pytest.raises(base.ReadError):
        reader.read(_raw(status__allocatable="all"))


@pytest.mark.parametrize("value", [1 << 80, -(1 << 80)], ids=["large", "small"])
def test_numbers_that_no_api_server_sends_are_read_each_time(projector, value):
    reader = reservations.Reader(projector)
    raw = _raw(spec__template__spec__odd=value)
    assert reader.read(raw) == reader.read(raw) is not None


@pytest.mark.parametrize("what", ["cpu", "memory"])
def test_no_amount_is_too_large_for_the_figures_of_a_node(what):
    """Two of them on one node, each the largest amount that an API server takes."""
    cluster = reservation_cluster.ReservationCluster()
    cluster.node("n1", cpu="10")
    for name in ("r", "s"):
        cluster.reservation(name, requests={what: "9223372036854775807"})
    view = cluster.books.cluster.view()
    assert view.sparse("Reservation", view.rows["n1"]).free[what] < 0


def test_nothing_is_kept_of_reservations_that_are_gone(projector):
    reader = reservations.Reader(projector)
    for number in range(500):
        raw = _raw(metadata__name=f"r{number}", metadata__uid=f"uid-{number}")
        claim = reader.read(raw)
        reader.known.put(store.Meta(f"r{number}", f"uid-{number}", 2 * number + 1), claim)
        reader.known.remove(f"r{number - 3}", 2 * number + 2)
    assert len(reader.known) == 3
    assert reader.kept() < 100
