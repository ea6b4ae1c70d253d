"""Claims of Reservations: what they hold, what their owners leave of it, and who may use it."""

import json

import msgspec
import pytest

from api import names
from api.koordinator import scheduling
from api.kubernetes import core
from domain.devices import inventory
from domain.reservations import model
from extender.framework import views
from extender.plugins.device_share import allocation as devices
from extender.plugins.node_numa_resource import allocation as cpus
from extender.state import claims, cluster_state, invariants, ledger, records
from extender.state.reservations import reservation_claims

CODECS = (cpus.Codec(), devices.Codec())
PROJECTOR = records.Projector(codecs=CODECS)
STATUS = {"cpuset": "0-3"}


class Used(msgspec.Struct, frozen=True):
    """An allocation that says whose capacity a pod uses."""

    consumes: str


def written(name="r1", *, phase="Available", node="n1", cpu="4", notes=None, **spec):
    """A Reservation with a cpuset."""
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "annotations": {names.ANNOTATION_RESOURCE_STATUS: json.dumps(STATUS), **(notes or {})},
        },
        "spec": {
            "template": {
                "metadata": {"labels": {names.LABEL_QOS: "LSR"}},
                "spec": {
                    "priority": 9500,
                    "containers": [
                        {
                            "name": "main",
                            "ports": [{"containerPort": 80, "hostPort": 8080}],
                            "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
                        }
                    ],
                },
            },
            "owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}],
            **spec,
        },
        "status": {"phase": phase, "nodeName": node, "allocatable": {"cpu": cpu, "memory": "1Gi"}},
    }


def claim_of(raw):
    return reservation_claims.claim(scheduling.read_reservation(raw), PROJECTOR)


@pytest.fixture
def books():
    made = ledger.Ledger(cluster_state.ClusterState((), ("cpu",)))
    figures = (("cpu", 64000),)
    made.node(None, records.NodeRecord("n1", figures, figures, uid="n1"))
    return made


def owner(name, cpuset, *, of="r1", cpu=2000):
    """A pod of 2 cpus that uses a Reservation."""
    raw = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": f"{cpu}m"}}}],
        },
    }
    pod = PROJECTOR.pod(msgspec.convert(raw, core.Pod))
    granted = {cpus.NAME: cpus.CpuAllocation(cpuset), "Uses": Used(claims.reservation(f"uid-{of}"))}
    return msgspec.structs.replace(pod, allocations=granted, assigned_at=1.0)


def counted(books):
    """The cpus that each claim is counted with."""
    info = books.cluster.view().node(0)
    return {
        claim.pod.name: claim.allocations[cpus.NAME].cpuset
        for claim in info.claims
        if cpus.NAME in claim.allocations
    }


def test_a_reservation_holds_what_its_status_and_its_annotations_say():
    found = claim_of(written())
    assert (found.id, found.kind, found.node) == (
        "reservation/uid-r1",
        claims.ClaimKind.RESERVATION,
        "n1",
    )
    wanted = found.pod.requirements
    assert wanted.requests == (("cpu", 4000), ("memory", 1 << 30))
    assert wanted.host_ports == (("", "TCP", 8080),)
    assert found.allocations[cpus.NAME] == cpus.CpuAllocation("0-3")
    assert reservation_claims.offered(found).allocatable == {"cpu": 4000, "memory": 1 << 30}


@pytest.mark.parametrize("phase", ["", "Pending", "Succeeded", "Failed"])
def test_one_that_is_not_placed_or_has_ended_holds_nothing(phase):
    assert claim_of(written(phase=phase)) is None


def test_one_that_waits_for_running_pods_holds_its_node_and_names_them():
    raw = written(phase="Waiting")
    raw["status"]["currentOwners"] = [{"uid": "uid-old", "name": "old", "namespace": "ns"}]
    offered = reservation_claims.offered(claim_of(raw))
    assert (offered.waiting, offered.over) == (True, {"uid-old"})


def test_more_cpus_than_are_reserved_are_not_believed():
    found = claim_of(written(cpu="3"))
    assert cpus.NAME not in found.allocations
    assert found.pod.unreadable == (cpus.NAME,)


def test_a_reservation_whose_options_cannot_be_read_keeps_its_capacity_from_everybody():
    notes = {names.ANNOTATION_RESERVATION_RESTRICTED: "{"}
    found = claim_of(written(notes=notes, allocatePolicy="Restricted"))
    offered = reservation_claims.offered(found)
    assert offered.owners == ()
    assert offered.allocatable["cpu"] == 4000


def test_what_owners_hold_is_not_counted_a_second_time(books):
    books.reservations.watched(None, claim_of(written()))
    assert counted(books) == {"r1": "0-3"}
    books.pod(None, owner("a", "0-1"), 1.0)
    assert counted(books) == {"r1": "2-3", "a": "0-1"}
    books.pod(None, owner("b", "2-3"), 1.0)
    assert counted(books) == {"a": "0-1", "b": "2-3"}
    books.pod(owner("a", "0-1"), None, 2.0)
    assert counted(books) == {"r1": "0-1", "b": "2-3"}
    assert not invariants.drifted(books.cluster)


def test_pods_that_use_another_reservation_leave_this_one_whole(books):
    books.reservations.watched(None, claim_of(written()))
    books.pod(None, owner("a", "4-5", of="r2"), 1.0)
    assert counted(books) == {"r1": "0-3", "a": "4-5"}


def test_in_tree_totals_and_pods_leave_reservations_out(books):
    books.reservations.watched(None, claim_of(written()))
    books.pod(None, owner("a", "0-1"), 1.0)
    view = books.cluster.view()
    assert int(view.requested[0, 0]) == 2000
    assert [pod.name for pod in view.node(0).pods] == ["a"]
    assert list(view.node(0).reserved) == ["reservation/uid-r1"]


def test_a_node_without_an_owner_gives_its_cpus_back_to_the_reservation(books):
    books.reservations.watched(None, claim_of(written()))
    books.pod(None, owner("a", "0-1"), 1.0)
    what_if = books.cluster.view().with_claims(0, remove={"uid-a"})
    (kept,) = what_if.node(0).claims
    assert kept.allocations[cpus.NAME].cpuset == "0-3"
    without = books.cluster.view().with_claims(0, remove={"reservation/uid-r1"})
    assert [claim.id for claim in without.node(0).claims] == ["uid-a"]
    back = without.with_claims(0, add=[claim_of(written())])
    assert {one.id: one.allocations[cpus.NAME].cpuset for one in back.node(0).claims} == {
        "uid-a": "0-1",
        "reservation/uid-r1": "2-3",
    }


def test_a_reservation_that_ends_leaves_nothing_behind(books):
    held = claim_of(written())
    books.reservations.watched(None, held)
    books.pod(None, owner("a", "0-1"), 1.0)
    books.reservations.watched(held, None)
    assert counted(books) == {"a": "0-1"}
    assert not invariants.drifted(books.cluster)


def test_one_that_is_created_anew_under_its_name_is_another(books):
    first = claim_of(written())
    raw = written()
    raw["metadata"]["uid"] = "other"
    books.reservations.watched(None, first)
    books.reservations.watched(first, claim_of(raw))
    assert [claim.id for claim in books.cluster.claims_on("n1")] == ["reservation/other"]


def test_an_assumed_reservation_counts_instead_of_its_stand_in_until_the_watch_shows_it(books):
    stand_in = msgspec.structs.replace(owner("stand-in", "0-3", of="none"), node="")
    books.assume(stand_in, "n1", 1.0, 1.0, {cpus.NAME: cpus.CpuAllocation("0-3")})
    held = claim_of(written())
    books.reservations.assume(held, expires_at=60.0)
    books.forget("uid-stand-in")
    (claim,) = books.cluster.claims_on("n1")
    assert (claim.id, claim.evidence) == (held.id, "")
    books.expire(59.0)
    assert books.cluster.claim(held.id) is claim
    books.reservations.watched(None, held)
    books.reservations.forget(held.id)
    books.expire(100.0)
    assert books.cluster.claim(held.id) == held


def test_pods_may_use_one_as_soon_as_the_api_server_has_answered_that_it_is_placed(books):
    held = claim_of(written())
    books.reservations.assume(held)
    books.reservations.placed(held, expires_at=60.0)
    (claim,) = books.cluster.claims_on("n1")
    assert (claim.evidence, claim.expires_at) == (claims.SHOWN, 60.0)
    books.expire(60.0)
    assert not books.cluster.all_claims()
    books.reservations.watched(None, held)
    books.reservations.placed(held, expires_at=90.0)
    books.expire(100.0)
    assert books.cluster.claim(held.id) == held


@pytest.mark.parametrize("by_time", [True, False], ids=["expired", "forgotten"])
def test_an_assumed_reservation_that_was_never_written_ends(books, by_time):
    held = claim_of(written())
    books.reservations.assume(held, expires_at=60.0)
    books.forget("uid-stand-in")
    if by_time:
        books.expire(60.0)
    else:
        books.reservations.forget(held.id)
    assert not books.cluster.all_claims()


def test_an_echo_that_came_first_is_not_assumed_again(books):
    held = claim_of(written())
    books.reservations.watched(None, held)
    books.reservations.assume(held, expires_at=60.0)
    books.forget("uid-stand-in")
    books.reservations.forget(held.id)
    assert books.cluster.claim(held.id) == held


def test_devices_are_divided_by_what_is_left_of_each():
    whole = devices.Devices(devices_of({0: 100, 1: 100}))
    left = whole.without([devices.Devices(devices_of({0: 100, 1: 40}))])
    assert left == devices.Devices(devices_of({1: 60}))
    assert whole.without([whole]) is None


def devices_of(cores):
    granted = [inventory.Granted(minor, {names.GPU_CORE: value}) for minor, value in cores.items()]
    return {"gpu": tuple(granted)}


def test_zones_are_divided_by_amount():
    whole = cpus.CpuAllocation("0-3", ((0, (("cpu", 4000), ("memory", 100))),))
    part = cpus.CpuAllocation("0-1", ((0, (("cpu", 2000), ("memory", 100))),))
    assert whole.without([part]) == cpus.CpuAllocation("2-3", ((0, (("cpu", 2000),)),))
    assert whole.without([part, part]) == cpus.CpuAllocation("2-3")


def test_the_projection_of_a_reservation_is_never_a_victim():
    found = claim_of(written())
    assert found.pod.requirements.priority == reservation_claims.PRIORITY
    assert isinstance(found.allocations[reservation_claims.NAME], model.Reservation)
    assert views.PodInfo.of(found.pod).name == "r1"
