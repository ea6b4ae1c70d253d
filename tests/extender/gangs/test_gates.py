"""The gates of members are opened a few at a time, however many gangs have a plan."""

import asyncio

from api import names
from extender import settings
from extender.gangs import in_force, rounds
from process.runtime import clock, supervise
from tests.extender.gangs.stage import gang_cluster

WRITERS = 3
GANGS, MEMBERS = 8, 4


class Writes:
    """Opens gates when it is let, and counts how many are being opened."""

    def __init__(self):
        self.may_end = asyncio.Event()
        self.at_once = self.most = 0
        self.opened = []

    async def open(self, pod, record):
        del record
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.may_end.wait()
        self.at_once -= 1
        self.opened.append(pod.key)
        return ""


async def test_writes_of_all_plans_together_are_bounded_and_those_of_the_first_gang_come_first():
    cluster, time, writes, tasks = gang_cluster.GangCluster(), clock.ManualClock(), Writes(), []
    cluster.nodes(1, cpu="200")
    parts = gang_cluster.plan_parts(cluster, time, writes, tasks)
    plans = in_force.PlansInForce(parts, settings.GangSettings(writers=WRITERS))
    assert not plans.gates.are_behind()
    members = []
    for number in range(GANGS):
        gang = cluster.gang(f"g{number}", MEMBERS, schedulingGates=[{"name": names.GATE_GANG}])
        slots = {each.pod.uid: rounds.Slot(each.pod, each.gang, "n0") for each in gang}
        name = f"default/g{number}"
        plans.begin(rounds.Round(name, str(number), 0.0, 60.0, slots, {name: MEMBERS}))
        members += [each.pod.key for each in gang]
    async with supervise.Supervisor("gates") as supervisor:
        for work in tasks:
            supervisor.spawn("gates", work)
        await time.advance(1.0)
        assert writes.at_once == WRITERS
        assert plans.gates.are_behind(), "no further gang is planned meanwhile"
        writes.may_end.set()
        await time.advance(1.0)
    assert writes.most == WRITERS
    assert sorted(writes.opened) == sorted(members)
    assert set(writes.opened[:MEMBERS]) == set(members[:MEMBERS])
    assert not plans.gates.are_behind()
