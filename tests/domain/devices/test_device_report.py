"""Rows of devices with their holders, and the problems that are named."""

import pytest

from api import names
from api.koordinator import devices
from domain.devices import device_report, inventory, pod_holdings

GPU = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100"}


def listed(*items, **metadata):
    raw = {"metadata": {"name": "n1", **metadata}, "spec": {"devices": list(items)}}
    return device_report.known(devices.read_device(raw))


def gpu(minor=0, *, health=True, ident="GPU-0"):
    return {"type": "gpu", "minor": minor, "id": ident, "health": health, "resources": GPU}


def holds(name, percent, minor=0, ident="GPU-0", **more):
    amounts = {names.GPU_CORE: percent, names.GPU_MEMORY_RATIO: percent}
    granted = inventory.Granted(minor, amounts, id=ident)
    return pod_holdings.Holding("default", name, {"gpu": (granted,)}, **more)


def reasons(found, holdings, claims=None):
    rows = device_report.rows(found, holdings, claims)
    return [one.reason for one in device_report.problems("n1", rows, holdings)]


def test_a_shared_device_lists_its_holders_and_what_is_left():
    (row,) = device_report.rows(listed(gpu()), [holds("b", 20), holds("a", 30)])
    assert [(share.holding.name, share.percent) for share in row.shares] == [("a", 30), ("b", 20)]
    assert row.percent == 50
    assert row.free == {names.GPU_CORE: 50, names.GPU_MEMORY_RATIO: 50}


def test_the_short_shape_has_models_and_indices():
    short = [
        {"deviceType": kind, "deviceModel": model, "uuid": ident, "health": True}
        for kind, model, ident in (
            ("gpu", "a100", "u1"),
            ("gpu", "a100", "u2"),
            ("rdma", "ib", "r"),
        )
    ]
    found = listed(*short)
    assert [(one.kind, one.minor, one.model, one.id) for one in found] == [
        ("gpu", 0, "a100", "u1"),
        ("gpu", 1, "a100", "u2"),
        ("rdma", 0, "ib", "r"),
    ]


def test_models_of_gpus_come_from_the_labels_of_the_object_too():
    (one,) = listed(gpu(), labels={names.LABEL_GPU_MODEL: "H100"})
    assert one.model == "H100"


PROBLEMS = {
    "none": ([gpu()], [holds("a", 50), holds("b", 50)], None, []),
    "too much": ([gpu()], [holds("a", 60), holds("b", 50)], None, ["OverAllocated"]),
    "unhealthy": ([gpu(health=False)], [holds("a", 60)], None, ["UnhealthyInUse"]),
    "unhealthy and idle": ([gpu(health=False)], [], None, []),
    "gone": ([], [holds("a", 60)], None, ["DeviceGone"]),
    "replaced": ([gpu(ident="GPU-9")], [holds("a", 60)], None, ["DeviceReplaced"]),
    "claimed": ([gpu()], [holds("a", 60)], {("gpu", 0): ("default/c",)}, ["HeldByClaimToo"]),
    "claimed alone": ([gpu()], [], {("gpu", 0): ("default/c",)}, []),
    "unreadable": (
        [gpu()],
        [pod_holdings.Holding("default", "a", {}, fault="no JSON")],
        None,
        ["RecordUnreadable"],
    ),
}


@pytest.mark.parametrize("case", PROBLEMS.values(), ids=PROBLEMS)
def test_problems(case):
    items, holdings, claims, expected = case
    assert reasons(listed(*items), holdings, claims) == expected


def test_a_problem_names_few_pods_and_a_remedy():
    holdings = [holds(f"p{number:02}", 20) for number in range(9)]
    rows = device_report.rows(listed(gpu()), holdings)
    (problem,) = device_report.problems("n1", rows, holdings)
    assert "default/p00, default/p01, default/p02 and 6 more hold of gpu 0" in problem.text
    assert "180 of koordinator.sh/gpu-core, it has 100" in problem.text
    assert problem.remedy == device_report.PROBLEMS["OverAllocated"]


def test_nothing_is_free_of_what_is_unhealthy_or_claimed():
    (sick,) = device_report.rows(listed(gpu(health=False)), [])
    (claimed,) = device_report.rows(listed(gpu()), [], {("gpu", 0): ("default/c",)})
    assert not any(sick.free.values())
    assert not any(claimed.free.values())
