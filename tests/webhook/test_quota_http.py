"""Quotas and their pods, created over HTTPS at an embedded API server that asks the webhook."""

import pytest

from api import names, resources
from tests.webhook import conftest

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
PLAIN, LONG, SHORT = resources.QUOTA_RESOURCES
IS_PARENT, PARENT = names.LABEL_QUOTA_IS_PARENT, names.LABEL_QUOTA_PARENT


def quota(kind, name, labels=None, cpu="4", namespace="default"):
    return {
        "apiVersion": kind.api_version,
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"min": {"cpu": cpu}, "max": {"cpu": "10"}},
    }


async def create(world, body):
    kind = next(one for one in resources.QUOTA_RESOURCES if one.api_version == body["apiVersion"])
    return await world.api.post(kind.path(body["metadata"]["namespace"]), body)


def labelled(name, team="team"):
    body = conftest.pod(name, mark="no")
    body["metadata"]["labels"][names.LABEL_QUOTA_NAME] = team
    return body


async def renewed(world, times):
    """Renew the Lease of a manager."""
    spec = {"holderIdentity": "m", "leaseDurationSeconds": 15, "leaseTransitions": 0}
    name = "koordinator-manager"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
    for number in range(times):
        spec["renewTime"] = f"2026-01-01T00:00:0{number}.000000Z"
        if number:
            await world.api.patch(f"{LEASES}/{name}", {"spec": spec})
        else:
            await world.api.post(LEASES, {**body, "spec": spec})


async def test_pods_of_a_quota_wait_while_somebody_opens_gates(world):
    async with world.webhook() as running:
        await world.ready(running)
        await create(world, quota(LONG, "team"))
        free = await world.api.post(conftest.PODS, labelled("early"))
        assert "schedulingGates" not in free["spec"]
        await renewed(world, 3)
        made = []

        async def gated():
            made.append(await world.api.post(conftest.PODS, labelled(f"p{len(made)}")))
            return made[-1]["spec"].get("schedulingGates")

        while not await gated():
            await world.clock.advance(0.05)
        assert made[-1]["spec"]["schedulingGates"] == [{"name": names.GATE_QUOTA}]
        await world.clock.advance(40.0)
        assert await gated() is None, "nobody has renewed the lease for too long"


async def test_a_child_may_follow_its_parent_at_once(world):
    """No watch has told of the parent yet when its child comes: it is read."""
    async with world.webhook() as running:
        await world.ready(running)
        parent = quota(PLAIN, "org", {IS_PARENT: "true", names.LABEL_QUOTA_TREE: "t"}, "8")
        await create(world, parent)
        child = await create(world, quota(SHORT, "team", {PARENT: "org"}))
        assert child["metadata"]["labels"][names.LABEL_QUOTA_TREE] == "t"
        with pytest.raises(Exception, match="names of quotas are unique"):
            await create(world, quota(LONG, "team", namespace="kube-system"))
        with pytest.raises(Exception, match="1 quotas are below"):
            await world.api.delete(f"{PLAIN.path('default')}/org")
        await world.api.delete(f"{SHORT.path('default')}/team")
        await create(world, quota(LONG, "team"))


async def test_a_quota_with_pods_is_not_deleted(world):
    async with world.webhook() as running:
        await world.ready(running)
        await create(world, quota(PLAIN, "team"))
        where = f"{PLAIN.path('default')}/team"
        await world.api.post(conftest.PODS, labelled("p"))
        with pytest.raises(Exception, match="charged for pods, such as default/p"):
            await world.api.delete(where)
        with pytest.raises(Exception, match="a parent holds quotas only"):
            await world.api.patch(where, {"metadata": {"labels": {IS_PARENT: "true"}}})
        await world.api.patch(f"{conftest.PODS}/p/status", {"status": {"phase": "Succeeded"}})
        await world.api.delete(where)
