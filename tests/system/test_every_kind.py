"""Every kind of ours: a change through the API is seen, acted on, told in conditions and events.

Nobody polls: what has to follow a change follows without virtual time passing, or within the
debounce that the row of the kind gives a reason for. Writes that meet an error of the API server, a
conflict and a connection that is cut are tried again, each time after a pause.
"""

import time

import pytest

from api import names, resources
from api.kubernetes import crds
from kube.client import access, client
from simulator import faults
from simulator.apiserver import apiserver
from tests import loopback
from tests.planes import definitions
from tests.system import kind_rows

STEP = 0.04
"""Shorter than the shortest pause after a failure."""
MOST_STEPS = 1000


@pytest.fixture
async def trouble_and_world(tmp_path):
    clock = loopback.LoopbackClock(float(int(time.time())))
    trouble = faults.Faults(clock)
    options = apiserver.Options(faults=trouble, encrypted=False)
    async with apiserver.running(clock=clock, options=options) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await definitions.store(plane, admin)
            await admin.create(resources.NAMESPACES, {"metadata": {"name": names.NAMESPACE}})
            yield trouble, kind_rows.World(plane, admin, clock, tmp_path)


def spoiled(trouble, resource):
    """Let the first three writes of our processes to a kind fail, each in another way."""
    kind = resource.review_name()
    return [
        trouble.add(faults.Rule(action, verb="patch", resource=kind, agent="koord-*", times=1))
        for action in (faults.Refuse(500), faults.Refuse(409), faults.Drop())
    ]


def done(world, resource, stage):
    """Tell whether a change has been acted on."""
    kind, status = stage.condition
    if world.condition(resource, stage.name, kind) != status:
        return False
    return not stage.event or stage.event in world.told(resource, stage.name)


@pytest.mark.parametrize("resource", resources.CUSTOM, ids=lambda one: one.review_name())
async def test_a_change_is_acted_on_told_and_tried_again(trouble_and_world, resource):
    trouble, world = trouble_and_world
    row = kind_rows.ROWS[resource]
    assert (row.debounce == 0 and row.first.event and row.second.event) or row.why
    await world.node("n1")
    async with world.acting(row.process, row.controllers):
        rules = spoiled(trouble, resource)
        await row.first.act(world, row.first.name)
        await world.quiet()
        for _ in range(MOST_STEPS):
            if done(world, resource, row.first):
                break
            before = sum(rule.met for rule in rules)
            await world.clock.advance(STEP)
            await world.quiet()
            assert sum(rule.met for rule in rules) - before <= 1, "there is a pause between tries"
        assert done(world, resource, row.first)
        assert [rule.met for rule in rules] == [1, 1, 1]
        await world.pass_time(row.debounce)
        await row.second.act(world, row.second.name)
        began = world.clock.monotonic()
        await world.quiet()
        while row.debounce and not done(world, resource, row.second):
            assert world.clock.monotonic() - began <= row.debounce
            await world.clock.advance(0.25)
            await world.quiet()
        await world.until(lambda: done(world, resource, row.second))


def test_kubectl_get_shows_more_than_names_of_every_kind():
    shown = {one.resource: [column.name for column in one.columns] for one in crds.DEFINITIONS}
    assert shown.keys() == kind_rows.ROWS.keys() == set(resources.CUSTOM)
    assert [kind for kind, columns in shown.items() if len(columns) < 3] == []
