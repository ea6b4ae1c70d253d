"""Two extenders write records of one gang: what was bound decides what is completed or leaves."""

import json

import msgspec
import pytest
from aiohttp import web

from api import names
from domain.gangs import plan_record
from tests.extender.gangs import test_gang_histories
from tests.extender.gangs.stage import gang_stage

UNGATED = {"schedulingGates": []}
TOGETHER = {names.ANNOTATION_GANG_MATCH_POLICY: "waiting-and-running"}
"""Members wait for their plan, also where others are bound."""


class StoppingServer(gang_stage.GangServer):
    """Takes so many Bindings, and answers no request after these."""

    def __init__(self):
        super().__init__()
        self.bindings_left = None

    async def _post(self, request):
        is_binding = request.path.endswith("/binding")
        if is_binding and self.bindings_left == 0:
            self.cut = True
            request.transport.abort()
            return web.Response()
        answer = await super()._post(request)
        if is_binding and self.bindings_left and answer.status < 300:
            self.bindings_left -= 1
        return answer


@pytest.fixture
def server():
    return StoppingServer()


def record(pod):
    return plan_record.read(pod["metadata"]["annotations"].get(names.ANNOTATION_PLAN, ""))


def noted(server, pod, found, *, echo=False):
    """Let an extender that nobody calls write a record on a member."""
    raw = json.loads(json.dumps(server.objects["pods"][f"default/{pod['metadata']['name']}"]))
    notes = raw["metadata"]["annotations"]
    notes.pop(names.ANNOTATION_PLAN, None)
    if found is not None:
        notes[names.ANNOTATION_PLAN] = plan_record.encode(found)
    server.put("pods", raw, echo=echo)


def of_another():
    return plan_record.Record("default/a", "other", "n0", 2e9, count=4)


def waiting(stage):
    return [pod for pod in stage.pods("a") if not pod["spec"].get("nodeName")]


async def interrupted(server, stage, count, bindings):
    """Let the extender that is called die in the middle of its Bindings."""
    server.bindings_left = bindings
    await stage.until(lambda: stage.bound("a") == bindings and server.cut)
    server.bindings_left = None
    assert len(waiting(stage)) == count - bindings
    return stage.time.now()


def crowd(server, stage):
    """Let pods of somebody else take what is free."""
    for number, node in enumerate(server.objects["nodes"]):
        for part in range(2):
            name = f"f{number}-{part}"
            taken = sum(pod["spec"].get("nodeName") == node for pod in stage.pods("")) >= 2
            if not taken:
                raw = stage.make.pod(name, node=node, requests={"cpu": "4"})
                server.put("pods", raw, echo=False)


@pytest.mark.parametrize("is_crowded", [False, True], ids=["room", "no room"])
@pytest.mark.parametrize("spec", [{}, UNGATED], ids=["gated", "without gates"])
@pytest.mark.parametrize("overwritten", ["those that wait", "all but one", "before the Bindings"])
async def test_the_successor_knows_a_part_by_what_was_bound(server, overwritten, spec, is_crowded):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        for number in range(4):
            stage.member("a", number, least=4, spec=spec, **TOGETHER)
        await stage.until(lambda: len(stage.claims()) == 4, scheduling=False)
        if overwritten == "before the Bindings":
            await stage.until(lambda: not stage.gated("a"), scheduling=False)
            for pod in stage.pods("a")[:3]:
                noted(server, pod, of_another(), echo=True)
        now = await interrupted(server, stage, 4, 2)
        for pod in waiting(stage):
            noted(server, pod, of_another())
        if overwritten == "all but one":
            noted(server, waiting(stage)[-1], None)
        if is_crowded:
            crowd(server, stage)
    server.cut = False
    async with gang_stage.opened(server, now=now) as stage:
        if is_crowded:
            await stage.until(lambda: len(server.evicted) == 2)
            assert stage.bound("a") == 0
        else:
            await stage.until(lambda: stage.bound("a") == 4)
            assert server.evicted == []
            assert len({record(pod).origin for pod in stage.pods("a")}) == 1
        assert stage.time.now() - now < 12.0


async def test_the_part_of_a_large_gang_is_known_by_one_binding(server):
    count = 40
    gang_stage.nodes(server, count // 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", count)
        now = await interrupted(server, stage, count, 1)
        for pod in waiting(stage):
            noted(server, pod, of_another())
        crowd(server, stage)
    server.cut = False
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 1)
        assert stage.bound("a") == 0


async def test_members_that_were_placed_one_by_one_leave_with_those_of_the_plan(server):
    """By policy once-satisfied nothing holds a member once another one is bound."""
    gang_stage.nodes(server, 2, cpu="4")
    async with gang_stage.opened(server) as stage:
        for number in range(4):
            stage.member("a", number, least=4, cpu="1", spec=UNGATED)
        now = await interrupted(server, stage, 4, 1)
        (bound,) = (pod["spec"]["nodeName"] for pod in stage.pods("a") if pod not in waiting(stage))
        other = next(node for node in server.objects["nodes"] if node != bound)
        for number, (node, cpu) in enumerate(((bound, "3"), (other, "3"))):
            raw = stage.make.pod(f"f{number}", node=node, requests={"cpu": cpu})
            server.put("pods", raw, echo=False)
    server.cut = False
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 2)
        await stage.until(lambda: len(server.evicted) == 2)
        assert stage.bound("a") == 0


async def test_a_record_of_an_earlier_release_is_completed_with_the_binding(server):
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: not stage.gated("a"), scheduling=False)
        before = {pod["metadata"]["name"]: record(pod) for pod in stage.pods("a")}
        for pod in stage.pods("a"):
            listing = before[pod["metadata"]["name"]]
            noted(server, pod, msgspec.structs.replace(listing, members=()))
        now = stage.time.now()
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: stage.bound("a") == 4)
        for pod in stage.pods("a"):
            found, earlier = record(pod), before[pod["metadata"]["name"]]
            assert sorted(found.members) == sorted(earlier.members)
            assert (found.generation, found.node) == (earlier.generation, earlier.node)


async def test_members_that_an_eviction_has_left_behind_leave_as_well(server):
    """Too few are left for a plan, and no controller replaces those that have gone."""
    gang_stage.nodes(server, 2)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4, **TOGETHER)
        now = await interrupted(server, stage, 4, 2)
        gone = next(pod for pod in stage.pods("a") if pod not in waiting(stage))
        server.delete("pods", f"default/{gone['metadata']['name']}")
    server.cut = False
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 1)
        assert stage.bound("a") == 0


def test_a_second_extender_whose_watch_is_behind_evicts_nobody():
    """What it takes for a part may be whole since: that was bound while it heard of nothing."""
    history = test_gang_histories.Histories()
    wanted = {"form": "annotations", "least": 3, "cpu": 1, "policy": "waiting-and-running"}
    wanted |= {"strict": True, "priority": 0, "wait": 600, "grouped": False, "slotted": False}

    async def played():
        called = history.lives[:1]
        history.declare("a", 3, **wanted)
        history.server.bindings_left = 1
        while history.server.bindings_left:
            await history.turn(0.25)
        await history.turn(0.25)
        assert history.standby.gangs._interruptions.partial
        history.server.bindings_left = None
        for _ in range(40):
            await history.turn(0.5, called)
        assert history.counts("a") == (3, 3)
        assert history.server.evicted == []

    try:
        history.start_standby()
        history.run(played())
    finally:
        history.teardown()
