"""Shares, quotas and memory limits of batch pods, as recorded."""

import msgspec
import pytest

from agent.hooks import batch_resources, cpu_normalization
from api.koordinator.metadata import qos
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


def written(values):
    named = {
        "cpuShares": values.shares,
        "cfsQuotaUs": values.quota_us,
        "memoryLimitBytes": values.memory_bytes,
    }
    return {name: value for name, value in named.items() if value is not None}


def answer(case):
    by, failed = rule(case.given)
    pod = msgspec.convert(case.given["pod"], core.Pod)
    asked = batch_resources.extended(pod, from_spec=case.given["source"] == "reconciler")
    if asked is None or qos.qos_of(pod.metadata.labels) is not qos.QoS.BE:
        return {}, {}, failed
    containers = {
        container.name: written(batch_resources.of_container(found, by))
        for container in pod.spec.containers
        if (found := asked.containers.get(container.name)) is not None
    }
    return written(batch_resources.of_pod(asked, by)), containers, failed


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
