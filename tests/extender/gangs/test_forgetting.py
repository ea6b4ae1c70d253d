"""Nothing is kept of gangs that are gone: users make and delete them as often as they like."""

import types

import pytest

from api import names
from domain.gangs import sentences
from extender import settings
from extender.gangs import in_force, rounds
from extender.gangs.telling import conditions
from extender.state import deltas
from process.runtime import clock, supervise
from tests.extender.gangs.stage import gang_cluster, gang_stage


@pytest.fixture
def server():
    return gang_stage.GangServer()


def plan(stage):
    told = stage.app.books.cluster.told(deltas.GANG_PLAN, "default/a")
    return told.after if told is not None else None


async def test_why_a_plan_was_given_up_is_forgotten_with_its_gang(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2)
        await stage.until(lambda: len(stage.claims()) == 2, scheduling=False)
        server.delete("pods", "default/a-0")
        await stage.until(lambda: plan(stage) is not None and plan(stage).refusal, scheduling=False)
        await stage.rest(3.0)
        assert plan(stage).refusal, "the gang is still there"
        server.delete("pods", "default/a-1")
        await stage.until(lambda: plan(stage) is None, scheduling=False)


async def test_a_gate_is_not_tried_again_once_the_plan_was_given_up():
    """Its member would be tried with a record of a plan that is over."""
    cluster = gang_cluster.GangCluster()
    cluster.nodes(1)
    members = cluster.gang("g", 2, schedulingGates=[{"name": names.GATE_GANG}])
    time, written, tasks = clock.ManualClock(), [], []

    class Writes:
        async def open(self, pod, record):
            del record
            written.append(pod.name)
            plans.give_up(one, "a member was deleted")
            return "the API server is not there"

    parts = gang_cluster.plan_parts(cluster, time, Writes(), tasks)
    plans = in_force.PlansInForce(parts, settings.GangSettings())
    slots = {each.pod.uid: rounds.Slot(each.pod, each.gang, "n0") for each in members}
    one = rounds.Round("default/g", "1", 0.0, 60.0, slots, {"default/g": 2})
    plans.begin(one)
    async with supervise.Supervisor("gates") as supervisor:
        for work in tasks:
            supervisor.spawn("gates", work)
        await time.advance(10.0)
    assert len(written) == 1
    assert not plans


async def test_what_a_member_said_is_forgotten_once_it_is_gone():
    time = clock.ManualClock()
    pods = {"ns/a-0": types.SimpleNamespace(uid="u0", node="")}

    class Written:
        async def tell(self, pod, said, *, ready):
            del pod, said, ready
            return ""

    told = conditions.Telling(Written(), pods, time, per_second=50.0, burst=1000)
    async with supervise.Supervisor("telling") as tasks:
        tasks.spawn("telling", told.run())
        told.say([("u0", "ns/a-0")], sentences.in_line(1, 2))
        await time.advance(1.0)
        assert len(told) == 1
        await time.advance(120.0)
        assert len(told) == 1, "it is still there"
        del pods["ns/a-0"]
        await time.advance(60.0)
        assert len(told) == 0
