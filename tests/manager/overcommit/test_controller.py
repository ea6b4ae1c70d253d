"""What nodes lend, from report to node status."""

import json

from api import names, resources
from api.wire import quantity
from manager.overcommit import plan as node_resource

ON = {"enable": True}


def lent(world, node="n1"):
    status = world.stored(resources.NODES, node)["status"]
    values = [
        quantity.whole(status[part][names.BATCH_CPU]) if names.BATCH_CPU in status[part] else None
        for part in ("capacity", "allocatable")
    ]
    assert values[0] == values[1]
    return values[0]


async def test_lends_by_usage_and_follows_the_reports(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        assert lent(world) is None
        await world.report("n1", "3")
        # 64 cores less the margin of 40 % and 3 in use.
        await world.until(lambda: lent(world) == 35_400)
        assert node_resource.STARTED in world.reasons("n1")
        await world.pod("p1", "n1", "20")
        await world.until(lambda: lent(world) == 15_400)
        await world.report("n1", "3", {"p1": "10"})
        await world.until(lambda: lent(world) == 25_400)
        await world.report("n1", "13", {"p1": "10"})
        await world.until(lambda: lent(world) == 15_400)
        memory = world.stored(resources.NODES, "n1")["status"]["allocatable"][names.BATCH_MEMORY]
        assert quantity.whole(memory) == quantity.whole("256Gi") - int(
            quantity.whole("256Gi") * 0.35
        ) - quantity.whole("1Gi")


async def test_overcommit_by_ratio(world) -> None:
    await world.node("n1", cpu="128")
    await world.configure(
        colocation_config=ON | {"cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 30}
    )
    async with world.manager():
        await world.pod("p1", "n1", "80")
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 14_400)
        await world.pod("p2", "n1", "20")
        await world.until(lambda: lent(world) == 8_400)


async def test_second_run_writes_nothing(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world))
        await world.pass_time(3)
    everything = world.plane.objects.version
    async with world.manager():
        await world.pass_time(2)
    assert world.plane.objects.version == everything


async def test_what_happened_unseen_is_made_good(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 35_400)
    await world.report("n1", "13")
    async with world.manager():
        await world.until(lambda: lent(world) == 25_400)


async def test_small_changes_wait_for_their_time(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 35_400)
        await world.report("n1", "4")
        await world.quiet()
        assert lent(world) == 35_400
        await world.clock.advance(301)
        await world.until(lambda: lent(world) == 34_400)


async def test_nothing_is_lent_on_old_reports(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 35_400)
        await world.clock.advance(15 * 60)
        await world.quiet()
        assert lent(world) == 35_400
        await world.clock.advance(5)
        await world.until(lambda: lent(world) is None)
        await world.until(lambda: node_resource.STOPPED in world.reasons("n1"))
        node = world.stored(resources.NODES, "n1")
        origin = json.loads(node["metadata"]["annotations"][names.ANNOTATION_ORIGIN_ALLOCATABLE])
        assert set(origin["resources"].values()) == {"0"}
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 35_400)


async def test_switching_colocation_off_takes_the_resources_back(world) -> None:
    await world.node("n1")
    await world.node("n2", labels={"pool": "plain"})
    off = {"nodeSelector": {"matchLabels": {"pool": "plain"}}, "enable": False}
    await world.configure(colocation_config=ON | {"nodeConfigs": [off]})
    async with world.manager():
        for name in ("n1", "n2"):
            await world.report(name, "3")
        await world.until(lambda: lent(world, "n1") == 35_400)
        assert lent(world, "n2") is None
        await world.configure(colocation_config={"enable": False})
        await world.until(lambda: lent(world, "n1") is None)
        untouched = world.stored(resources.NODES, "n2")["metadata"].get("annotations") or {}
        assert names.ANNOTATION_ORIGIN_ALLOCATABLE not in untouched


async def test_allocations_of_third_parties_are_taken_off(world) -> None:
    taken = [{"name": "yarn", "priority": "koord-batch", "resources": {names.BATCH_CPU: "5400"}}]
    await world.node(
        "n1", annotations={names.ANNOTATION_THIRD_PARTY: json.dumps({"allocations": taken})}
    )
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 30_000)
        node = world.stored(resources.NODES, "n1")
        origin = json.loads(node["metadata"]["annotations"][names.ANNOTATION_ORIGIN_ALLOCATABLE])
        assert quantity.whole(origin["resources"][names.BATCH_CPU]) == 35_400


async def test_unreadable_allocations_are_told_and_not_taken_off(world) -> None:
    await world.node("n1", annotations={names.ANNOTATION_THIRD_PARTY: "{"})
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: node_resource.UNREADABLE in world.reasons("n1"))
        assert lent(world) == 35_400


async def test_a_node_that_could_not_take_it_back_lends_nothing(world) -> None:
    def said(verdict):
        row = {"verdict": verdict, "how": "groups have no cpu-quota"}
        return {names.ANNOTATION_STRATEGIES: json.dumps({"cpu-suppress": row})}

    await world.node("n1", annotations=said("works"))
    await world.configure(colocation_config=ON)
    async with world.manager():
        await world.report("n1", "3")
        await world.until(lambda: lent(world) == 35_400)
        change = {"metadata": {"annotations": said("unavailable")}}
        await world.admin.patch(resources.NODES, "n1", change)
        await world.until(lambda: lent(world) is None)
        change = {"metadata": {"annotations": said("substitute")}}
        await world.admin.patch(resources.NODES, "n1", change)
        await world.until(lambda: lent(world) == 35_400)
