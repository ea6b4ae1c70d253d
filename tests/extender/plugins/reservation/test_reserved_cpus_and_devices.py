"""CPUs, GPUs and virtual functions that a Reservation keeps, and what its owners get of them."""

import json

import pytest

from api import names
from domain.cpus import cpulists
from tests.extender.clusters import device_cluster, numa_cluster, reservation_cluster

AFFINITY = names.ANNOTATION_RESERVATION_AFFINITY
RESTRICTED = {"allocatePolicy": "Restricted"}


def bound(cpuset):
    """The annotations of a Reservation with CPUs of its own."""
    return {names.ANNOTATION_RESOURCE_STATUS: json.dumps({"cpuset": cpuset})}


def cpus(notes):
    assert isinstance(notes, dict), notes
    return json.loads(notes[names.ANNOTATION_RESOURCE_STATUS])["cpuset"]


LSR = {"labels": {names.LABEL_QOS: "LSR"}, "priority": 9500}


@pytest.fixture
def cores():
    """A node of 16 cpus, two threads a core, with a Reservation of the cpus 2-3,10-11."""
    made = reservation_cluster.ReservationCluster()
    made.node(cpu="16")
    made.topology(numa_cluster.topology())
    return made


def test_owners_find_the_cpus_of_their_reservation_and_others_do_not(cores):
    cores.reservation("r", requests={"cpu": "4"}, annotations=bound("2-3,10-11"))
    given = cpus(cores.place("other", "12", app="other", **LSR))
    assert given == "0-1,4-9,12-15"
    assert cpus(cores.place("mine", "2", **LSR)) in ("2,10", "3,11")
    assert cpus(cores.place("more", "2", **LSR)) in ("2,10", "3,11")
    cores.release("other")
    cores.end("r")
    assert cpus(cores.place("new", "12", app="other", **LSR)) == given


def test_an_owner_takes_the_cpus_of_an_aligned_reservation_before_all_others(cores):
    cores.reservation("r", requests={"cpu": "2"}, annotations=bound("3,11"))
    given = cpulists.parse(cpus(cores.place("mine", "4", **LSR)))
    assert len(given) == 4
    assert {3, 11} <= set(given)
    held = cores.view().node(0)
    assert [claim.id for claim in held.claims if "NodeNUMAResource" in claim.allocations] == [
        "uid-mine"
    ]


def test_a_restricted_reservation_gives_its_own_cpus_alone(cores):
    cores.reservation("r", requests={"cpu": "4"}, annotations=bound("2-3,10-11"), **RESTRICTED)
    needs = {AFFINITY: {"name": "r"}}
    assert cpus(cores.place("mine", "4", annotations=needs, **LSR)) == "2-3,10-11"
    refused = cores.place("more", "2", annotations=needs, **LSR)
    assert refused == "Reservation(s) Insufficient cpu"


def test_an_owner_without_cpus_of_its_own_leaves_those_of_the_reservation(cores):
    cores.reservation("r", requests={"cpu": "4"}, annotations=bound("2-3,10-11"))
    assert cores.into("mine", "2") == "r"
    assert cpus(cores.place("other", "12", app="other", **LSR)) == "0-1,4-9,12-15"


GPU = {"cpu": "1", "nvidia.com/gpu": "1"}


def minors(notes):
    assert isinstance(notes, dict), notes
    found = json.loads(notes[names.ANNOTATION_DEVICE_ALLOCATED])
    return [one["minor"] for one in found["gpu"]]


@pytest.fixture
def gpus():
    """A node of two GPUs of which a Reservation holds one."""
    made = reservation_cluster.ReservationCluster()
    made.node(**{"nvidia.com/gpu": "2"})
    made.devices(device_cluster.device("n1", device_cluster.gpu(0), device_cluster.gpu(1)))
    return made


def gpu_of(minor):
    amounts = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
    text = json.dumps({"gpu": [{"minor": minor, "resources": amounts}]})
    return {names.ANNOTATION_DEVICE_ALLOCATED: text}


@pytest.mark.parametrize("policy", [{}, RESTRICTED], ids=["aligned", "restricted"])
def test_owners_find_the_devices_of_their_reservation_and_others_do_not(gpus, policy):
    gpus.reservation("r", requests=GPU, annotations=gpu_of(1), **policy)
    assert minors(gpus.place("other", requests=GPU, app="other")) == [0]
    assert gpus.judge("another", requests=GPU, app="other")
    assert minors(gpus.place("mine", requests=GPU)) == [1]
    gpus.release("mine")
    assert gpus.judge("another", requests=GPU, app="other")
    gpus.end("r")
    assert minors(gpus.place("another", requests=GPU, app="other")) == [1]


@pytest.fixture
def machine():
    """Eight GPUs on four switches, two to each."""
    made = reservation_cluster.ReservationCluster()
    made.node(**{"nvidia.com/gpu": "8"})
    made.devices(device_cluster.eight())
    return made


def test_an_owner_fills_up_the_gpus_of_its_reservation_with_free_ones(machine):
    machine.reservation("r", requests=GPU, annotations=gpu_of(5))
    wanted = {"cpu": "1", "nvidia.com/gpu": "2"}
    assert minors(machine.place("mine", requests=wanted)) == [4, 5]
    assert len(minors(machine.place("rest", requests={**GPU, "nvidia.com/gpu": "6"}))) == 6


def test_an_owner_fills_up_nothing_where_the_reservation_is_restricted(machine):
    machine.reservation("r", requests=GPU, annotations=gpu_of(5), **RESTRICTED)
    wanted = {"cpu": "1", "nvidia.com/gpu": "2"}
    notes = {AFFINITY: {"name": "r"}}
    assert machine.judge("mine", requests=wanted, annotations=notes)
    assert 5 not in minors(machine.place("mine", requests=wanted))


VF = {names.ANNOTATION_DEVICE_HINT: {"rdma": {"vfSelector": {}}}}
RDMA = {"cpu": "1", names.RDMA: "10"}


@pytest.fixture
def adapters():
    """Two RDMA adapters with three virtual functions each."""
    made = reservation_cluster.ReservationCluster()
    made.node(**{names.RDMA: "200"})
    cards = [device_cluster.rdma(minor) for minor in range(2)]
    for card in cards:
        functions = [{"minor": -1, "busID": bus(card["minor"], n)} for n in range(3)]
        card["vfGroups"] = [{"labels": {}, "vfs": functions}]
    made.devices(device_cluster.device("n1", *cards))
    return made


def bus(adapter, number):
    return f"0000:1{adapter}:00.{number}"


def function_of(adapter, number):
    held = {
        "minor": adapter,
        "resources": {names.RDMA: "10"},
        "extension": {"vfs": [{"busID": bus(adapter, number)}]},
    }
    return {names.ANNOTATION_DEVICE_ALLOCATED: json.dumps({"rdma": [held]})}


def functions(notes):
    (one,) = json.loads(notes[names.ANNOTATION_DEVICE_ALLOCATED])["rdma"]
    return [found["busID"] for found in one["extension"]["vfs"]]


@pytest.mark.parametrize("policy", [{}, RESTRICTED], ids=["aligned", "restricted"])
def test_an_owner_gets_the_virtual_function_that_was_kept_by_its_address(adapters, policy):
    adapters.reservation("r", requests=RDMA, annotations=function_of(1, 2), **policy)
    others = []
    for number in range(5):
        notes = adapters.place(f"other-{number}", requests=RDMA, app="other", annotations=VF)
        others += functions(notes)
    assert bus(1, 2) not in others
    assert len(set(others)) == 5
    refusal = adapters.judge("late", requests=RDMA, app="other", annotations=VF)
    assert "rdma" in refusal
    assert functions(adapters.place("mine", requests=RDMA, annotations=VF)) == [bus(1, 2)]


def test_an_owner_takes_the_kept_function_though_lower_ones_are_free(adapters):
    adapters.reservation("r", requests=RDMA, annotations=function_of(0, 1))
    wants = {AFFINITY: {"name": "r"}, **VF}
    assert functions(adapters.place("mine", requests=RDMA, annotations=wants)) == [bus(0, 1)]
    adapters.release("mine")
    assert functions(adapters.place("again", requests=RDMA, annotations=VF)) == [bus(0, 1)]
    # Another owner finds it taken, and takes what is free.
    assert functions(adapters.place("second", requests=RDMA, annotations=VF)) != [bus(0, 1)]
