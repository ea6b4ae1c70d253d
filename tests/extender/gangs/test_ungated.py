"""Members that were admitted without a gate: bound together, with their Bindings as only writes."""

import collections

import pytest

from api import names
from domain.gangs import plan_record
from tests.extender.gangs import test_writes_per_member
from tests.extender.gangs.stage import gang_stage
from tests.extender.gangs.test_writes_per_member import BINDING_BYTES

RECORD_BYTES = 500
"""At most, of the record in a Binding beside what all Bindings of gangs have; eight members."""


@pytest.fixture
def server():
    return test_writes_per_member.CountingServer()


def arrive(stage, gang, count, *, first=0, least=None, **more):
    for number in range(first, first + count):
        spec = {"schedulingGates": []}
        stage.member(gang, number, least=least or count, spec=spec, **more)


def record(pod):
    return plan_record.read(pod["metadata"]["annotations"].get(names.ANNOTATION_PLAN, ""))


def patched(server):
    """Pods that were patched themselves, by how often."""
    return {name: n for name, n in server.counts().items() if name.startswith("a-")}


async def planned(stage, gang="a", count=4):
    """Wait until members that are there have a plan; kube-scheduler has not tried them."""
    await stage.until(lambda: len(stage.claims()) == count, scheduling=False)


async def test_a_member_costs_its_binding_alone_which_records_the_plan(server):
    gang_stage.nodes(server, 8)
    async with gang_stage.opened(server) as stage:
        server.writes.clear()
        arrive(stage, "a", 8)
        await planned(stage, count=8)
        await stage.until(lambda: stage.bound("a") == 8)
        await stage.rest(40.0)
        assert server.counts() == {"binding": 8}
        found = [record(pod) for pod in stage.pods("a")]
        assert len({one.generation for one in found}) == 1
        assert {one.node for one in found} == {p["spec"]["nodeName"] for p in stage.pods("a")}
        digests = {plan_record.digest(pod["metadata"]["uid"]) for pod in stage.pods("a")}
        for pod in stage.pods("a"):
            own = plan_record.digest(pod["metadata"]["uid"])
            assert sorted(record(pod).members) == sorted(digests - {own})
            ((_, binding),) = server.bodies(pod["metadata"]["name"])
            assert len(binding) <= BINDING_BYTES + RECORD_BYTES


async def test_members_that_were_tried_before_are_woken_once(server):
    gang_stage.nodes(server, 8)
    async with gang_stage.opened(server) as stage:
        arrive(stage, "a", 3, least=4)
        await stage.until(lambda: len(stage.refused) == 3)
        arrive(stage, "a", 1, first=3, least=4)
        await planned(stage)
        await stage.until(lambda: len(stage.nudged("a")) == 3, scheduling=False)
        await stage.until(lambda: stage.bound("a") == 4)
        assert patched(server) == {"a-0": 1, "a-1": 1, "a-2": 1}


async def test_large_gangs_are_recorded_on_each_member(server):
    count = plan_record.MOST_LISTED + 1
    gang_stage.nodes(server, count)
    async with gang_stage.opened(server) as stage:
        server.writes.clear()
        arrive(stage, "a", count)
        await stage.until(lambda: stage.bound("a") == count)
        assert set(patched(server)) == {f"a-{number}" for number in range(count)}
        listed = [one for pod in stage.pods("a") for one in record(pod).members]
        assert set(collections.Counter(listed).values()) == {16}
        assert len({*listed}) == count


async def test_a_member_is_nominated_once_its_place_was_not_looked_at(server):
    gang_stage.nodes(server, 101)
    async with gang_stage.opened(server) as stage:
        await stage.until(lambda: stage.app.books.cluster.node("n100") is not None)
        for number in range(2):
            fill(stage, number, "n7")
        await stage.until(lambda: stage.app.books.cluster.claim("uid-f1") is not None)
        arrive(stage, "a", 2)
        await planned(stage, count=2)
        kept = {one.pod.name: one.node for one in stage.claims()}
        member = server.objects["pods"]["default/a-0"]
        assert await stage.filtered(member, ["n7"]) == []

        def nominated():
            return server.objects["pods"]["default/a-0"]["status"].get("nominatedNodeName")

        await stage.until(nominated, scheduling=False)
        assert nominated() == kept["a-0"]
        assert [pod["metadata"]["name"] for pod in stage.nudged("a")] == ["a-0"]
        await stage.until(lambda: stage.bound("a") == 2)


def fill(stage, number, node, *, echo=True):
    """Let a pod of somebody else take the place of a member."""
    raw = stage.make.pod(f"f{number}", node=node, requests={"cpu": "4"})
    stage.server.put("pods", raw, echo=echo)


async def _interrupted(server, stage, count=2):
    """Bind some of four members as if the extender had died in the middle of its Bindings."""
    arrive(stage, "a", 4)
    await planned(stage)
    group = next(iter(stage.app.books.cluster.view().cluster["Coscheduling"].plans.values()))
    for one in stage.claims()[:count]:
        raw = server.objects["pods"][one.pod.key]
        raw["spec"]["nodeName"] = one.node
        noted = plan_record.encode(
            plan_record.Record(
                group.plan.group,
                group.plan.generation,
                one.node,
                group.plan.until,
                members=group.plan.record.members,
            )
        )
        raw["metadata"]["annotations"][names.ANNOTATION_PLAN] = noted
        server.put("pods", raw, echo=False)
    return stage.time.now()


async def test_a_gang_that_was_bound_in_part_is_completed_after_the_restart(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        assert stage.time.now() - now < 10.0
        assert server.evicted == []
        found = [record(pod) for pod in stage.pods("a")]
        assert len({one.origin for one in found}) == 1


async def test_a_gang_that_cannot_be_completed_is_evicted_after_the_restart(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage)
        for number, one in enumerate(stage.claims()[2:]):
            fill(stage, number, one.node, echo=False)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 2)
        assert stage.bound("a") == 0
        assert stage.time.now() - now < 12.0


async def test_a_pod_that_replaces_a_member_is_no_part_of_the_plan_before(server):
    """A gang that runs and has lost a pod was not interrupted: what is left of it stays."""
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        arrive(stage, "a", 4)
        await stage.until(lambda: stage.bound("a") == 4)
        fill(stage, 0, server.objects["pods"]["default/a-0"]["spec"]["nodeName"])
        server.delete("pods", "default/a-0")
        arrive(stage, "a", 1, first=4, least=4)
        await stage.rest(20.0)
        now = stage.time.now()
    async with gang_stage.opened(server, now=now) as stage:
        await stage.rest(20.0)
        assert server.evicted == []
        assert stage.bound("a") == 3


async def test_without_any_binding_a_restart_plans_the_gang_anew(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        now = await _interrupted(server, stage, count=0)
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        assert server.evicted == []
