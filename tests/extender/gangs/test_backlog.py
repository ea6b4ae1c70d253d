"""A backlog of members with a place: when it begins and ends, and how admission learns of it."""

import pytest
from aiohttp import web

from api import names
from extender.gangs import backlog
from process.runtime import clock as clocks
from tests.extender.gangs.stage import gang_stage

BEGINS = 16


@pytest.fixture
def time():
    return clocks.ManualClock()


@pytest.fixture
def behind(time):
    found = backlog.Backlog(time, BEGINS)
    found.arrived()
    return found


def look(found, members, *, enforced=True):
    found.wait("team/a", members)
    found.look(enforced=enforced)
    return found.lasts


def test_it_begins_with_many_members_and_ends_with_few(behind):
    assert [look(behind, members) for members in (15, 16, 4, 3, 15)] == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_members_of_all_plans_count_until_they_have_ended(behind):
    behind.wait("team/a", 10)
    behind.wait("team/b", 6)
    behind.look(enforced=True)
    assert behind.lasts
    assert len(behind) == 16
    behind.forget("team/a")
    behind.forget("team/b")
    behind.look(enforced=True)
    assert not behind.lasts


async def test_it_ends_where_no_member_arrives(behind, time):
    assert look(behind, BEGINS)
    await time.advance(backlog.ARRIVING_SECONDS)
    assert not look(behind, BEGINS)
    behind.arrived()
    assert look(behind, BEGINS)


async def test_it_ends_where_a_new_gang_finds_no_room(behind, time):
    assert look(behind, BEGINS)
    behind.refused(again=True)
    assert look(behind, BEGINS), "one that has waited for long says nothing of others"
    behind.refused(again=False)
    assert not look(behind, BEGINS)
    await time.advance(9.9)
    behind.arrived()
    assert not look(behind, BEGINS)
    await time.advance(0.1)
    assert look(behind, BEGINS)


def test_nothing_is_a_backlog_while_plans_do_not_count(behind):
    assert not look(behind, BEGINS, enforced=False)


def test_with_0_there_is_never_one(time):
    found = backlog.Backlog(time, 0)
    found.arrived()
    assert not look(found, 5000)


def test_no_further_group_is_planned_while_very_many_wait_that_no_gate_holds_back(behind):
    behind.wait("team/large", 5000)
    behind.wait("team/a", 1000, ungated=5)
    behind.wait("team/b", 23, ungated=5)
    assert not behind.is_full(5)
    behind.wait("team/b", 24, ungated=5)
    assert behind.is_full(5)
    assert not behind.is_full(6), "kube-scheduler tries more important ones first"
    behind.wait("team/b", 8)
    assert not behind.is_full(5), "members have arrived"
    behind.wait("team/b", 24)
    behind.forget("team/a")
    assert not behind.is_full(5)


class LeaseServer(gang_stage.GangServer):
    """Keeps what was written of the Lease."""

    def __init__(self):
        super().__init__()
        self.leases, self.is_failing, self.tries = [], False, 0

    async def _patch(self, request):
        if "/leases/" not in request.path:
            return await super()._patch(request)
        self.tries += 1
        if self.is_failing:
            return web.json_response({"code": 500}, status=500)
        assert request.path.endswith(f"/{names.NAMESPACE}/leases/{names.LEASE_GANG_BACKLOG}")
        assert request.content_type == "application/apply-patch+yaml"
        body = await request.json()
        self.leases.append(body["spec"].get("holderIdentity", ""))
        return web.json_response(body)


@pytest.fixture
def server():
    return LeaseServer()


def counted(stage, field):
    """How many members have a gate, or a node."""
    return sum(
        bool(pod["spec"].get(field)) and pod["metadata"]["name"].startswith("g")
        for pod in stage.server.objects["pods"].values()
    )


async def crowded(stage, gangs=4):
    """Let many members have a place, and kube-scheduler take one gang of them."""
    gang_stage.nodes(stage.server, 30)
    for number in range(gangs + 1):
        stage.gang(f"g{number}", 4)
    await stage.until(lambda: not counted(stage, "schedulingGates"), scheduling=False)
    assert not any(stage.server.leases), "nobody takes members yet"
    await stage.schedule(most=4)
    await stage.until(lambda: counted(stage, "nodeName") == 4, scheduling=False)


async def test_the_lease_is_held_while_there_is_a_backlog(server):
    async with gang_stage.opened(server, gangs={"backlog_members": BEGINS}) as stage:
        await crowded(stage)
        await stage.until(lambda: len(server.leases) == 2, scheduling=False)
        assert server.leases == ["", "koord-extender"]
        await stage.time.advance(2.5)
        assert server.leases == ["", "koord-extender", "koord-extender"]
        await stage.until(lambda: counted(stage, "nodeName") == 20)
        await stage.until(lambda: server.leases[-1] == "", scheduling=False)
        written = len(server.leases)
        await stage.rest(10.0)
        assert len(server.leases) == written


async def test_a_lease_that_could_not_be_written_is_written_later(server):
    async with gang_stage.opened(server, gangs={"backlog_members": BEGINS}) as stage:
        await crowded(stage)
        server.is_failing = True
        await stage.time.advance(1.0)
        server.is_failing = False
        await stage.until(lambda: server.leases[-1] == "koord-extender", scheduling=False)
        server.is_failing = True
        await stage.until(lambda: counted(stage, "nodeName") == 20)
        server.is_failing = False
        await stage.until(lambda: server.leases[-1] == "", scheduling=False)


async def test_a_lease_that_may_not_be_written_is_tried_ever_more_seldom(server):
    server.is_failing = True
    async with gang_stage.opened(server) as stage:
        await stage.time.advance(600.0)
        assert 10 < server.tries < 20


async def test_with_0_no_lease_is_written(server):
    async with gang_stage.opened(server, gangs={"backlog_members": 0}) as stage:
        await crowded(stage)
        await stage.until(lambda: counted(stage, "nodeName") == 20)
        assert server.leases == []


async def test_members_that_nobody_takes_keep_no_gang_of_a_higher_priority_from_its_place(server):
    gang_stage.nodes(server, 12, cpu="100")
    async with gang_stage.opened(server) as stage:
        for name in (f"low{number}" for number in range(33)):
            stage.gang(name, 32, cpu="1", spec={"schedulingGates": []})
            stage.refused |= {f"{name}-{number}": float("inf") for number in range(32)}
        await stage.until(lambda: len(stage.claims()) == 1024, scheduling=False)
        stage.gang("high", 2, cpu="1", priority=1)
        began = stage.time.monotonic()
        await stage.until(lambda: stage.bound("high") == 2)
        assert stage.time.monotonic() - began < 5.0
        assert len(stage.claims()) == 1024
