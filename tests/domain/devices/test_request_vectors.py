"""Device requests of pods, compared with recorded answers of the reference implementation."""

import msgspec
import pytest

from api.koordinator import devices
from api.kubernetes import core
from domain.devices.requests import requests
from domain.pods import resources
from tests.reference import cases


def answer(case):
    pod = msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                "containers": case.given["containers"],
                "initContainers": case.given.get("initContainers") or [],
            },
        },
        core.Pod,
    )
    found = requests.normalised(resources.pod_requests(pod))
    if isinstance(found, requests.Fault):
        return {"error": found.reason}
    shown = {"requests": {kind: dict(asked) for kind, asked in found.items()}, "skip": not found}
    if devices.GPU in found:
        gpus = requests.gpus(found[devices.GPU])
        shown["gpu"] = {"count": gpus.count, "perGPU": dict(gpus.per_gpu), "shared": gpus.shared}
    return shown


def expected(case):
    due = case.expected
    if due.get("error"):
        return {"error": due["error"]}
    shown = {
        "requests": {
            kind: resources.amounts(asked) for kind, asked in (due.get("requests") or {}).items()
        },
        "skip": due["skip"],
    }
    if due.get("gpu"):
        shown["gpu"] = {**due["gpu"], "perGPU": resources.amounts(due["gpu"]["perGPU"])}
    return shown


@pytest.mark.vectors
def test_requests_are_read_as_the_reference_reads_them():
    agreed = cases.check("device_requests", answer, expected, {})
    assert agreed[""]
