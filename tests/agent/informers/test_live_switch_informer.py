"""The switches are followed through the API server, and stand while it is away."""

import asyncio
import contextlib
import time

import pytest

from agent.informers import live_switch_informer
from agent.model import live_switches
from api import names, resources
from kube.client import access, client
from kube.informers import informer_set
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests import patience

OFF, ENFORCE = live_switches.Mode.OFF, live_switches.Mode.ENFORCE


class Board:
    """A switchboard on a control plane."""

    def __init__(self, plane, clock, board):
        self.plane, self.clock, self.board = plane, clock, board
        self.heard = 0
        board.changed = self.hear

    def hear(self):
        self.heard += 1

    def write(self, **data):
        meta = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE}
        data = {key.replace("_", "."): text for key, text in data.items()}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        self.plane.objects.create(resources.CONFIG_MAPS, body)

    def change(self, data):
        def replace(found):
            found["data"] = data

        name = names.CONFIG_MAP_SWITCHES
        self.plane.objects.modify(resources.CONFIG_MAPS, name, names.NAMESPACE, replace)

    async def until(self, condition):
        await patience.arrives(lambda: condition(self.board.here({})), lambda: self.board.here({}))


@pytest.fixture
async def bench():
    clock = ManualClock(float(int(time.time())))
    async with contextlib.AsyncExitStack() as server:
        plane = await server.enter_async_context(apiserver.running(clock=clock))
        entry = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with (
            client.Client(entry, clock=clock, user_agent="test") as kube,
            supervise.Supervisor("test") as supervisor,
        ):
            store = informer_set.InformerSet(kube, clock)
            board = live_switch_informer.Switchboard(store, names.NAMESPACE, ("cpu-burst",))
            made = Board(plane, clock, board)
            made.start = lambda: store.start(supervisor)
            made.plane_ends = server.aclose
            yield made


async def test_nothing_is_known_before_the_first_answer_and_no_map_is_normal(bench):
    assert bench.board.here({}) is None
    bench.start()
    await bench.until(lambda here: here == live_switches.Here())
    bench.write(agent="off")
    await bench.until(lambda here: here.agent is OFF)
    assert bench.heard == 1
    bench.plane.objects.delete(resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, names.NAMESPACE)
    await bench.until(lambda here: here.agent is ENFORCE)


async def test_what_makes_no_sense_is_a_problem_and_changes_nothing(bench):
    bench.write(agent="off")
    bench.start()
    await bench.until(lambda here: here is not None and here.agent is OFF)
    bench.change({"agent": "offf", "agent.cpu-burst": "observe"})
    await bench.until(lambda here: here.strategies)
    assert bench.board.here({}).agent is OFF
    assert bench.board.problem == "agent is 'offf': write enforce, observe, off"
    bench.change({"agent": "off"})
    await bench.until(lambda here: not here.strategies)
    assert bench.board.problem is None


async def test_a_node_whose_labels_are_unknown_waits_for_them(bench):
    bench.write(agent_nodes_off="pool=gpu")
    bench.start()
    await bench.until(lambda here: here is not None)
    assert bench.board.here(None) is None
    assert bench.board.here({"pool": "gpu"}).agent is OFF
    assert bench.board.here({"pool": "cpu"}).agent is ENFORCE


async def test_the_last_state_stands_while_the_api_server_is_away(bench):
    bench.write(agent="off")
    bench.start()
    await bench.until(lambda here: here is not None)
    await bench.plane_ends()
    await bench.clock.advance(3600)
    await asyncio.sleep(0)
    assert bench.board.here({}).agent is OFF


async def test_figures_say_how_far_every_strategy_goes(bench):
    figures = metrics.Registry()
    bench.board.show(figures, lambda _name: OFF)
    assert figures.value("koord_agent_strategy_mode", {"strategy": "cpu-burst"}) == 0
