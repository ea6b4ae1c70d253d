"""Members of gangs, created over HTTPS at an embedded API server that asks the webhook."""

import json

import pytest

from api import names, resources
from api.koordinator.metadata import protected_metadata
from tests.webhook import conftest

CONFIG_MAPS = f"/api/v1/namespaces/{names.NAMESPACE}/configmaps"
ANNOTATED = {names.ANNOTATION_GANG_NAME: "g", names.ANNOTATION_GANG_MIN_AVAILABLE: "2"}
GATES = [{"name": names.GATE_GANG}]


def member(name, scheduler=names.SCHEDULER, notes=ANNOTATED, **spec):
    body = conftest.pod(name, mark="no")
    body["metadata"]["annotations"] = dict(notes)
    body["spec"] |= {"schedulerName": scheduler, **spec}
    return body


async def configured(world, document="", schedulers=names.SCHEDULER):
    metadata = {
        "name": names.CONFIG_MAP_SCHEDULER,
        "annotations": {names.ANNOTATION_SCHEDULERS: schedulers},
    }
    data = {names.CONFIG_MAP_SCHEDULER: document} if document else {}
    await world.api.post(CONFIG_MAPS, {"metadata": metadata, "data": data})


class Created:
    """Creates one pod after the other."""

    def __init__(self, world):
        self.world, self.made = world, []

    async def gates(self, **more):
        body = member(f"p{len(self.made)}", **more)
        self.made.append(await self.world.api.post(conftest.PODS, body))
        return self.made[-1]["spec"].get("schedulingGates")

    async def until(self, due, **more):
        while await self.gates(**more) != due:
            await self.world.clock.advance(0.05)


async def test_members_wait_where_the_extender_places_gangs(world):
    async with world.webhook() as running:
        await world.ready(running)
        created = Created(world)
        assert await created.gates() is None, "no scheduler is known"
        await configured(world)
        await created.until(GATES)
        assert await created.gates(scheduler="default-scheduler") is None
        assert await created.gates(notes={}) is None
        assert await created.gates(notes={}, schedulingGroup={"podGroupName": "g"}) is None
        switches = {"metadata": {"name": names.CONFIG_MAP_SWITCHES}, "data": {"gangs": "off"}}
        await world.api.post(CONFIG_MAPS, switches)
        await created.until(None)
        await world.api.patch(f"{CONFIG_MAPS}/{names.CONFIG_MAP_SWITCHES}", {"data": {"gangs": ""}})
        await created.until(GATES)


DISABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: koord-scheduler
    plugins: {filter: {disabled: [{name: Coscheduling}]}}
"""


async def test_no_gate_is_added_where_the_plugin_is_disabled(world):
    async with world.webhook() as running:
        await configured(world, schedulers=f"default-scheduler, {names.SCHEDULER}")
        await world.ready(running)
        created = Created(world)
        await created.until(GATES, scheduler="default-scheduler")
        path = f"{CONFIG_MAPS}/{names.CONFIG_MAP_SCHEDULER}"
        data = {names.CONFIG_MAP_SCHEDULER: DISABLED}
        await world.api.patch(path, {"data": data})
        await created.until(None)


async def test_no_gate_is_added_where_the_settings_say_none(world):
    async with world.webhook(gang={"admission": "none"}) as running:
        await configured(world)
        await world.ready(running)
        assert await Created(world).gates() is None


def lease(holder, number):
    spec = {"leaseDurationSeconds": 5, "renewTime": f"2026-07-01T12:00:0{number}.000000Z"}
    return {"spec": spec | {"holderIdentity": holder}}


async def test_no_gate_is_added_while_the_extender_announces_a_backlog(world):
    async with world.webhook() as running:
        await configured(world)
        await world.ready(running)
        created = Created(world)
        await created.until(GATES)
        path = resources.LEASES.path(names.NAMESPACE)
        metadata = {"metadata": {"name": names.LEASE_GANG_BACKLOG}}
        await world.api.post(path, metadata | lease("koord-extender", 0))
        await world.clock.advance(1.0)
        assert await created.gates() == GATES, "the lease may be one of long ago"
        path = f"{path}/{names.LEASE_GANG_BACKLOG}"
        await world.api.patch(path, lease("koord-extender", 1))
        await created.until(None)
        large = ANNOTATED | {names.ANNOTATION_GANG_MIN_AVAILABLE: "33"}
        assert await created.gates(notes=large) == GATES
        await world.api.patch(path, lease(None, 2))
        await created.until(GATES)
        await world.api.patch(path, lease("koord-extender", 3))
        await created.until(None)
        await world.clock.advance(10.0)
        assert await created.gates() == GATES, "the extender is gone"


async def test_a_pod_brings_no_plan_along(world):
    async with world.webhook() as running:
        await world.ready(running)
        plan = {names.ANNOTATION_PLAN: json.dumps({"v": 1, "node": "n1"})}
        made = await world.api.post(conftest.PODS, member("p", notes=ANNOTATED | plan))
        assert names.ANNOTATION_PLAN not in made["metadata"]["annotations"]


async def test_only_schedulers_write_plans(world):
    async with world.webhook(
        feature_gates={"ProtectedPodFields": True}, protection={"groups": []}
    ) as running:
        await world.ready(running)
        assert names.ANNOTATION_PLAN in protected_metadata.ALLOCATIONS
        await world.api.post(conftest.PODS, member("p"))
        change = {"metadata": {"annotations": {names.ANNOTATION_PLAN: "{}"}}}
        with pytest.raises(Exception, match=names.ANNOTATION_PLAN):
            await world.api.patch(f"{conftest.PODS}/p", change)


async def test_a_negative_minimum_of_a_pod_group_is_refused(world):
    async with world.webhook() as running:
        await world.ready(running)
        path = resources.POD_GROUPS.path("default")
        body = {"apiVersion": resources.POD_GROUPS.api_version, "kind": "PodGroup"}
        body["metadata"] = {"name": "g"}
        await world.api.post(path, {**body, "spec": {"minMember": 2}})
        with pytest.raises(Exception, match=r"spec\.minMember"):
            await world.api.post(path, {**body, "spec": {"minMember": -1}})
