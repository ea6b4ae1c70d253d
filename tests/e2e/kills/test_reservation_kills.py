"""Extender and manager are killed around every write by which a Reservation is placed.

Whatever was written then: the Reservation gets one node, its stand-in goes, what it keeps is kept
from other pods, and nothing is kept once it is deleted.
"""

import asyncio
import contextlib
import json

import aiohttp
import pytest
import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.processes import gate
from tests.planes.quota.quota_processes import LEASE
from tests.planes.stage import LEASE_PATH, PATIENCE

KIND = resources.RESERVATIONS
PODS = "/pods/reservation-"
MANAGER = (
    "--leader_election.lease_seconds=3",
    "--leader_election.renew_seconds=2",
    "--leader_election.retry_seconds=0.5",
    '--controllers=["reservation"]',
    '--reservations.schedulers=["default-scheduler"]',
)
STEPS = {
    "annotations": ("extender", "PATCH", "/reservations/", b"koord.sh/capture"),
    "status": ("extender", "PATCH", "/status", b'"nodeName"'),
    "deletion": ("extender", "DELETE", PODS, b""),
    "stand-in": ("manager", "POST", "/pods", names.LABEL_STAND_IN.encode()),
    "owners": ("manager", "PATCH", "/status", b'"currentOwners"'),
}
pytestmark = pytest.mark.timeout(120)


class System:
    """Extender and manager, each behind a gate of its own, and a scheduler."""

    def __init__(self, stage, pair, uplink):
        self.stage, self.pair = stage, pair
        self.manager = stage.process(
            "manager-a", "manager", *MANAGER, server=uplink.url, serves=False
        )
        self.processes = {"extender": pair.extender, "manager": self.manager}
        self.gates = {"extender": pair.uplink, "manager": uplink}
        self.node = ""

    async def killed_at(self, step, moment):
        """Kill the process that makes a write, before it arrives or before it is answered."""
        name, method, path, text = STEPS[step]
        gated, done = self.gates[name], asyncio.Event()

        async def strike(call):
            if done.is_set() or call.method != method or path not in call.path:
                return
            if text not in call.body:
                return
            done.set()
            await self.processes[name].kill()
            raise aiohttp.ClientError

        setattr(gated, moment, strike)
        return done, gated, name

    async def replaced(self, struck):
        done, gated, name = struck
        await asyncio.wait_for(done.wait(), PATIENCE)
        gated.reset()
        gated.hang_up()
        await self.processes[name].start()
        await self.processes[name].ready()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(breakable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reservation-kills")
    async with contextlib.AsyncExitStack() as stack:
        stage = await stack.enter_async_context(stages.opened(breakable, folder))
        for path in (LEASE, LEASE_PATH):
            await stage.api.call("DELETE", path)
        uplink = await stack.enter_async_context(gate.opened(breakable.server, breakable.ca))
        made = System(stage, await stage.pair("a"), uplink)
        await made.manager.start()
        await made.manager.ready()
        await made.pair.schedule(bind_timeout_seconds=3)
        made.node = await stage.node("n", cpu="4")
        yield made


def reservation(stage, name):
    labels = {"owner": name}
    spec = stage.pod_body("x", requests={"cpu": "3"})["spec"]
    template = {"metadata": {"namespace": stage.namespace, "labels": labels}, "spec": spec}
    owners = [{"labelSelector": {"matchLabels": labels}}]
    spec = {"template": template, "owners": owners, "allocateOnce": False}
    kind = {"apiVersion": KIND.api_version, "kind": KIND.kind}
    return {**kind, "metadata": {"name": name}, "spec": spec}


async def no_stand_ins(stage):
    found = await stage.api.get(stage.path("pods"), labelSelector=names.LABEL_STAND_IN)
    return not found["items"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_killed_around_a_write(system, step, moment):
    stage, name = system.stage, system.stage.name(f"{step}-{moment}")
    path = KIND.path(name=name)
    struck = await system.killed_at(step, moment)
    await stage.api.post(KIND.path(), reservation(stage, name))

    def available(found):
        return found and found.get("status", {}).get("phase") == "Available"

    if step == "owners":
        await stage.api.wait_until(path, available, PATIENCE)
        await stage.pod("owner", requests={"cpu": "2"}, labels={"owner": name})
    await system.replaced(struck)
    status = (await stage.api.wait_until(path, available, PATIENCE))["status"]
    assert status["nodeName"] == system.node
    await raw.eventually(lambda: no_stand_ins(stage), PATIENCE)
    if step != "owners":
        await stage.pod("owner", requests={"cpu": "2"}, labels={"owner": name})
    bound = await stage.bound("owner", PATIENCE)
    note = json.loads(bound["metadata"]["annotations"][names.ANNOTATION_RESERVATION_ALLOCATED])
    assert note["name"] == name
    await stage.api.wait_until(
        path, lambda found: found["status"].get("allocated") == {"cpu": "2"}, PATIENCE
    )
    await stage.pod("other", requests={"cpu": "2"})
    await stage.refused("other", "Insufficient cpu", timeout=PATIENCE)
    await stage.remove("owner")
    await stage.api.delete(path)
    assert (await stage.bound("other", PATIENCE))["spec"]["nodeName"] == system.node
    await stage.remove("other")
