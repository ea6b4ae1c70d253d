"""Pods in line for quota, and who of them may go."""

import msgspec

from api.kubernetes import core
from domain.quota import model, placement
from domain.quota.waiting import line
from tests.domain.quota.forests import a_forest, a_pod, a_quota

GATED, OPENED, BOUND = line.State.GATED, line.State.OPENED, line.State.BOUND
TOTAL = {"cpu": 1000, "memory": 1000, "pods": 1000}


def waits(uid, quota, cpu, *, state=GATED, preemptible=True, memory=0, namespace="pods", **other):
    asks = {"cpu": cpu, "memory": memory} if memory else {"cpu": cpu}
    use = a_pod(uid, quota, asks, preemptible=preemptible, namespace=namespace)
    use = msgspec.structs.replace(use, assigned=state is BOUND)
    return line.LinePod(uid, use, state, **{"created_at": 0.0, **other})


def zone(name):
    return placement.requirements(core.PodSpec(node_selector={"zone": name}))


def forest_of(quotas, pods, total=None, **rules):
    rules = model.Rules(**rules)
    return a_forest(quotas, [pod.use for pod in pods], total or TOTAL, rules)


def opened(quotas, pods, *, now=0.0, rules=None, most=100, **forest):
    one = line.Line(rules)
    for pod in pods:
        one.put(pod)
    return [each.uid for each in one.opening(forest_of(quotas, pods, **forest), now, most).open]


A = a_quota("a", {"cpu": 40}, {"cpu": 100})
B = a_quota("b", {"cpu": 40}, {"cpu": 100})
