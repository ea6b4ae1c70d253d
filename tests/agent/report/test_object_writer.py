"""One object about a node: read seldom, written when it differs, never over what others wrote."""

import pytest

from agent.report import object_writer
from api import resources
from api.kubernetes import crds
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver

NODE = "node-1"
PLACE = object_writer.Place(resources.DEVICES, NODE, 10.0)


class World:
    """An API server, and an object that is to say how often it was wanted."""

    def __init__(self, plane, kube, clock):
        self.plane, self.clock, self.told = plane, clock, "a"
        self.own = object_writer.Own(kube, clock, PLACE, self.wanted, chance=lambda: 0.0)

    def wanted(self, current):
        if self.told is None:
            return None
        base = current or {
            "apiVersion": resources.DEVICES.api_version,
            "kind": "Device",
            "metadata": {"name": NODE},
            "spec": {},
        }
        before = base["metadata"].get("annotations") or {}
        after = {**before, "said": self.told}
        return {**base, "metadata": {**base["metadata"], "annotations": after}}

    def stored(self):
        return self.plane.objects.get(resources.DEVICES, NODE)

    def version(self):
        return self.stored()["metadata"]["resourceVersion"]


@pytest.fixture
async def world():
    clock = ManualClock()
    async with apiserver.running(clock=clock) as plane:
        for definition in crds.definitions():
            if definition["spec"]["names"]["kind"] == "Device":
                plane.objects.create(resources.CRDS, definition)
        found = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(found, clock=clock, user_agent="test") as kube:
            yield World(plane, kube, clock)


async def test_nothing_is_written_while_nothing_is_known(world):
    world.told = None
    assert await world.own.step()
    assert world.plane.objects.find(resources.DEVICES, NODE) is None


async def test_it_is_created_once_and_then_says_nothing(world):
    assert await world.own.step()
    version = world.version()
    for _ in range(5):
        await world.clock.advance(10)
        assert await world.own.step()
    assert world.version() == version
    world.told = "b"
    assert await world.own.step()
    assert world.stored()["metadata"]["annotations"] == {"said": "b"}


async def test_what_others_wrote_stays_and_a_conflict_is_read_again(world):
    await world.own.step()
    world.plane.objects.modify(
        resources.DEVICES, NODE, "", lambda found: found["metadata"]["annotations"].update(own="x")
    )
    world.told = "b"
    assert not await world.own.step(), "the version that it knew is not the stored one"
    assert await world.own.step()
    assert world.stored()["metadata"]["annotations"] == {"said": "b", "own": "x"}
    assert world.own.problem is None


async def test_a_change_by_somebody_else_is_healed(world):
    await world.own.step()
    world.plane.objects.modify(
        resources.DEVICES, NODE, "", lambda found: found["metadata"]["annotations"].clear()
    )
    await world.own.step()
    assert not world.stored()["metadata"].get("annotations"), "it is not read again so soon"
    await world.clock.advance(object_writer.REREAD_SECONDS)
    await world.own.step()
    assert world.stored()["metadata"]["annotations"] == {"said": "a"}


async def test_a_server_that_refuses_is_named(world):
    world.plane.objects.delete(resources.CRDS, "devices.scheduling.koordinator.sh")
    assert not await world.own.step()
    assert "Device node-1" in world.own.told()
