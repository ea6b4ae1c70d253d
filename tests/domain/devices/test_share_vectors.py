"""Devices of one node for one pod, compared with recorded answers of the reference."""

import pytest

from api import names
from api.koordinator import devices
from domain.devices import inventory, pod_devices, records
from domain.devices.allocation import allocator, candidates, device_scores, numa_hints
from domain.devices.requests import gpu_memory, requests
from domain.pods import resources
from tests.reference import cases

WEIGHTS = tuple(
    (name, 1) for name in (names.GPU_MEMORY_RATIO, names.GPU_MEMORY, names.RDMA, names.FPGA)
)


def status(refusal):
    code = "UnschedulableAndUnresolvable" if refusal.final else "Unschedulable"
    return {"code": code, "reasons": [refusal.reason]}


def world(given):
    held = [records.read(one) for one in given["used"]]
    return inventory.NodeDevices.of(
        inventory.read(devices.read_device(given["device"])),
        inventory.Uses.of(held),
        given.get("nodeLabels") or {},
    )


def answer(case):
    given = case.given
    pod, node = given["pod"], world(given)
    metadata = {**pod.get("annotations", {}), **pod.get("labels", {})}
    asked = pod_devices.read(resources.amounts(pod["requests"]), metadata)
    if asked is None:
        return {"preFilter": {"code": "Skip"}}
    if isinstance(asked, requests.Fault):
        reason = {"code": "UnschedulableAndUnresolvable", "reasons": [asked.reason]}
        return {"preFilter": reason}
    scoring = device_scores.Scoring(WEIGHTS, packs=given["strategy"] == "MostAllocated")
    unsupported = frozenset(
        (m["vendor"], m["model"]) for m in given.get("gpuShareUnsupportedModels") or ()
    )
    shown = {"preFilter": {"code": "Success"}}
    choice = candidates.Choice(asked, node)
    found = allocator.unsuitable(choice, unsupported) or allocator.allocate(choice)
    refused = isinstance(found, candidates.Refusal)
    shown["filter"] = status(found) if refused else {"code": "Success"}
    scored = candidates.Choice(asked, node, scoring)
    found = allocator.score(scored)
    shown["score"] = status(found) if isinstance(found, candidates.Refusal) else found
    hinted = numa_hints.hints(scored) if "hints" in case.expected else None
    if isinstance(hinted, candidates.Refusal):
        shown["hints"] = status(hinted)
    elif hinted is not None:
        shown["hints"] = {
            kind: sorted((one.mask, one.preferred, one.score) for one in found)
            for kind, found in hinted.items()
        }
    affinity = given.get("reserveAffinity")
    final = candidates.Choice(
        asked,
        node,
        scoring,
        None if affinity is None else frozenset(affinity),
    )
    found = allocator.allocate(final)
    if isinstance(found, candidates.Refusal):
        shown["reserve"] = status(found)
    else:
        shown["reserve"] = {"code": "Success"}
        shown["allocated"] = records.written(gpu_memory.completed(found, node))
    return shown


def expected(case):
    due = dict(case.expected)
    if isinstance(due.get("hints"), dict) and "code" not in due["hints"]:
        due["hints"] = {
            kind: sorted(
                (sum(1 << n for n in one["mask"]), one["preferred"], one["score"]) for one in found
            )
            for kind, found in due["hints"].items()
        }
    if due.get("hints") is None:
        due.pop("hints", None)
    return due


def no_node_stops_all_others(case, due):
    """A node without the isolation that a pod counts on is refused like any other."""
    if (due.get("filter") or {}).get("code") != "Error":
        return cases.UNSTATED
    return {**due, "filter": {**due["filter"], "code": "UnschedulableAndUnresolvable"}}


def the_json_error_is_our_parsers(case, due):
    reason = (due["preFilter"].get("reasons") or [""])[0]
    if not reason.startswith("invalid DeviceAllocateHint annotation, err: invalid character"):
        return cases.UNSTATED
    told = (
        f"invalid DeviceAllocateHint annotation, err: annotation {names.ANNOTATION_DEVICE_HINT}: "
        "not JSON: JSON is malformed: object keys must be strings (byte 1)"
    )
    return {"preFilter": {**due["preFilter"], "reasons": [told]}}


DIFFERENCES = {
    "isolation": cases.Difference(
        "an error on one node would end the attempt on all of them", no_node_stops_all_others
    ),
    "json": cases.Difference(
        "the text names the annotation and is that of our parser", the_json_error_is_our_parsers
    ),
}


@pytest.mark.vectors
def test_devices_are_given_as_the_reference_gives_them():
    cases.check("device_share", answer, expected, DIFFERENCES)
