"""A running manager keeps recommendations, whatever happens to it meanwhile."""

import random

import pytest

from api import resources
from api.koordinator.metrics import analysis
from api.wire import durations, quantity
from manager.recommendation import learned as recommended

GIB = 1 << 30


def reference(owner):
    found = {key: owner[key] for key in ("apiVersion", "kind")}
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    return [{**found, **named, "controller": True}]


class Workload:
    """A Deployment with pods on one node, and an agent that reports what they use."""

    def __init__(self, world, pods=2):
        self.world, self.count, self.rng = world, pods, random.Random(1)

    async def deploy(self, name="web", owner="web-abc"):
        world = self.world
        if world.stored(resources.NODES, "n1") is None:
            await world.node("n1")
            await world.admin.create(
                resources.NODE_METRICS,
                {
                    "apiVersion": "slo.koordinator.sh/v1alpha1",
                    "kind": "NodeMetric",
                    "metadata": {"name": "n1"},
                    "spec": {},
                },
            )
        spec = {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "i"}]},
            },
        }
        above = None
        for resource, named in ((resources.DEPLOYMENTS, name), (resources.REPLICA_SETS, owner)):
            metadata = {"name": named}
            if above is not None:
                metadata["ownerReferences"] = reference(above)
            above = await world.admin.create(
                resource,
                {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "metadata": metadata,
                    "spec": spec,
                },
                "default",
            )
        for number in range(self.count):
            metadata = {
                "name": f"{name}-{number}",
                "labels": {"app": name},
                "ownerReferences": reference(above),
            }
            containers = [{"name": "app", "image": "i"}, {"name": "side", "image": "i"}]
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
            pod["spec"] = {"nodeName": "n1", "containers": containers}
            await world.admin.create(resources.PODS, pod, "default")

    async def ask(self, name="r", target=None):
        await self.world.admin.create(
            resources.RECOMMENDATIONS,
            {
                "apiVersion": "analysis.koordinator.sh/v1alpha1",
                "kind": "Recommendation",
                "metadata": {"name": name},
                "spec": {"target": target or workload("Deployment", "web")},
            },
            "default",
        )

    async def report(self, cpu=None, memory=GIB, name="web"):
        pods = []
        for number in range(self.count):
            used = cpu if cpu is not None else 0.5 + self.rng.random()
            containers = [
                {"name": "app", "usage": {"cpu": f"{used * 1000:.0f}m", "memory": str(memory)}},
                {"name": "side", "usage": {"cpu": "100m", "memory": "64Mi"}},
            ]
            ref = {"namespace": "default", "name": f"{name}-{number}"}
            pods.append({"podRef": ref, "containers": containers})
        status = {"updateTime": durations.moment(self.world.clock.now()), "podMetrics": pods}
        await self.world.admin.patch(
            resources.NODE_METRICS, "n1", {"status": status}, subresource="status"
        )

    def status(self, name="r"):
        raw = self.world.stored(resources.RECOMMENDATIONS, name)
        return analysis.read_recommendation(raw).status

    def answer(self, container="app", name="r"):
        status = self.status(name)
        found = status.pod_status.container_statuses if status.pod_status else ()
        by_name = {one.container_name: quantity.amounts(one.resources) for one in found}
        return by_name.get(container)

    def learned(self, name="r"):
        text = self.world.stored(resources.RECOMMENDATIONS, name)["status"]["checkpoint"]
        return recommended.unpacked(text)


def workload(kind, name, version="apps/v1"):
    return {"type": "workload", "workload": {"kind": kind, "name": name, "apiVersion": version}}


@pytest.fixture
def deployed(world):
    return Workload(world)


ONLY = {"controllers": ("recommendation",)}


@pytest.mark.parametrize(
    "target",
    [
        workload("Deployment", "web"),
        workload("ReplicaSet", "web-abc"),
        {"type": "podSelector", "podSelector": {"matchLabels": {"app": "web"}}},
    ],
    ids=["deployment", "replica set", "selector"],
)
async def test_each_container_of_a_workload_gets_a_figure(world, deployed, target):
    await deployed.deploy()
    await deployed.ask(target=target)
    async with world.manager(**ONLY):
        await deployed.report(cpu=2.0)
        await world.pass_time(31)
        await world.until(lambda: deployed.answer())
    assert deployed.answer()["cpu"] == pytest.approx(2000, rel=0.06)
    assert deployed.answer()["memory"] == pytest.approx(GIB, rel=0.06)
    assert deployed.answer("side")["cpu"] == pytest.approx(100, rel=0.08)
    status = deployed.status()
    assert status.update_time == pytest.approx(world.clock.now(), abs=40)
    conditions = {one.type: one.status for one in status.conditions}
    assert conditions["NoObjectsMatched"] == "False"
    assert conditions["LowConfidence"] == "True"


async def test_only_its_own_pods_count(world, deployed):
    await deployed.deploy()
    await deployed.ask(target=workload("Deployment", "other"))
    async with world.manager(**ONLY):
        await deployed.report(cpu=2.0)
        await world.pass_time(31)
        await world.until(lambda: deployed.status().conditions)
    conditions = {one.type: one.status for one in deployed.status().conditions}
    assert conditions["NoObjectsMatched"] == "True"
    assert deployed.answer() is None


async def test_a_target_that_makes_no_sense_is_told_and_left_alone(world, deployed):
    await deployed.deploy()
    await deployed.ask(target=workload("Deployment", ""))
    async with world.manager(**ONLY):
        await deployed.report(cpu=2.0)
        await world.pass_time(31)
    conditions = {one.type: one.message for one in deployed.status().conditions}
    assert "name both kind and name" in conditions["ConfigUnsupported"]


async def test_pods_come_and_go(world, deployed):
    await deployed.deploy()
    await deployed.ask()
    async with world.manager(**ONLY):
        await deployed.report(cpu=1.0)
        await world.pass_time(31)
        await world.until(lambda: deployed.answer())
        for number in range(2):
            await world.admin.delete(resources.PODS, f"web-{number}", "default", grace_seconds=0)
        await world.quiet()
        await world.pass_time(31)
        conditions = {one.type: one.status for one in deployed.status().conditions}
        assert conditions["NoObjectsMatched"] == "True"
        assert deployed.answer()["cpu"] == pytest.approx(1000, rel=0.06)


async def test_an_agent_that_knows_no_containers_is_enough_for_a_single_one(world, deployed):
    await deployed.deploy()
    await world.pod("lone", "n1", "1")
    target = {"type": "podSelector", "podSelector": {}}
    await deployed.ask(target=target)
    async with world.manager(**ONLY):
        await world.report("n1", "1", {"lone": "3"})
        await world.pass_time(31)
        await world.until(lambda: deployed.answer("c"))
    assert deployed.answer("c")["cpu"] == pytest.approx(3000, rel=0.06)


async def test_restarts_at_random_moments_lose_nothing(world, deployed):
    """Every report counts once, although the manager is away and back again and again."""
    await deployed.deploy()
    await deployed.ask()
    moments, counted = random.Random(7), 0
    for _ in range(6):
        async with world.manager(**ONLY):
            for _ in range(moments.randrange(1, 3)):
                await deployed.report()
                counted += 1
                await world.clock.advance(moments.uniform(1, 20))
                if moments.random() < 0.5:
                    # The manager goes while this report may or may not be counted.
                    break
                await world.pass_time(40)
    async with world.manager(**ONLY):
        await world.pass_time(31)
    known = deployed.learned()
    assert known["containers"]["app"][2] == 2 * counted


async def test_what_nobody_asks_for_any_more_is_not_kept(world, deployed):
    await deployed.deploy()
    await deployed.ask("first")
    await deployed.ask("second")
    async with world.manager(**ONLY):
        await deployed.report(cpu=1.0)
        await world.pass_time(31)
        await world.until(lambda: deployed.answer(name="second"))
        await world.admin.delete(resources.RECOMMENDATIONS, "first", "default")
        await world.quiet()
        await deployed.report(cpu=1.0)
        await world.pass_time(31)
        assert deployed.learned("second")["containers"]["app"][2] == 4
        await world.admin.delete(resources.RECOMMENDATIONS, "second", "default")
        await world.quiet()
        await world.pass_time(31)
    assert world.stored(resources.RECOMMENDATIONS) == []
