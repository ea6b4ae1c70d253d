"""A pod takes the devices that are kept for it first, and as few others as it can beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator import devices
from domain.devices import inventory, pod_devices
from domain.devices.allocation import allocator, candidates, kept_devices
from tests import processor_time
from tests.extender.clusters import device_cluster

H100 = {names.LABEL_GPU_MODEL: "H100"}
JOINT = {names.ANNOTATION_DEVICE_JOINT: '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'}


def node(used=(), labels=inventory.NO_LABELS, share=100):
    """Eight GPUs and four cards; of some GPUs other pods hold a share."""
    known = inventory.read(devices.read_device(device_cluster.eight()))
    held = {"gpu": tuple(granted(minor, share) for minor in used)}
    return inventory.NodeDevices.of(known, inventory.Uses.of([held]), labels)


def granted(minor, share=100):
    return inventory.Granted(minor, {names.GPU_CORE: share, names.GPU_MEMORY_RATIO: share})


def kept(*minors, share=100):
    return {"gpu": tuple(granted(minor, share) for minor in minors)}


def choice(on, percent, notes=None, **more):
    asked = {names.GPU: percent} | ({names.RDMA: 100} if notes else {})
    return candidates.Choice(pod_devices.read(asked, notes or {}), on, **more)


def minors(found, kind="gpu"):
    assert not isinstance(found, candidates.Refusal), found
    return {one.minor for one in found[kind]}


@pytest.mark.parametrize(
    ("mine", "percent", "expected"),
    [
        pytest.param((5,), 100, {5}, id="the one that is kept"),
        pytest.param((5, 6), 100, {5}, id="one of those that are kept"),
        pytest.param((5,), 200, {4, 5}, id="one more, on the same switch"),
        pytest.param((1, 6), 400, {0, 1, 6, 7}, id="two more, on the same switches"),
        pytest.param((0, 7), 600, {0, 1, 2, 5, 6, 7}, id="then those with the next numbers"),
    ],
)
def test_free_gpus_fill_up_what_is_kept(mine, percent, expected):
    assert minors(kept_devices.allocate(choice(node(), percent), kept(*mine))) == expected


def test_a_part_of_a_gpu_grows_where_it_is_kept():
    wanted = choice(node(used=(0, 1, 2, 4, 5, 6, 7), share=10), 80)
    assert minors(kept_devices.allocate(wanted, kept(7, share=50))) == {7}


def test_gpus_that_only_come_in_partitions_are_completed_to_one():
    wanted = choice(node(labels=H100), 200)
    assert minors(allocator.allocate(wanted)) != {4, 5}
    assert minors(kept_devices.allocate(wanted, kept(5))) == {4, 5}


def test_no_partition_is_taken_beyond_what_is_kept():
    one = kept_devices.only(node(labels=H100), kept(2, 3))
    assert minors(allocator.allocate(choice(one, 200))) == {2, 3}
    refused = allocator.allocate(choice(kept_devices.only(one, kept(2)), 200))
    assert isinstance(refused, candidates.Refusal)


def test_cards_follow_to_the_switch_of_a_gpu_that_is_kept():
    found = kept_devices.allocate(choice(node(), 100, JOINT), kept(4))
    assert (minors(found), minors(found, "rdma")) == ({4}, {2})


def test_what_does_not_fit_is_refused_as_without_a_reservation():
    wanted = choice(node(used=(0, 1)), 700)
    assert kept_devices.allocate(wanted, kept(2)) == allocator.allocate(wanted)


MINORS = st.sets(st.integers(0, 7))


@given(used=MINORS, mine=MINORS, count=st.integers(1, 8), numa=st.sampled_from([None, {0}, {1}]))
def test_as_many_are_kept_ones_as_can_be(used, mine, count, numa):
    mine -= used
    wanted = choice(node(used=tuple(used)), 100 * count, numa=numa)
    found, plain = kept_devices.allocate(wanted, kept(*mine)), allocator.allocate(wanted)
    assert isinstance(found, candidates.Refusal) is isinstance(plain, candidates.Refusal)
    if isinstance(found, candidates.Refusal):
        return
    reached = {minor for minor in mine if numa is None or minor // 4 in numa}
    assert len(found["gpu"]) == count
    assert not minors(found) & used
    assert len(minors(found) & mine) == min(count, len(reached))


def test_many_devices_are_filled_up_as_fast_as_few():
    many = [device_cluster.gpu(number) for number in range(2048)]
    known = inventory.read(devices.read_device(device_cluster.device("n1", *many)))
    on = inventory.NodeDevices.of(known, inventory.Uses.of([]), inventory.NO_LABELS)
    with processor_time.below(1.0):
        found = kept_devices.allocate(choice(on, 200), kept(5))
    assert minors(found) == {4, 5}
