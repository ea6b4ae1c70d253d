"""Identities of classes, pods and host applications, as recorded."""

import pytest

from agent import strategies
from agent.hooks import group_identity
from api import names
from api.koordinator.metadata import qos
from tests.reference import cases, differences_agent

CLASSES = {"lsrClass": qos.QoS.LSR, "lsClass": qos.QoS.LS, "beClass": qos.QoS.BE}
GROUPS = ("Guaranteed", "Burstable", "BestEffort")


def classes(strategy):
    found = {}
    for name, class_ in CLASSES.items():
        written = (strategy.get(name) or {}).get("cpuQOS")
        if written is not None:
            identity = written.get("groupIdentity") or 0
            found[class_] = strategies.Cpu(bool(written.get("enable")), identity)
    policy = (strategy.get("policies") or {}).get("cpuPolicy")
    return strategies.Classes(cpu=found, cpu_policy=policy or "")


def of_pod(rule, pod):
    try:
        named = qos.qos_of(pod["labels"])
        return group_identity.of_pod(rule, named, pod["kubeQOS"], pod["annotations"])
    except group_identity.IdentityError:
        return "error"


def answer(case):
    rule = group_identity.rule(classes(case.given["resourceQOSStrategy"]))
    return (
        rule.enable,
        {group: rule.of_group(group) for group in GROUPS},
        {
            name: rule.of_class(qos.qos_of({names.LABEL_QOS: name}))
            for name in case.expected["hostApps"]
        },
        [of_pod(rule, pod) for pod in case.given["pods"]],
    )


def recorded(case):
    out = case.expected
    pods = ["error" if "error" in pod else pod["bvt"] for pod in out["pods"]]
    return out["enable"], out["kubeQOSDirs"], out["hostApps"], pods


@pytest.mark.vectors
def test_identities():
    file = "group_identity"
    cases.check(file, answer, recorded, differences_agent.of(file))
