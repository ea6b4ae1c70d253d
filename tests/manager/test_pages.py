"""The page that says why a node lends what it lends, as people read it."""

import aiohttp

from api import names, resources
from manager.settings import LeaderElectionSettings

RATIO = {"enable": True, "cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 30}


async def page(url: str, node: str) -> tuple[int, dict]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/debug/nodes/{node}") as said:
        return said.status, await said.json()


def lent(world, node: str) -> str | None:
    return world.stored(resources.NODES, node)["status"]["allocatable"].get(names.BATCH_CPU)


async def test_every_term_is_told(world) -> None:
    await world.node("n1", cpu="128")
    await world.configure(colocation_config=RATIO)
    async with world.manager() as app:
        await world.pod("p1", "n1", "80")
        await world.report("n1", "3")
        await world.until(lambda: lent(world, "n1") == "14400")
        await world.quiet()
        status, said = await page(app.health_url, "n1")
        assert (status, said["leads"], said["state"]) == (200, True, "lends")
        assert "14.4 cores (30 % of 128 allocatable - 80 requested)" in said["sentence"]
        cpu = next(item for item in said["resources"] if item["resource"] == names.BATCH_CPU)
        assert cpu["policy"] == "overcommitRatio"
        assert cpu["terms"] == [
            {"name": "allocatable", "value": 128_000},
            {"name": "requested", "value": -80_000},
        ]
        assert (cpu["percent"], cpu["calculated"], cpu["offered"]) == (30, 14_400, 14_400)
        assert said["figures"]["system"]["cpu"] == 3_000
        assert said["written"]["allocatable"][names.BATCH_CPU] == 14_400
        assert (said["written"]["news"], said["written"]["kept"]) == ([], "")
        assert said["report_age"] < 60


async def test_small_changes_that_are_kept_back_are_told(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config={"enable": True})
    async with world.manager() as app:
        await world.report("n1", "3")
        await world.until(lambda: lent(world, "n1") == "35400")
        await world.report("n1", "4")
        await world.quiet()
        _, said = await page(app.health_url, "n1")
        cpu = next(item for item in said["resources"] if item["resource"] == names.BATCH_CPU)
        assert (cpu["offered"], said["written"]["allocatable"][names.BATCH_CPU]) == (34_400, 35_400)
        assert said["written"]["kept"] == "the change is too small to write now"


async def test_zones_are_told(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config={"enable": True})
    amounts = dict.fromkeys(("capacity", "allocatable", "available"), "32")
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", **amounts}]}
    body = {
        "apiVersion": resources.NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": resources.NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {"name": "n1"},
        "topologyPolicies": ["None"],
        "zones": [zone, {**zone, "name": "node-1"}],
    }
    await world.admin.create(resources.NODE_RESOURCE_TOPOLOGIES, body)
    async with world.manager() as app:
        await world.report("n1", "3")
        await world.until(lambda: lent(world, "n1") == "35400")
        _, said = await page(app.health_url, "n1")
        cpu = [(part["name"], part["offered"]["cpu"]) for part in said["zones"]]
        assert cpu == [("node-0", 17_700), ("node-1", 17_700)]


async def test_nodes_that_lend_nothing_and_nodes_that_are_not_there(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config={"enable": True})
    async with world.manager() as app:
        _, said = await page(app.health_url, "n1")
        assert (said["state"], said["resources"]) == ("withdrawn", [])
        assert said["reason"] == "the agent has not reported yet"
        status, said = await page(app.health_url, "n2")
        assert (status, said) == (404, {"error": "there is no node n2"})


async def test_a_standby_answers_too(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config={"enable": True})
    elected = {"leader_election": LeaderElectionSettings()}
    async with world.manager(**elected) as leader:
        await world.until(lambda: leader.leadership.leading)
        await world.report("n1", "3")
        await world.until(lambda: lent(world, "n1") == "35400")
        async with world.manager(**elected) as standby:
            _, said = await page(standby.health_url, "n1")
            assert (said["leads"], said["state"]) == (False, "lends")
            assert said["written"]["seconds_ago"] is None
            assert "35.4 cores" in said["sentence"]


async def test_unreadable_settings_are_told(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config="{")
    async with world.manager() as app:
        status, said = await page(app.health_url, "n1")
        assert (status, said) == (503, {"error": "waits for readable cluster settings"})
