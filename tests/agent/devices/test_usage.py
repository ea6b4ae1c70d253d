"""Who uses GPUs how much."""

import pytest

from agent.devices import device_inventory, usage, usage_figures
from agent.store import time_series

Amount, Owner, Process, Reading = (
    usage.Amount,
    usage.Owner,
    device_inventory.Process,
    device_inventory.Reading,
)
GIB = 1 << 30
OWNERS = {1: Owner("pod-a", "app"), 2: Owner("pod-a", "side"), 3: Owner("pod-b", "app")}


def amounts(*readings, owners=OWNERS):
    return usage.amounts(readings, owners)


def test_processes_add_up_to_containers_pods_and_the_node():
    processes = (Process(1, 2, 10.0), Process(2, 3, 20.0), Process(3, 5, 30.0), Process(9, 7, 1.0))
    found = amounts(Reading("G", None, None, processes))
    assert found == {
        ("node", "gpu", "G"): Amount(61.0, 17),
        ("pod", "pod-a", "gpu", "G"): Amount(30.0, 5),
        ("pod", "pod-b", "gpu", "G"): Amount(30.0, 5),
        ("container", "pod-a", "app", "gpu", "G"): Amount(10.0, 2),
        ("container", "pod-a", "side", "gpu", "G"): Amount(20.0, 3),
        ("container", "pod-b", "app", "gpu", "G"): Amount(30.0, 5),
    }


def test_the_device_itself_knows_best_what_is_used_of_it():
    found = amounts(Reading("G", 40, 75.0, (Process(1, 2, 10.0),)))
    assert found["node", "gpu", "G"] == Amount(75.0, 40)
    assert found["pod", "pod-a", "gpu", "G"] == Amount(10.0, 2)


def test_a_process_without_a_sample_counts_with_its_memory():
    found = amounts(Reading("G", None, None, (Process(1, 2), Process(2, 3, 20.0))))
    assert found["pod", "pod-a", "gpu", "G"] == Amount(20.0, 5)
    assert found["container", "pod-a", "app", "gpu", "G"] == Amount(None, 2)


def test_a_divided_gpu_tells_memory_only():
    found = amounts(Reading("G", 40, None, (Process(1, 2),)))
    assert found["node", "gpu", "G"] == Amount(None, 40)


@pytest.mark.parametrize(
    ("samples", "since", "expected"),
    [
        ([], 0, {}),
        ([(1, 10, 20.0), (1, 20, 40.0), (2, 20, 5.0)], 0, {1: 30.0, 2: 5.0}),
        ([(1, 10, 20.0), (1, 20, 40.0)], 10, {1: 40.0}),
        ([(1, 20, 4294967295.0), (1, 20, 7.0)], 0, {1: 7.0}),
        ([(0, 0, 0.0)], 0, {}),
    ],
    ids=["none", "means", "newer ones", "an unfilled slot", "no moment"],
)
def test_shares(samples, since, expected):
    assert usage.shares(samples, since) == expected


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/kubepods.slice/kubepods-pod1.slice/cri-containerd-x.scope", "x"),
        ("/../../cri-containerd-x.scope/init.scope", "x"),
        ("/kubepods/pod1/y", None),
        ("/", None),
    ],
)
def test_owners(path, owner):
    known = {"cri-containerd-x.scope": Owner("p", "x")}
    found = usage.owner_of(path, known)
    assert (found and found.container) == owner


def counted(number, memory=80 * GIB, healthy=True):
    return usage_figures.Counted(f"GPU-{number}", number, memory, healthy)


def newest(series):
    return series.newest[1]


def test_entries_of_a_report():
    samples = time_series.Histories()
    for figure, value in (("core", 33.9), ("memory", 20.0 * GIB)):
        samples.add(("node", "gpu", "GPU-1", figure), 0.0, value, 300.0)
    samples.add(("node", "gpu", "GPU-2", "core"), 0.0, 5.0, 300.0)
    gpus = (counted(0), counted(1, healthy=False), counted(2))
    assert usage_figures.entries(samples, ("node",), gpus, newest) == [
        {
            "type": "gpu",
            "id": "GPU-1",
            "minor": 1,
            "health": False,
            "resources": {
                "koordinator.sh/gpu-core": "33",
                "koordinator.sh/gpu-memory": "20Gi",
                "koordinator.sh/gpu-memory-ratio": "25",
            },
        },
        {
            "type": "gpu",
            "id": "GPU-2",
            "minor": 2,
            "health": True,
            "resources": {"koordinator.sh/gpu-core": "5"},
        },
    ]
    assert usage_figures.total(samples, ("node",), gpus, newest) == {
        "koordinator.sh/gpu-core": 38,
        "koordinator.sh/gpu-memory": 20 * GIB,
    }
    assert usage_figures.total(samples, ("pod", "x"), gpus, newest) == {}


def test_only_gpus_with_memory_are_counted():
    gpu = device_inventory.of_gpu(device_inventory.Gpu("G", 0, "A", GIB, "b"), None, None)
    adapter = device_inventory.Device("rdma", "a", 0, {"koordinator.sh/rdma": "100"})
    bare = device_inventory.Device("gpu", "x", 1, {"koordinator.sh/gpu-core": "100"})
    found = device_inventory.Inventory((gpu, adapter, bare))
    assert usage.counted(found) == (usage_figures.Counted("G", 0, GIB),)
