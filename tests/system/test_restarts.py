"""Any process may die at any step of a bind: nothing is placed twice, lost or leaked."""

import asyncio
import collections
import itertools
import os

import aiohttp
import pytest

from api import resources
from simulator import faults
from tests.system import invariants

# Fifteen deaths take ten seconds on a quiet machine; a busy one must not cut thirty of them short.
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not os.environ.get("KOORD_E2E"), reason="takes half a minute; run make e2e"),
]


class ApiServer:
    """The API server as a process that can be killed; what it stores survives."""

    def __init__(self, world):
        self._world = world

    async def kill(self):
        await self._world.plane.stop_apiserver()

    async def start(self):
        await self._world.plane.start_apiserver()


class Hold:
    """Holds the first call that matches until the test goes on, or loses it."""

    def __init__(self, matches):
        self._matches = matches
        self._go = asyncio.Event()
        self.reached = asyncio.Event()
        self.lost = False

    async def __call__(self, call):
        if self._matches(call) and not self._go.is_set():
            self.reached.set()
            await self._go.wait()
            if self.lost:
                raise aiohttp.ClientConnectionError("nobody is there to answer any more")

    def release(self):
        self._go.set()


def is_bind(call):
    return call.path == "/bind"


def is_pod_watch(call):
    return call.method == "GET" and call.path == "/api/v1/pods"


async def before_filter(world, victim, name):
    await victim.kill()
    async with world.flowing():
        # With the API server away nobody can create anything.
        if isinstance(victim, ApiServer):
            await victim.start()
    await world.create(name, cpu=2, batch=True)
    await world.pass_time(3)
    if not isinstance(victim, ApiServer):
        await victim.start()


async def between_filter_and_bind(world, victim, name):
    held = world.front.before = Hold(is_bind)
    await world.create(name, cpu=2, batch=True)
    await world.until(held.reached.is_set, "the bind call is on its way")
    assert not world.node_of(name)
    await victim.kill()
    await victim.start()
    held.release()


async def during_a_slow_write(world, victim, name):
    slow = world.plane.faults.add(
        faults.Rule(faults.Delay(5.0), resource="pods", subresource="binding", times=1)
    )
    await world.create(name, cpu=2, batch=True)
    await world.until(lambda: slow.met, "the write is held by the API server")
    assert not world.node_of(name)
    assert list(world.extender.books.assumptions) == [world.pod(name)["metadata"]["uid"]]
    await victim.kill()
    await victim.start()


async def after_the_write(world, victim, name):
    held = world.processes["extender"].uplink.after = Hold(lambda call: call.is_binding)
    await world.create(name, cpu=2, batch=True)
    await world.until(held.reached.is_set, "the write is done, its answer on its way")
    assert world.node_of(name)
    held.lost = isinstance(victim, ApiServer)
    await victim.kill()
    await victim.start()
    held.release()


async def before_the_echo(world, victim, name):
    held = world.processes["extender"].uplink.told = Hold(is_pod_watch)
    answered = []

    async def note(call):
        if is_bind(call):
            answered.append(call)

    world.front.after = note
    await world.create(name, cpu=2, batch=True)
    await world.until(lambda: answered, "the scheduler has its answer")
    assert world.node_of(name)
    # The picture counts the pod although the watch has not told.
    uid = world.pod(name)["metadata"]["uid"]
    assert uid in world.extender.books.assumptions
    held.lost = isinstance(victim, ApiServer)
    await victim.kill()
    await victim.start()
    held.release()


async def closed(world):
    """Wait until files of groups that are gone are closed; to look takes long, so once a second."""
    for _ in range(90):
        if not invariants.held(world.folder):
            return
        await world.pass_time(1)
    assert invariants.held(world.folder) == []


STEPS = (
    before_filter,
    between_filter_and_bind,
    during_a_slow_write,
    after_the_write,
    before_the_echo,
)


@pytest.fixture
async def bindings(world):
    """How often each pod got a node, as the store behind the API server tells it."""
    counted = collections.Counter()

    def on_event(event):
        if event.type == "DELETED" or not event.object["spec"].get("nodeName"):
            return
        before = (event.previous or {}).get("spec", {}).get("nodeName")
        if before != event.object["spec"]["nodeName"]:
            counted[event.object["metadata"]["uid"]] += 1

    stop = world.plane.objects.subscribe(on_event, resources.PODS)
    yield counted
    stop()


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("extender", "apiserver"), id="extender and API server"),
        pytest.param(("webhook", "manager", "agent-a"), id="webhook, manager and agent"),
    ],
)
async def test_processes_die_at_each_step_of_a_bind(world, bindings, names):
    for node in ("a", "b"):
        await world.add_node(node)
    await world.create("whale", cpu=100, batch=True)
    await world.until(lambda: world.refusal("whale"), "a pod that fits nowhere knows why")
    sizes = []

    async def die(step, name):
        victim = ApiServer(world) if name == "apiserver" else world.processes[name]
        pod = f"{step.__name__.replace('_', '-')}-{name}"
        await step(world, victim, pod)
        await world.bound(pod)
        world.front.reset()
        assert await invariants.broken(world, bindings) == [], (step.__name__, name)
        await world.remove(pod)
        await world.pass_time(5)
        # Agents read through files that stay open, and notice a moment later that a pod has left.
        await closed(world)
        sizes.append(invariants.size(world))

    deaths = list(itertools.product(STEPS, names))
    # The first deaths warm up pools of connections; what later ones leave behind adds up.
    for step, name in deaths:
        await die(step, name)
    if invariants.growing(sizes):
        # Gates and those who call them do not close connections in the same moment. What deaths
        # leave behind grows again through another death at every step.
        for step, name in deaths:
            await die(step, name)
    assert sorted(bindings.values()) == [1] * len(sizes)
    assert invariants.growing(sizes[-len(deaths) :]) == [], sizes
    assert invariants.strays() == []
