"""Pods of a gang on an API server: all of them leave, or none."""

from tests.descheduler.migration.conftest import JOBS, KEPT, PODS

TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}


async def gang(world):
    """Two jobs of one group, each with its pod."""
    for name, pod in (("a", "web-0"), ("b", "web-1")):
        await world.pod(pod)
        await world.move(name, pod, annotations=TOGETHER)


def leaving(world):
    """The pods that are on their way, or gone."""
    there = {pod["metadata"]["name"] for pod in world.stored(PODS)}
    return {"web-0", "web-1"} - there


async def test_none_leaves_before_all_have_a_place(world):
    await gang(world)
    async with world.migrating():
        await world.reserved("a")
        await world.until(lambda: world.reservation("b"))
        await world.passing(30)
        assert not leaving(world)
        await world.reserved("b", "node-2")
        await world.until(lambda: leaving(world) == {"web-0", "web-1"})
        await world.used("a", by="web-2")
        await world.used("b", by="web-3", node="node-2")
        await world.phase("Succeeded", "a")
        await world.phase("Succeeded", "b")


async def test_one_that_fails_releases_the_others(world):
    await gang(world)
    async with world.migrating():
        await world.reserved("a")
        await world.until(lambda: world.reservation("b"))
        await world.admin.patch(JOBS, "b", {"status": {"phase": "Aborted"}}, subresource="status")
        assert (await world.phase("Failed", "a"))["reason"] == "GroupFailed"
        await world.until(lambda: not world.stored(KEPT))
        await world.passing(20)
    assert not leaving(world)


async def test_a_place_that_was_lost_meanwhile_keeps_all_of_them(world):
    await gang(world)
    async with world.migrating():
        for name in ("a", "b"):
            await world.until(lambda name=name: world.reservation(name))
        await world.used("b", by="sibling")
        await world.reserved("a")
        assert (await world.phase("Failed", "b"))["reason"] == "ForbiddenMigratePod"
        assert (await world.phase("Failed", "a"))["reason"] == "GroupFailed"
    assert not leaving(world)


async def test_a_place_that_a_pod_of_another_job_took_on_the_way_stops_nobody(world):
    await gang(world)
    async with world.migrating(evict_qps=0.2):
        await world.reserved("a")
        await world.reserved("b", "node-2")
        await world.until(lambda: len(leaving(world)) == 1)
        first, second = ("a", "b") if leaving(world) == {"web-0"} else ("b", "a")
        await world.used(second, by="web-2", node=world.reservation(second)["status"]["nodeName"])
        await world.until(lambda: leaving(world) == {"web-0", "web-1"})
        await world.used(first, by="web-3", node=world.reservation(first)["status"]["nodeName"])
        for name, by in ((second, "web-2"), (first, "web-3")):
            assert by in (await world.phase("Succeeded", name))["message"]


async def test_a_group_that_never_gets_complete_times_out(world):
    await world.pod()
    async with world.migrating():
        await world.move("a", annotations=TOGETHER, ttl="30s")
        await world.passing(31)
        assert (await world.phase("Failed", "a"))["reason"] == "Timeout"
    assert not world.stored(KEPT)


async def test_a_switch_does_not_part_a_group_that_is_on_its_way(world):
    await gang(world)
    async with world.migrating(evict_qps=0.2):
        for name in ("a", "b"):
            await world.reserved(name)
        await world.until(lambda: len(leaving(world)) == 1)
        world.enforced = False
        await world.until(lambda: leaving(world) == {"web-0", "web-1"})
