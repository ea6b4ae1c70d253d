"""Recorded decisions of the reference, compared with ours."""

import gzip
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import edits, reserved, state
from agent.decide import cpu_suppress
from api import core, qos
from domain import cpulists

REFERENCE = Path(__file__).parents[1] / "reference"
DIFFERENCES = runpy.run_path(str(REFERENCE / "differences_agent.py"))["DIFFERENCES"]
FOLDERS = {"be": 0, "be/pod": 1, "be/pod/container": 2}


def vectors(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with gzip.open(REFERENCE / f"{name}.jsonl.gz", "rt") as lines:
        for number, line in enumerate(lines):
            yield f"{name}:{number}", json.loads(line)


def pod_state(raw: dict[str, Any], used: dict[str, float]) -> state.PodState:
    pod = msgspec.convert(raw, core.Pod)
    return state.PodState(
        pod,
        qos.kubernetes_qos(pod),
        state.Usage(cpu=used.get(pod.metadata.uid)),
        reserved.bound_cpus(pod),
    )


def host_application(raw: dict[str, Any], used: dict[str, float]) -> state.HostApplication:
    base = (raw.get("cgroupPath") or {}).get("base")
    best_effort = raw.get("qos") == "BE" and base == "KubepodsBesteffort"
    return state.HostApplication(raw["name"], best_effort, used.get(raw["name"]))


def picture(given: dict[str, Any], policy: str) -> state.NodeState:
    node = msgspec.convert(given["node"], core.Node)
    known = {pod["metadata"]["uid"] for pod in given["pods"]}
    used = given["podCPUUsageCores"]
    apps = [host_application(a, given["hostAppCPUUsageCores"]) for a in given["hostApplications"]]
    old = cpulists.parse(given["oldBECPUSet"])
    return state.NodeState(
        at=0,
        node=node,
        thresholds=state.Thresholds(
            True, given["cpuSuppressThresholdPercent"], given.get("cpuSuppressMinPercent"), policy
        ),
        usage=state.Usage(cpu=given["nodeCPUUsageCores"]),
        pods=tuple(pod_state(pod, used) for pod in given["pods"]),
        lost_pods_cpu=sum(cores for uid, cores in used.items() if uid not in known),
        host_applications=tuple(apps),
        best_effort=state.BestEffort(
            tuple(state.Group(path, depth, old) for path, depth in FOLDERS.items()),
            old,
            given["oldBECFSQuotaUs"],
        ),
        processors=tuple(state.Processor(*place) for place in given["processors"]),
        reserved=reserved.read(node, given["nodeTopologyAnnotations"]),
    )


def values(decided: cpu_suppress.Decision, role: edits.Role) -> dict[str, str]:
    return {e.group: e.value for e in decided.wanted if e.role is role and e.value is not None}


def after_cpuset(given: dict[str, Any]) -> dict[str, str]:
    written = values(cpu_suppress.decide(picture(given, "cpuset")), edits.Role.CPUSET)
    old = cpulists.text(cpulists.parse(given["oldBECPUSet"]))
    names = {"be": "root", "be/pod": "pod", "be/pod/container": "container"}
    return {names[path]: written.get(path, old) for path in FOLDERS}


@pytest.mark.parametrize(
    "group", ["allowed", "cpuset", "quota", "recovered"], ids=lambda group: f"be_suppress-{group}"
)
def test_suppression_agrees_with_the_reference(group):
    wrong, seen = [], set()
    for name, vector in vectors("be_suppress"):
        given, expected = vector["in"], vector["out"]
        if not given["pods"]:
            continue
        now = picture(given, "cpuset" if group != "quota" else "cfsQuota")
        if group == "allowed":
            pair = (cpu_suppress.decide(now).allowed_milli, expected["suppressMilliCPU"])
        elif group == "cpuset":
            pair = (after_cpuset(given), expected.get("beCPUSet"))
            if expected.get("cpusetPanic"):
                left = dict.fromkeys(("root", "pod", "container"), given["oldBECPUSet"])
                pair = (pair[0], left)
        elif group == "quota":
            written = values(cpu_suppress.decide(now), edits.Role.CPU_QUOTA)
            pair = (int(written["be"]), expected["beCFSQuotaUs"])
        else:
            pair = (cpulists.text(cpu_suppress.full_set(now)), expected["recoverCPUSet"])
        if pair[0] != pair[1]:
            key = f"{name}:{group}"
            seen.add(key)
            if key not in DIFFERENCES:
                wrong.append((key, *pair))
    assert not wrong, f"{len(wrong)} differ, first: {wrong[:3]}"
    listed = {key for key in DIFFERENCES if key.endswith(f":{group}")}
    assert listed == seen, "a listed difference no longer exists"


def test_cpus_are_chosen_as_in_the_reference():
    for name, vector in vectors("be_suppress_cpuset_policy"):
        processors = [state.Processor(*place) for place in vector["in"]["processors"]]
        chosen = cpu_suppress.choose(processors, vector["in"]["cpus"])
        assert chosen == vector["out"]["order"], name
