"""Shares, quotas and memory limits of batch pods, as recorded."""

import msgspec
import pytest

from agent.hooks import batch_resources
from agent.hooks.cpu import cpu_normalization
from agent.hooks.lifecycle import adjustment, stages, subject
from agent.model import edits, state
from api.kubernetes import core
from tests.reference import cases, differences_agent


def rule(given):
    strategy = given["nodeSLOSpec"].get("resourceUsedThresholdWithBE") or {}
    above = bool(strategy.get("enable")) and strategy.get("cpuSuppressPolicy") == "cfsQuota"
    annotations = given["node"]["metadata"].get("annotations", {})
    try:
        return batch_resources.Rule(above, cpu_normalization.ratio(annotations)), False
    except cpu_normalization.RatioError:
        return batch_resources.Rule(above), True


FIELDS = {
    edits.Role.CPU_SHARES: "cpuShares",
    edits.Role.CPU_QUOTA: "cfsQuotaUs",
    edits.Role.MEMORY_LIMIT: "memoryLimitBytes",
}


def asked(pod, by, *, known, container=None):
    """The answer for a pod or container: of hooks before it starts, of reconciliation later."""
    level = subject.Level.POD if container is None else subject.Level.CONTAINER
    first = subject.Stage.RUN_POD_SANDBOX if container is None else subject.Stage.CREATE_CONTAINER
    stage = subject.Stage.RECONCILE if known else first
    of = subject.Subject(stage, level, pod, container, spec_known=known)
    found, problems = adjustment.adjust(of, stages.freeze([batch_resources.HOOK.bind(by)]))
    assert not problems
    return {FIELDS[role]: int(value.text) for role, value in found.values.items()}


def answer(case):
    by, failed = rule(case.given)
    known = case.given["source"] == "reconciler"
    raw = msgspec.convert(case.given["pod"], core.Pod)
    status = msgspec.structs.replace(raw.status, phase="Running")
    pod = state.PodState(msgspec.structs.replace(raw, status=status), "BestEffort")
    containers = {
        one.name: values
        for one in raw.spec.containers
        if (values := asked(pod, by, known=known, container=state.ContainerState(one.name)))
    }
    return asked(pod, by, known=known), containers, failed


def with_batch(case):
    return {
        container["name"]
        for container in case.given["pod"]["spec"]["containers"]
        for side in container.get("resources", {}).values()
        for name in side
        if name.startswith("kubernetes.io/batch-")
    }


def recorded(case):
    """The answer of the reference, but for containers whose spec asks for nothing.

    There the reference obeys the annotation, which whoever may patch a pod can change to lift its
    limits; we leave such a container alone wherever there is a spec to read, and the pod too where
    all of its containers are such.
    """
    out = case.expected
    containers = {name: values for name, values in out["containers"].items() if values}
    failed = bool(out.get("nodeMetaError"))
    if case.given["source"] == "reconciler":
        known = with_batch(case)
        containers = {name: values for name, values in containers.items() if name in known}
        return out["pod"] if known else {}, containers, failed
    return out["pod"], containers, failed


@pytest.mark.vectors
def test_values_of_batch_pods():
    file = "batch_hook"
    cases.check(file, answer, recorded, differences_agent.of(file))
