"""Pods that slipped through are named by event, metric and page until they are gone."""

import aiohttp

from api import names, resources

PROFILE = {
    "metadata": {"name": "batch"},
    "spec": {"selector": {"matchLabels": {"colocate": "yes"}}, "schedulerName": "s"},
}
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


async def create(world, name, **metadata):
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"colocate": "yes"}, **metadata},
        "spec": {"containers": [CONTAINER]},
    }
    await world.admin.create(resources.PODS, body, "default")


async def listed(app):
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{app.health_url}/debug/admissions") as answer,
    ):
        return await answer.json()


async def test_named_until_it_is_gone(world):
    await world.admin.create(resources.COLOCATION_PROFILES, PROFILE)
    async with world.manager() as app:
        await world.pass_time(2)
        await create(world, "slipped")
        await create(world, "signed", annotations={names.ANNOTATION_PROFILES: "batch"})
        await world.until(lambda: "AdmissionMissed" in world.reasons("slipped"))
        assert world.reasons("signed") == []
        page = await listed(app)
        assert [row["pod"] for row in page["pods"]] == ["default/slipped"]
        assert "schedulerName is not 's'" in page["pods"][0]["faults"][0]["note"]
        registry = app.registry
        assert registry.value("koord_manager_missed_pods_present") == 1
        assert registry.value("koord_manager_missed_pods_total", {"kind": "unchanged"}) == 1
        await world.admin.delete(resources.PODS, "slipped", "default", grace_seconds=0)
        await world.until(lambda: registry.value("koord_manager_missed_pods_present") == 0)
        assert await listed(app) == {"pods": [], "total": 0}


async def test_a_new_leader_finds_what_was_created_while_nobody_looked(world):
    await world.admin.create(resources.COLOCATION_PROFILES, PROFILE)
    await world.pass_time(2)
    await create(world, "slipped")
    async with world.manager():
        await world.until(lambda: "AdmissionMissed" in world.reasons("slipped"))


async def test_switched_off_nothing_is_named(world):
    await world.admin.create(resources.COLOCATION_PROFILES, PROFILE)
    await world.pass_time(2)
    await create(world, "slipped")
    async with world.manager(controllers=("*", "-admission")) as app:
        await world.quiet()
        assert world.reasons("slipped") == []
        assert (await listed(app))["total"] == 0
