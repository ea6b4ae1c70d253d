"""A quota that is made anew under its name, as `kubectl replace --force` does, is another one."""

from api import resources
from kube.controllers import controller
from manager.quota.status import status_controller
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from tests.manager.quota.conftest import a_quota

QUOTAS = resources.ELASTIC_QUOTAS
ONLY = {"controllers": ("quotastatus",)}
PATIENCE = 150
"""Steps of a fifth of a second, and so half a minute."""


async def made(world):
    raw = a_quota("q", most={"cpu": "9"})
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        raw["metadata"].pop(key)
    await world.admin.create(QUOTAS, raw, "default")


async def has_status(world) -> bool:
    for _ in range(PATIENCE):
        await world.clock.advance(0.2)
        await world.quiet()
        if world.stored(QUOTAS, "q").get("status", {}).get("used"):
            return True
    return False


async def test_the_status_of_each_successor_is_written(world) -> None:
    await world.node("n1")
    async with world.manager(**ONLY):
        for number in range(4):
            await made(world)
            assert await has_status(world), f"successor {number}"
            await world.admin.delete(QUOTAS, "q", "default")


async def test_nothing_is_kept_of_a_quota_that_is_gone(cluster) -> None:
    """Teams come and go for as long as a manager leads."""
    clock = ManualClock(turns=6)
    statuses = status_controller.Statuses(
        cluster.book, Writer(), status_controller.Pace(), clock, metrics.Registry()
    )
    async with supervise.Supervisor("test") as tasks:
        tasks.start("statuses", statuses.run)
        cluster.quota(a_quota("q", most={"cpu": "9"}))
        await clock.advance(5)
        kept = statuses._next_at, statuses._accounts.written, statuses._unkept
        assert all(map(len, kept))
        cluster.drop_quota("default/q")
        await clock.advance(5)
        assert not any(map(len, kept))


class Writer:
    """Writes nothing, and says that it did."""

    def unseen(self, *_args):
        return None

    async def carry_out(self, plan):
        return controller.Outcome(plan.message)
