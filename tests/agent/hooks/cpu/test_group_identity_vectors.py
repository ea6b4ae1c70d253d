"""Identities of classes, pods and host applications, as recorded."""

import pytest

from agent.hooks.cpu import group_identity
from agent.hooks.lifecycle import adjustment, stages, subject
from agent.model import edits, state, strategy_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests.reference import cases, differences_agent

CLASSES = {"lsrClass": qos.QoS.LSR, "lsClass": qos.QoS.LS, "beClass": qos.QoS.BE}
GROUPS = ("Guaranteed", "Burstable", "BestEffort")


def classes(strategy):
    found = {}
    for name, class_ in CLASSES.items():
        written = (strategy.get(name) or {}).get("cpuQOS")
        if written is not None:
            identity = written.get("groupIdentity") or 0
            found[class_] = strategy_settings.Cpu(bool(written.get("enable")), identity)
    policy = (strategy.get("policies") or {}).get("cpuPolicy")
    return strategy_settings.Classes(cpu=found, cpu_policy=policy or "")


def of_pod(rule, raw):
    meta = core.ObjectMeta(labels=raw["labels"], annotations=raw["annotations"])
    pod = state.PodState(core.Pod(metadata=meta), raw["kubeQOS"])
    of = subject.Subject(subject.Stage.RUN_POD_SANDBOX, subject.Level.POD, pod)
    bound = group_identity.HOOK.bind(group_identity.OnKernel(rule, native=True))
    found, problems = adjustment.adjust(of, stages.freeze([bound]))
    if problems:
        assert not found.values
        return "error"
    return int(found.values[edits.Role.CPU_IDENTITY].text)


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
