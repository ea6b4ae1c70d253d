"""Quotas and their pods, created over HTTPS at an embedded API server that asks the webhook."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from api import names, resources
from api.koordinator import quota as quotas
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
        switches = {"metadata": {"name": names.CONFIG_MAP_SWITCHES}, "data": {"quota-gates": "off"}}
        path = resources.CONFIG_MAPS.path(names.NAMESPACE)
        await world.api.post(path, switches)
        while await gated():
            await world.clock.advance(0.05)
        path = f"{path}/{names.CONFIG_MAP_SWITCHES}"
        await world.api.patch(path, {"data": {"quota-gates": ""}})
        while not await gated():
            await world.clock.advance(0.05)
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
        with pytest.raises(Exception, match="1 quota is below"):
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


CHILD_REQUEST = names.ANNOTATION_QUOTA_CHILD_REQUEST


def review_of(pod):
    request = {
        "uid": pod["metadata"]["name"],
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": pod["metadata"]["name"],
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def charged(world, kind, name="team"):
    found = await world.api.get(f"{kind.path('default')}/{name}")
    text = found["metadata"].get("annotations", {}).get(CHILD_REQUEST)
    return quotas.amounts(json.loads(text)) if text else {}


@pytest.mark.parametrize("kind", [PLAIN, LONG], ids=lambda one: one.group)
async def test_replicas_and_creators_at_once_never_overdraw(world, kind):
    """Three replicas, 20 creators, 60 pods of 2 cpu: exactly 5 fit into 10 cpu."""
    options = {"quota": {"admission": "deny"}, "registration": {"enabled": False}}
    async with contextlib.AsyncExitStack() as stack:
        replicas = [
            await stack.enter_async_context(world.webhook(name, **options))
            for name in ("one", "two", "three")
        ]
        for running in replicas:
            await world.until(lambda one=running: not one.health.failing())
        await create(world, quota(kind, "team"))
        client = await stack.enter_async_context(aiohttp.ClientSession())
        for running in replicas:
            await known(world, client, running)
        answers = []

        async def creator(number):
            for turn in range(3):
                url = replicas[(number + turn) % 3].url
                body = review_of(labelled(f"p{number}-{turn}"))
                reply = await client.post(f"{url}/validate-pod", json=body, ssl=False)
                answers.append((await reply.json())["response"])

        work = asyncio.gather(*map(creator, range(20)))
        await world.until(work.done, 0.01)
        await work
        refused = [one["status"] for one in answers if not one["allowed"]]
        assert len(answers) - len(refused) == 5
        assert {one["code"] for one in refused} == {403}
        assert {one["message"] for one in refused} == {
            "exceeded quota: default/team, requested: cpu=2, used: cpu=10, limited: cpu=10"
        }
        assert await charged(world, kind) == {"cpu": 10_000}


async def known(world, client, running):
    """Wait until a replica knows the quota; a dry run charges nothing."""
    body = review_of(labelled("probe"))
    body["request"] |= {"dryRun": True}
    body["request"]["object"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "11"
    for _ in range(500):
        asking = asyncio.gather(client.post(f"{running.url}/validate-pod", json=body, ssl=False))
        await world.until(asking.done, 0.01)
        [answer] = await asking
        if not (await answer.json())["response"]["allowed"]:
            return
    raise AssertionError("the quota stays unknown")


async def test_a_pod_is_refused_as_long_as_its_quota_is_full(world):
    """Through the API server; what the manager writes after a deletion lets the next pod in."""
    async with world.webhook(quota={"admission": "deny"}) as running:
        await world.ready(running)
        await create(world, quota(LONG, "team"))

        async def made(name):
            asking = asyncio.gather(world.api.call("POST", conftest.PODS, labelled(name)))
            await world.until(asking.done, 0.01)
            [answer] = await asking
            return answer

        for number in range(5):
            assert (await made(f"p{number}")).status == 201
        refused = await made("late")
        assert refused.status == 403
        assert "exceeded quota: default/team, requested: cpu=2, used: cpu=10" in refused.message
        assert await charged(world, LONG) == {"cpu": 10_000}
        released = {"metadata": {"annotations": {CHILD_REQUEST: '{"cpu":"8"}'}}}
        await world.api.patch(f"{LONG.path('default')}/team", released)
        assert (await made("next")).status == 201
        assert await charged(world, LONG) == {"cpu": 10_000}
        body = {"metadata": {"annotations": {CHILD_REQUEST: "much"}}}
        await world.api.patch(f"{LONG.path('default')}/team", body)
        unread = await made("blind")
        assert unread.status == 403
        assert "cannot be charged" in unread.message
