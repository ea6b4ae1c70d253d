"""Gangs in the running extender: filtered to their plan, and held, bound or refused together."""

import asyncio
import json

import pytest

from api import names
from tests.extender import running_extender
from tests.extender.clusters import gang_cluster
from tests.extender.gangs.stage import gang_stage

START = gang_cluster.NOW
NODES = ["n1", "n2", "n3"]


class Running(running_extender.Extender):
    """An extender over HTTP, and the hands of a scheduler and of teams."""

    async def members(self, gang, count, **more):
        """Create members of a gang, and return them once the extender has seen all of them."""
        raws = [gang_cluster.raw_pod(f"{gang}-{n}", gang, **more) for n in range(count)]
        for raw in raws:
            self.server.put("pods", raw)
        await self.until(lambda: all(self.app.feeds.pods.get(_key(raw)) for raw in raws))
        return raws

    def planned(self, raw):
        """Where the plan in force places a member, empty where nowhere."""
        value = self.app.books.cluster.view().cluster[gang_cluster.NAME]
        uid = raw["metadata"]["uid"]
        plans = (plan.nodes for plan in value.plans.values())
        return next((nodes[uid] for nodes in plans if uid in nodes), "")

    async def plan(self, *raws):
        await self.until(lambda: all(map(self.planned, raws)))
        return [self.planned(raw) for raw in raws]

    async def passing(self, raw):
        found = await self.call("filter", {"Pod": raw, "Nodes": None, "NodeNames": NODES})
        return found["NodeNames"] or next(iter(found["FailedAndUnresolvableNodes"].values()))

    async def bind(self, raw, node):
        meta = raw["metadata"]
        body = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"]}
        return (await self.call("bind", body | {"Node": node}))["Error"]

    def start(self, raws, nodes):
        """Send bind calls as a scheduler does, all at once."""
        calls = (self.bind(raw, node) for raw, node in zip(raws, nodes, strict=True))
        return asyncio.gather(*calls, return_exceptions=True)

    async def held(self, count):
        await self.until(lambda: len(self.app.books.assumptions) == count)

    async def answered(self, calls):
        await self.until(calls.done)
        return calls.result()

    async def page(self, path):
        async with self.session.get(self.app.health_url + path) as answer:
            return await answer.text()


def _key(raw):
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def _opened(server, make):
    for name in NODES:
        server.put("nodes", make.node(name, cpu="8"))
    return running_extender.opened(Running, server, make, START)


@pytest.fixture
async def running(api_server, make):
    async with _opened(api_server, make) as found:
        yield found


@pytest.mark.parametrize("policy", ["only-waiting", "waiting-and-running", "once-satisfied"])
async def test_members_are_bound_where_they_were_planned_once_all_have_arrived(running, policy):
    raws = await running.members("job", 3, least=3, policy=policy, cpu=5)
    nodes = await running.plan(*raws)
    assert sorted(nodes) == NODES
    assert [await running.passing(raw) for raw in raws] == [[node] for node in nodes]
    first = running.start(raws[:2], nodes[:2])
    await running.held(2)
    await running.time.advance(3)
    assert (first.done(), running.server.bindings) == (False, [])
    page = json.loads(await running.page("/apis/v1/plugins/Coscheduling/gang/team/job"))
    assert len(page["waitingForBindChildren"]) == 2
    assert 'koord_extender_gangs{phase="binding"} 1.0' in await running.page("/metrics")
    last = running.start(raws[2:], nodes[2:])
    assert await running.answered(first) + await running.answered(last) == ["", "", ""]
    assert dict(running.server.bindings) == dict(zip(map(_key, raws), nodes, strict=True))
    written = running.server.objects["pods"]["team/job-0"]["metadata"]["annotations"]
    assert written[names.ANNOTATION_BIND_GANG_GROUP] == "team/job"
    assert written[names.ANNOTATION_BIND_GANG_MEMBERS] == "3"
    await running.until(lambda: not running.app.books.assumptions)
    assert 'koord_extender_gangs{phase="bound"} 1.0' in await running.page("/metrics")


async def test_members_that_wait_for_one_in_vain_are_answered_together(running):
    raws = await running.members("job", 3, least=3, wait="8s")
    nodes = await running.plan(*raws)
    first = running.start(raws[:1], nodes[:1])
    await running.held(1)
    await running.time.advance(5)
    second = running.start(raws[1:2], nodes[1:2])
    await running.held(2)
    await running.until(first.done)
    [one], [other] = first.result(), await running.answered(second)
    assert one.startswith("other members of the gang were not there to be bound in time")
    assert "team/job has 2 of 3" in one
    assert other in (f"team/job-0, which waited with it, was refused: {one}", one)
    assert (running.server.bindings, running.app.books.assumptions) == ([], {})


async def test_members_of_a_gang_that_is_not_strict_wait_for_themselves(running):
    raws = await running.members("job", 3, least=3, wait="8s", mode="NonStrict")
    nodes = await running.plan(*raws)
    first = running.start(raws[:1], nodes[:1])
    await running.held(1)
    await running.time.advance(5)
    second = running.start(raws[1:2], nodes[1:2])
    await running.held(2)
    [one] = await running.answered(first)
    assert one.startswith("other members of the gang were not there to be bound in time")
    await running.time.advance(2)
    assert (second.done(), len(running.app.books.assumptions)) == (False, 1)
    last = running.start([raws[0], raws[2]], [nodes[0], nodes[2]])
    assert await running.answered(second) + await running.answered(last) == ["", "", ""]


async def test_after_a_restart_in_the_middle_the_same_plan_is_carried_out(make):
    server = gang_stage.GangServer()
    async with _opened(server, make) as before:
        raws = await before.members("job", 3, least=3, cpu=5, gated=True)
        nodes = await before.plan(*raws)
        notes = server.objects["pods"]
        await before.until(
            lambda: all(names.ANNOTATION_PLAN in notes[_key(r)]["metadata"]["annotations"]
                        for r in raws)
        )  # fmt: skip
        calls = before.start(raws[:2], nodes[:2])
        await before.held(2)
    assert all(await calls), "the connection broke, or an error was answered"
    assert server.bindings == []
    async with _opened(server, make) as after:
        assert await after.plan(*raws) == nodes
        answers = await after.answered(after.start(raws, nodes))
        assert answers == ["", "", ""]
    assert len(server.bindings) == 3


async def test_gangs_of_a_group_in_two_namespaces_are_bound_together(running):
    both = '["other/back","team/front"]'
    front = await running.members("front", 2, least=2, groups=both)
    assert "other/back has neither members nor a PodGroup" in await running.passing(front[0])
    back = await running.members("back", 1, least=1, groups=both, namespace="other")
    nodes = await running.plan(*front, *back)
    first = running.start(front, nodes[:2])
    await running.held(2)
    await running.time.advance(2)
    assert not first.done()
    last = running.start(back, nodes[2:])
    assert await running.answered(first) + await running.answered(last) == ["", "", ""]


async def test_a_hostile_pod_counts_in_no_gang_of_another_namespace(running):
    raws = await running.members("job", 2, least=3)
    hostile = [
        gang_cluster.raw_pod("a", "job", namespace="evil", least=3),
        gang_cluster.raw_pod("b", "team/job", namespace="evil", least=3),
        gang_cluster.raw_pod("c", "x", namespace="evil", least=1, groups='["team/job","evil/x"]'),
    ]
    for raw in hostile:
        running.server.put("pods", raw)
    await running.until(lambda: all(running.app.feeds.pods.get(_key(raw)) for raw in hostile))
    await running.time.advance(3)
    said = "gang has no plan yet: gang team/job waits for 1 of 3 members"
    assert await running.passing(raws[0]) == said
    assert [running.planned(raw) for raw in (*raws, *hostile)] == [""] * 5
