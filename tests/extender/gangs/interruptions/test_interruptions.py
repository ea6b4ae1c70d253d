"""What is left of a gang: of one that was interrupted it leaves, of one that ran it runs on."""

import pytest
from aiohttp import web

from api import names
from api.wire import durations
from domain.gangs import plan_record
from tests.extender.gangs.stage import gang_stage

FREE = {"schedulingGates": []}


@pytest.fixture
def server():
    return gang_stage.GangServer()


def fill(stage, name, node, *, echo=True):
    """Let a pod of somebody else take a place."""
    stage.server.put("pods", stage.make.pod(name, node=node, requests={"cpu": "4"}), echo=echo)


def node_of(server, name):
    return server.objects["pods"][f"default/{name}"]["spec"]["nodeName"]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("spec", [{}, FREE], ids=["gated", "without gates"])
async def test_a_gang_that_ran_and_has_lost_a_member_stays_though_another_one_waits(
    server, spec, restarts
):
    gang_stage.nodes(server, 5, cpu="4")
    async with gang_stage.opened(server) as stage:
        for number in range(5):
            stage.member("a", number, least=4, spec=spec)
        await stage.until(lambda: len(stage.claims()) == 5, scheduling=False)
        (last,) = (one.node for one in stage.claims() if one.pod.name == "a-4")
        stage.refused["a-4"] = stage.time.now() + 1e9
        await stage.until(lambda: stage.bound("a") == 4)
        server.delete("nodes", last)
        del stage.refused["a-4"]
        await stage.rest(100.0)
        fill(stage, "f", node_of(server, "a-0"))
        server.delete("pods", "default/a-0")
        stage.member("a", 5, least=4, spec=spec)
        raw = server.objects["pods"]["default/a-5"]
        raw["metadata"]["creationTimestamp"] = durations.moment(stage.time.now())
        server.put("pods", raw)
        await stage.rest(40.0)
        now = stage.time.now()
    if restarts:
        async with gang_stage.opened(server, now=now) as stage:
            await stage.rest(40.0)
    assert server.evicted == []


async def test_an_interrupted_gang_leaves_though_gates_of_others_were_not_opened_yet(server):
    gang_stage.nodes(server, 6, cpu="4")
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 6, least=4)
        await stage.until(lambda: len(stage.claims()) == 6, scheduling=False)
        now = stage.time.now()
        for number, one in enumerate(sorted(stage.claims(), key=lambda one: one.pod.name)):
            raw = server.objects["pods"][one.pod.key]
            if number >= 4:
                raw["spec"]["schedulingGates"] = [gang_stage.GATE]
                raw["metadata"]["annotations"].pop(names.ANNOTATION_PLAN, None)
            elif number < 2:
                raw["spec"]["nodeName"] = one.node
            server.put("pods", raw, echo=False)
            if number >= 2:
                fill(stage, f"f{number}", one.node, echo=False)
    found = plan_record.read(
        server.objects["pods"]["default/a-0"]["metadata"]["annotations"][names.ANNOTATION_PLAN]
    )
    assert found.count == 6
    async with gang_stage.opened(server, now=now) as stage:
        await stage.until(lambda: len(server.evicted) == 2)
        assert stage.bound("a") == 0


class RefusingServer(gang_stage.GangServer):
    """Refuses to bind one pod."""

    refused = "a-3"

    async def _post(self, request):
        if request.path.endswith(f"/{self.refused}/binding"):
            return web.json_response({"code": 403, "reason": "Forbidden"}, status=403)
        return await super()._post(request)


@pytest.mark.parametrize("jump", [0.0, 30.0, -3600.0])
async def test_members_wait_as_long_for_the_others_where_the_wall_clock_is_set(jump):
    server = RefusingServer()
    gang_stage.nodes(server, 4, cpu="4")
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 4)
        await stage.until(lambda: stage.bound("a") == 3)
        await stage.time.advance(0.5)
        stage.time.jump(jump)
        await stage.time.advance(6.0)
        assert server.evicted == []
        await stage.time.advance(6.0)
        assert len(server.evicted) == 3
