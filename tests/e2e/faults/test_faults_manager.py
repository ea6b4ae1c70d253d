"""Two managers: the leader dies or stands still, and the other one goes on with its work."""

import asyncio

import pytest_asyncio

from api import names, resources
from api.wire import durations
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.processes import gate, traffic
from tests.planes.stage import FULL, PATIENCE

WRITES = ("create", "update", "patch", "delete", "deletecollection")
LEASE = resources.LEASES.path(names.NAMESPACE, "koordinator-manager")
# The shipped times are 15, 10 and 2 s.
IMPATIENT = (
    "--leader_election.lease_seconds=6",
    "--leader_election.renew_seconds=4",
    "--leader_election.retry_seconds=1",
)


class Managers:
    """Two replicas; which of them leads changes with every fault."""

    def __init__(self, here, uplink):
        self.here = here
        self.uplink = uplink
        make = here.process
        times = () if FULL else IMPATIENT
        # The first one to start leads: the other one asks for the lease when it is taken.
        self.leader = make("manager-a", "manager", *times, server=uplink.url, serves=False)
        self.standby = make("manager-b", "manager", *times, serves=False)

    async def leads(self, process):
        async def says_so():
            return await process.figure("koord_lease_leading") == 1

        await raw.eventually(says_so, PATIENCE)

    def writes(self, process, mark=0):
        """What a replica wrote or tried to write, other than the lease and events."""
        return [
            call
            for call in self.here.calls()[mark:]
            if call.user == process.name
            and call.verb in WRITES
            and call.resource not in ("leases", "events")
        ]

    async def reports(self, node, cores):
        """Report as the node's agent would that so many cores are used."""
        usage = {"resources": {"cpu": str(cores), "memory": "1Gi"}}
        path = resources.NODE_METRICS.path(name=node)
        await self.here.api.wait_until(path, lambda found: found is not None, PATIENCE)
        status = {
            "updateTime": durations.moment(clocks.SystemClock().now()),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": usage},
        }
        await self.here.api.patch(f"{path}/status", {"status": status})

    async def lends(self, node, at_most, at_least=0):
        """Wait until a node lends within these bounds, in cores."""

        def within(found):
            text = found["status"]["allocatable"].get(names.BATCH_CPU)
            return text is not None and at_least * 1000 <= int(text) <= at_most * 1000

        await self.here.api.wait_until(resources.NODES.path(name=node), within, PATIENCE)

    async def looks_after(self, node):
        """Wait until a node has everything that a manager makes for it."""
        for resource in (resources.NODE_SLOS, resources.NODE_METRICS):
            path = resource.path(name=node)
            await self.here.api.wait_until(path, lambda found: found is not None, PATIENCE)

    def made_twice(self):
        made = [
            (call.resource, call.name)
            for call in self.here.calls()
            if call.user.startswith("manager-")
            and (call.verb == "create" or call.verb == "patch")
            and call.code == 201
        ]
        return {entry for entry in made if made.count(entry) > 1}


@pytest_asyncio.fixture(loop_scope="session")
async def managers(stage):
    async with gate.opened(stage.plane.server, stage.plane.ca) as uplink:
        await stage.api.call("DELETE", LEASE)
        made = Managers(stage, uplink)
        await made.leader.start()
        await made.leads(made.leader)
        await made.standby.start()
        await asyncio.gather(made.leader.ready(), made.standby.ready())
        yield made
        for process in (made.leader, made.standby):
            await process.kill()
    for name in stage.nodes:
        for resource in (resources.NODE_SLOS, resources.NODE_METRICS):
            await stage.api.call("DELETE", resource.path(name=name))


async def test_the_leader_dies_and_its_work_goes_on(stage, managers):
    old = await stage.node("old", cpu="16", memory="64Gi")
    await managers.reports(old, 1)
    await managers.lends(old, at_most=10, at_least=8)
    await managers.leader.kill()
    await stage.api.patch(resources.NODES.path(name=old), {"metadata": {"labels": {"is": "hot"}}})
    new = await stage.node("new", cpu="16", memory="64Gi")
    await managers.reports(old, 6)
    await managers.leads(managers.standby)
    await managers.looks_after(new)
    await managers.lends(old, at_most=6)
    assert managers.made_twice() == set()


async def test_a_leader_that_stood_still_past_its_lease_writes_nothing(stage, managers):
    old = await stage.node("old", cpu="16", memory="64Gi")
    await managers.reports(old, 1)
    await managers.lends(old, at_most=10, at_least=8)
    leader, standby = managers.leader, managers.standby
    held = traffic.Stopped(
        managers.uplink, lambda call: call.method == "PATCH" and call.path.endswith(f"{old}/status")
    )
    # What the leader would lend now is on its way when it stops.
    await managers.reports(old, 3)
    await held.complete(PATIENCE)
    assert managers.writes(leader), "the log shows what a leader writes"
    leader.pause()
    new = await stage.node("new", cpu="16", memory="64Gi")
    await managers.reports(old, 6)
    await managers.leads(standby)
    # What was under way when it stopped has been answered, or cut off, by now.
    mark = len(stage.calls())
    await managers.looks_after(new)
    await managers.lends(old, at_most=4.5)
    leader.resume()
    held.lose()

    async def knows():
        return await leader.figure("koord_lease_leading") == 0

    await raw.eventually(knows, PATIENCE)
    # It stands by now, and whatever it had to do was done by the other one.
    await stage.node("newest", cpu="16", memory="64Gi")
    await managers.looks_after(stage.nodes[-1])
    assert managers.writes(leader, mark) == []
    assert managers.made_twice() == set()
    renewals = [
        call.code
        for call in stage.calls()[mark:]
        if (call.user, call.resource) == (leader.name, "leases") and call.verb in WRITES
    ]
    assert [code for code in renewals if code < 400] == [], (
        "the lease is another's: refused, or timed out"
    )
    # A packet that the network held all the time is beyond anybody's control; it does not last.
    late = stage.api.as_user(stage.plane.binaries.tokens[leader.name])
    (call,) = held.calls
    answer = await late.call(call.method, call.path, call.body, kind=call.kind)
    assert answer.status == 200, answer.message
    assert int(answer.body["status"]["allocatable"][names.BATCH_CPU]) > 4500
    await managers.lends(old, at_most=4.5)
