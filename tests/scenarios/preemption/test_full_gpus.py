"""Every GPU is full, also as kube-scheduler counts: the pods that leave empty one as a whole."""

from tests.planes import raw
from tests.planes.devices import device_recount

PATIENCE = 60.0
CALLS = "koord_extender_verb_seconds_count"


class Held:
    """Which pod holds which GPU, by number."""

    def __init__(self, arena):
        self.arena, self.gpu_of = arena, {}

    async def hold(self, name, percent, **more):
        await self.arena.hold(name, gpu=percent, **more)
        (self.gpu_of[name],) = device_recount.minors(await self.arena.placed(name))

    def on(self, gpu):
        return {name for name, number in self.gpu_of.items() if number == gpu}

    async def emptied(self):
        """Wait until all pods of a GPU are leaving; returns all that are."""

        async def found():
            leaving = await self.arena.leaving()
            return leaving if any(self.on(gpu) <= leaving for gpu in (0, 1)) else set()

        return await raw.eventually(found, PATIENCE)


async def full(arena, middle):
    """Two GPUs of which two pods each hold all; on one of them a pod of middle priority."""
    node, held = await arena.machine("pair"), Held(arena)
    for name in ("a", "b"):
        await held.hold(name, 60)
    await held.hold("dear", 40, priorityClassName=middle)
    await held.hold("c", 40)
    assert held.on(0) | held.on(1) == {"a", "b", "c", "dear"}
    assert {len(held.on(0)), len(held.on(1))} == {2}
    return node, held


async def test_pods_of_one_gpu_leave_where_kube_scheduler_too_has_none_left(arena):
    async with arena.here.priority(500) as middle:
        node, held = await full(arena, middle)
        cheap = next(gpu for gpu in (0, 1) if "dear" not in held.on(gpu))
        await arena.high(gpu=100)
        gone = await held.emptied()
        # Any two pods free enough in sum. These two free a GPU, and are of the lowest priority.
        assert gone == held.on(cheap)
        await arena.pod("thief", gpu=100)
        await arena.here.refused("thief")
        for name in sorted(gone):
            await arena.here.remove(name)
        (pod,) = await arena.on(node, "high")
        assert device_recount.minors(pod) == [cheap]
        await arena.here.refused("thief")
        assert await arena.leaving() == gone
        await arena.agree()


async def test_no_pod_leaves_where_on_each_gpu_one_has_to_stay(arena):
    """60 and 60 leave enough in sum, which is all that kube-scheduler would look at."""
    async with arena.here.priority(2000) as above:
        await arena.machine("pair")
        held = Held(arena)
        for name in ("a", "b"):
            await held.hold(name, 60)
        for name in ("stays", "too"):
            await held.hold(name, 40, priorityClassName=above)
        assert {len(held.on(0)), len(held.on(1))} == {2}
        await arena.high(gpu=100)

        async def asked():
            return arena.app.registry.value(CALLS, {"verb": "preempt"})

        await raw.eventually(asked, PATIENCE)
        await arena.here.refused("high", "Insufficient koordinator.sh/gpu")
        assert await arena.leaving() == set()
        assert await arena.claim() == {}
        await arena.agree()
