"""A pod that moves in a quota that is used up: charged once, and back on the place kept for it."""

import json

import pytest

from api import names, resources
from extender.framework import views
from tests.planes import raw

pytestmark = pytest.mark.timeout(120)
PATIENCE = 60.0


async def quota(moving, name, cpu):
    """Create a quota, wait until the extender knows it; returns the labels of its pods."""
    called = moving.here.name(name)
    amounts = {"cpu": str(cpu), "memory": "1000Gi"}
    body = {
        "apiVersion": resources.ELASTIC_QUOTAS.api_version,
        "kind": resources.ELASTIC_QUOTAS.kind,
        "metadata": {"name": called},
        "spec": {"min": amounts, "max": amounts},
    }
    path = moving.here.path("elasticquotas", group=resources.ELASTIC_QUOTAS.api_version)
    await moving.api.post(path, body)

    async def known():
        state = moving.system.extender.books.cluster.view().cluster["ElasticQuota"]
        return state.forest.quota(called) is not None

    await raw.eventually(known, PATIENCE)
    return {names.LABEL_QUOTA_NAME: called}


def charged(moving, labels):
    """Return the cpu in milli that pods of a quota hold, as the extender counts it."""
    held = moving.system.extender.books.cluster.all_claims().values()
    return sum(
        dict(claim.pod.requirements.requests)["cpu"]
        for claim in held
        if claim.kind in (views.ClaimKind.BOUND, views.ClaimKind.ASSUMED)
        and claim.pod.labels.items() >= labels.items()
    )


async def full(moving):
    """A Deployment that uses up its quota, with two nodes."""
    labels = await quota(moving, "full", 2)
    await moving.here.node("a")
    (pod,) = await moving.deployment("web", labels=labels, terminationGracePeriodSeconds=30)
    return labels, pod["metadata"]["name"], await moving.here.node("b")


async def made_anew(moving, pod):
    """Wait for the pod that a Deployment makes in place of one that leaves; returns its name."""

    async def there():
        pods = [one["metadata"]["name"] for one in await moving.pods("web")]
        return [name for name in pods if name != pod]

    (name,) = await raw.eventually(there, PATIENCE)
    return name


async def test_a_pod_of_a_full_quota_moves(moving):
    labels, pod, second = await full(moving)
    await moving.protect("web")
    await moving.move("j", pod)
    assert await moving.reserved("j") == second
    # The place that is kept is no second charge.
    assert charged(moving, labels) == 2000
    await moving.release("web")
    await moving.says("j", "Eviction", "False", "Evicting")
    # While the old pod ends, it still counts, and its successor waits for that alone.
    await moving.refused(await made_anew(moving, pod), "Insufficient quotas")
    assert charged(moving, labels) == 2000
    held = await moving.reservation_of("j")
    assert held["status"]["phase"] == "Available"
    await moving.here.remove(pod)
    found = await moving.successor("web", pod)
    assert found["spec"]["nodeName"] == second
    note = json.loads(found["metadata"]["annotations"][names.ANNOTATION_RESERVATION_ALLOCATED])
    assert note["name"] == held["metadata"]["name"]
    await moving.ended("j", "Succeeded")
    assert charged(moving, labels) == 2000
    await moving.consistent()


async def test_a_pod_stays_while_others_wait_for_its_quota(moving):
    labels, pod, _ = await full(moving)
    # What admission and the manager write on pods that wait behind the gate of their quota.
    gates = [{"name": names.GATE_QUOTA}]
    await moving.pod("waiting", "2", labels=labels, schedulingGates=gates)
    told = {"type": names.CONDITION_QUOTA, "status": "False", "reason": "InsufficientQuota"}
    await moving.api.call(
        "PATCH",
        moving.here.path("pods", "waiting", "status"),
        {"status": {"conditions": [told]}},
        kind=raw.STRATEGIC_PATCH,
    )
    # A move that is seen to its end: then the descheduler has seen what was written before it.
    (other,) = await moving.deployment("other")
    await moving.move("k", other["metadata"]["name"], mode="EvictDirectly")
    await moving.ended("k", "Succeeded")
    await moving.move("j", pod)
    found = await moving.job_until(
        "j", lambda one: one.get("status", {}).get("reason") == "WaitForArbitration"
    )
    assert "would wait for quota" in found["status"]["message"]
    assert await moving.reservation_of("j") is None
    await moving.here.remove("waiting")
    assert await moving.reserved("j")
