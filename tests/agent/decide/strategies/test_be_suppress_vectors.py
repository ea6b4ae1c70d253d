"""How far best effort is shrunk and on which cpus, as recorded."""

import msgspec
import pytest

from agent.decide.strategies import cpu_suppress
from agent.model import edits, state
from agent.model.cpus import reserved_cpus
from api.kubernetes import core
from domain.cpus import cpulists
from tests.reference import cases, differences_agent

FOLDERS = {"be": 0, "be/pod": 1, "be/pod/container": 2}


def pod_state(raw, used):
    cores = used.get(raw["metadata"]["uid"])
    return differences_agent.pod_state(raw, usage=state.Usage(cpu=cores))


def host_application(raw, used):
    base = (raw.get("cgroupPath") or {}).get("base")
    best_effort = raw.get("qos") == "BE" and base == "KubepodsBesteffort"
    return state.HostApplication(raw["name"], best_effort, used.get(raw["name"]))


def picture(given, policy):
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
        reserved=reserved_cpus.read(node, given["nodeTopologyAnnotations"]),
    )


def values(wanted, role):
    return {edit.group: edit.value for edit in wanted if edit.role is role and edit.value}


def allowed(case):
    now = picture(case.given, "cpuset")
    return cpu_suppress.allowed_milli(now, now.thresholds)


def cpuset(case):
    now = picture(case.given, "cpuset")
    wanted = cpu_suppress.by_cpuset(now, allowed(case), "busy")
    written = values(wanted, edits.Role.CPUSET)
    old = cpulists.text(cpulists.parse(case.given["oldBECPUSet"]))
    names = {"be": "root", "be/pod": "pod", "be/pod/container": "container"}
    return {names[path]: written.get(path, old) for path in FOLDERS}


def quota(case):
    wanted = cpu_suppress.by_quota(picture(case.given, "cfsQuota"), allowed(case), "busy")
    return int(values(wanted, edits.Role.CPU_QUOTA)["be"])


def recovered(case):
    return cpulists.text(cpu_suppress.full_set(picture(case.given, "cpuset")))


def cpus_left(case):
    """The cpus as recorded, or as they were where the reference ends in an error."""
    if case.expected.get("cpusetPanic"):
        return dict.fromkeys(("root", "pod", "container"), case.given["oldBECPUSet"])
    return case.expected["beCPUSet"]


QUESTIONS = {
    "allowed": (allowed, lambda case: case.expected["suppressMilliCPU"]),
    "cpuset": (cpuset, cpus_left),
    "quota": (quota, lambda case: case.expected["beCFSQuotaUs"]),
    "recovered": (recovered, lambda case: case.expected["recoverCPUSet"]),
}


@pytest.mark.vectors
@pytest.mark.parametrize("name", QUESTIONS)
def test_suppression(name):
    answer, recorded = QUESTIONS[name]
    differences = differences_agent.of(f"be_suppress.{name}")
    cases.check("be_suppress", answer, recorded, differences)


@pytest.mark.vectors
def test_which_cpus_are_chosen():
    def answer(case):
        processors = [state.Processor(*place) for place in case.given["processors"]]
        return cpu_suppress.choose(processors, case.given["cpus"])

    file = "be_suppress_cpuset_policy"
    cases.check(file, answer, lambda case: case.expected["order"], differences_agent.of(file))
