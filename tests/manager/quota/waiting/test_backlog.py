"""Gates open no faster than pods are scheduled; pods that nobody schedules delay others briefly."""

import math

from manager.quota.waiting import backlog
from tests.manager.quota import enforced


def test_pods_count_until_they_are_tried_or_for_so_many_seconds() -> None:
    seen = backlog.Backlog(2, 5.0)
    assert (seen.room(0.0), seen.again_at) == (2, math.inf)
    seen.add("a", 1.0)
    seen.add("b", 2.0)
    assert (seen.room(3.0), seen.again_at) == (0, 6.0)
    seen.tried("a")
    assert (seen.room(3.0), seen.again_at) == (1, math.inf)
    seen.add("c", 4.0)
    assert (seen.room(7.0), seen.room(9.0)) == (1, 2)


async def test_gates_wait_for_the_scheduler_but_not_for_long(world) -> None:
    plane = enforced.Plane(world)
    await world.node("n1", cpu="100")
    await plane.quota("team", {"cpu": "50"})
    for number in range(6):
        await plane.pod(f"p{number}", "team", later=1)
    async with plane.manager(enforced.duties(untried=2, untried_seconds=5.0)):
        await plane.run(1)
        assert plane.open() == ["p0", "p1"]
        await plane.bind("p0")
        await plane.run(0.5)
        assert plane.open() == ["p1", "p2"]
        await plane.delete("p1")
        await plane.run(0.5)
        assert plane.open() == ["p2", "p3"]
        # Nobody schedules the others.
        await plane.run(12)
        assert plane.gated() == []
