"""Explanations go when they have expired, and those of the extender with their pod."""

from api import names, resources

KIND = resources.SCHEDULE_EXPLANATIONS


async def explain(world, name, pod, ttl="1h", **labels):
    body = {
        "apiVersion": KIND.api_version,
        "kind": KIND.kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"questionObjectKey": f"default/{pod}", "ttl": ttl},
    }
    await world.admin.create(KIND, body, "default")


async def test_they_go_when_they_have_expired(world):
    async with world.manager():
        await explain(world, "short", "p", "10s")
        await explain(world, "long", "p")
        await world.pass_time(8)
        assert world.stored(KIND, "short")
        await world.pass_time(4)
        assert world.stored(KIND, "short") is None
        assert world.stored(KIND, "long")


async def test_those_of_the_extender_go_with_their_pod(world):
    ours = {names.LABEL_CREATED_BY: "koord-extender"}
    await world.node("n")
    async with world.manager():
        await world.pod("p", "n", "1")
        await explain(world, "p", "p", **ours)
        await explain(world, "asked", "p")
        await world.pass_time(8)
        assert world.stored(KIND, "p")
        await world.admin.delete(resources.PODS, "p", "default", grace_seconds=0)
        await world.pass_time(6)
        assert world.stored(KIND, "p") is None
        assert world.stored(KIND, "asked")


async def test_those_of_a_pod_that_waits_stay(world):
    ours = {names.LABEL_CREATED_BY: "koord-extender"}
    async with world.manager():
        await world.pod("p", "", "1")
        await explain(world, "p", "p", **ours)
        await world.pass_time(20)
        assert world.stored(KIND, "p")
        await world.admin.delete(resources.PODS, "p", "default", grace_seconds=0)
        await world.pass_time(6)
        assert world.stored(KIND, "p") is None


async def test_switched_off_nothing_is_removed(world):
    async with world.manager(controllers=("*", "-scheduleexplanation")):
        await explain(world, "short", "p", "10s")
        await world.pass_time(20)
        assert world.stored(KIND, "short")
