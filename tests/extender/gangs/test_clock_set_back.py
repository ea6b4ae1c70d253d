"""What lasts for a time lasts no longer where the wall clock is set back meanwhile."""

from tests.extender.conftest import Make
from tests.extender.gangs.preemption.preempting_stage import EvictingServer, kept
from tests.extender.gangs.stage import gang_stage


async def test_a_clock_that_is_set_back_keeps_no_place_for_members_that_do_not_arrive():
    server = gang_stage.GangServer()
    gang_stage.nodes(server, 1)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2)
        await stage.until(lambda: len(stage.claims()) == 2, scheduling=False)
        stage.time.jump(-3600.0)
        await stage.rest(62.0, scheduling=False)
        # None but those of a plan that was made since.
        assert all(one.expires_at < stage.time.now() + 62.0 for one in stage.claims())


async def test_a_clock_that_is_set_back_keeps_no_gang_from_a_node_that_refused_it_once():
    server = gang_stage.GangServer()
    gang_stage.nodes(server, 1)
    async with gang_stage.opened(server) as stage:
        stage.gang("a", 2)
        await stage.until(lambda: not stage.gated("a"), scheduling=False)
        raw = server.objects["pods"]["default/a-0"]
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        raw["status"]["conditions"] = [condition | {"message": "volume is elsewhere"}]
        server.put("pods", raw)
        await stage.until(lambda: not stage.claims(), scheduling=False)
        stage.time.jump(-3600.0)
        await stage.rest(180.0)
        assert stage.bound("a") == 2


def low():
    server = EvictingServer()
    gang_stage.nodes(server, 2)
    server.running(Make(), "low", ["n0", "n0", "n1", "n1"])
    return server


async def test_a_clock_that_is_set_back_keeps_no_place_while_victims_do_not_leave():
    server = low()
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        await stage.until(lambda: len(server.leaving) == 4)
        stage.time.jump(-7200.0)
        await stage.until(lambda: not kept(stage.app) or stage.time.monotonic() > 120.0)
        assert not kept(stage.app)


async def test_a_clock_that_is_set_back_spares_no_pod_for_longer():
    server = low()
    server.guarded = {"low-0": "always"}
    async with gang_stage.opened(server) as stage:
        stage.gang("high", 4, priority=10)
        failed = {"result": "failed"}
        value = stage.app.registry.value
        await stage.until(lambda: value("koord_extender_gang_preemptions_total", failed))
        stage.time.jump(-3600.0)
        server.guarded = {}
        await stage.rest(240.0)
        assert len(server.leaving) == 4
