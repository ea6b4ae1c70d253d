"""Restarts of gangs under way, and what is forgotten of them."""

from api import resources
from manager import settings
from manager.gangs import restart_plan, restarts
from process.runtime import metrics
from simulator import faults
from tests.manager.gangs import ganged, test_controller

GANG = "default/g"
GROUPS = "podgroups.scheduling.sigs.k8s.io"


class Writer:
    """Evicts at once; `evicted` is called after each pod."""

    def __init__(self, evicted=lambda: None):
        self.pods, self._evicted = [], evicted

    async def carry_out(self, plan):
        self.pods += [step.name for step in plan.steps]
        self._evicted()


def begun(clock, count=3):
    made = restarts.Restarts(restarts.Pace(), clock, metrics.Registry())
    pods = tuple(ganged.pod(f"g-{number}") for number in range(count))
    made.start(GANG, restart_plan.Restart(pods, (GANG,)))
    return made


async def test_a_term_that_ends_within_a_restart_ends_the_restart(clock):
    made = begun(clock)
    writer = Writer(made.drop)
    assert await made.go_on(writer, GANG) == restarts.Progress()
    assert (writer.pods, made.is_under_way(GANG)) == (["g-0"], False)


async def test_a_gang_that_is_gone_is_no_longer_under_way(clock):
    made = begun(clock)
    made.forget(GANG)
    assert not made.is_under_way(GANG)
    assert made.last(GANG) is not None


async def test_a_restart_that_another_term_began_is_not_carried_on(world) -> None:
    """The lease is lost while a budget is asked; in the next term the gang is complete again."""
    gangs = test_controller.Gangs(world)
    election = settings.LeaderElectionSettings(identity="first")
    await gangs.pods(3, min=3, **test_controller.RESTART)
    await gangs.grow_old()
    slow = faults.Rule(faults.Delay(8), "create", "pods", "eviction", skip=1, times=1)
    world.faults.add(slow)

    async def hold(identity, seconds):
        lease = await world.admin.get(resources.LEASES, election.name, election.namespace)
        lease["spec"] |= {"holderIdentity": identity, "leaseDurationSeconds": seconds}
        await world.admin.update(resources.LEASES, lease)

    async with world.manager(**test_controller.ONLY, leader_election=election) as running:
        await gangs.seconds(2)
        await gangs.delete("g-1")
        assert await gangs.until(lambda: slow.met)
        await hold("second", 3600)
        assert await gangs.until(lambda: not running.leadership.leading)
        await gangs.pod("g-1", min=3, **test_controller.RESTART)
        # By then the loss itself is too long ago to restart a gang that is complete again.
        await gangs.seconds(restart_plan.EDGE_SECONDS + 5)
        await hold("", 1)
        assert await gangs.until(lambda: running.leadership.leading)
        await gangs.seconds(20)
        assert gangs.leaving() == []


async def test_nothing_is_evicted_before_the_restart_is_noted(world) -> None:
    """Who places new pods knows only by the PodGroup that they start together."""
    gangs = test_controller.Gangs(world)
    await gangs.group(least=2, notes=test_controller.RESTART)
    await gangs.pods(2, group=True)
    await gangs.grow_old()
    async with world.manager(**test_controller.ONLY):
        await gangs.seconds(2)
        await gangs.delete("g-1")
        # As if somebody else changed the PodGroup each time.
        refused = faults.Rule(faults.Refuse(409), "patch", GROUPS)
        world.faults.add(refused)
        await gangs.seconds(30)
        assert refused.met
        assert gangs.leaving() == []
        world.faults.clear()
        assert await gangs.until(lambda: gangs.leaving() == ["default/g-0"])
        assert gangs.condition("Restarted")
        assert await gangs.told_of("g", "GangRestarted")
