"""Charging quotas: what happens when a write is late, refused or never answered."""

import asyncio
import gc
import json
import tracemalloc

import pytest

from api import names, resources
from domain.quota.tree import quota_trees
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import metrics, supervise
from webhook import review
from webhook.quota import quota_charges

QUOTA = quota_trees.Member("q", "ns", group=resources.ELASTIC_QUOTAS.group)
KEY = names.ANNOTATION_QUOTA_CHILD_REQUEST


class Stored:
    """One quota in an API server of which the test says what goes wrong next."""

    def __init__(self, cpu):
        self.cpu, self.used, self.version = cpu, None, 1
        self.faults, self.reads, self.writes = [], 0, 0
        self.more = dict

    def _object(self):
        notes = {} if self.used is None else {KEY: self.used}
        metadata = {"name": "q", "namespace": "ns", "annotations": notes}
        return {
            "metadata": {**metadata, **self.more(), "resourceVersion": str(self.version)},
            "spec": {"max": {"cpu": self.cpu}},
        }

    async def get(self, _resource, _name, _namespace):
        self.reads += 1
        return self._object()

    async def patch(self, _resource, _name, body, *, namespace):
        assert namespace == "ns"
        await asyncio.sleep(0)
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise errors.Conflict("the object has been modified")
        self.writes += 1
        self.change(body["metadata"]["annotations"][KEY])
        return self._object()

    def change(self, used):
        """Write as anybody may."""
        self.used, self.version = used, self.version + 1


class World:
    def __init__(self, supervisor, clock, cpu="3"):
        self.clock, self.stored = clock, Stored(cpu)
        self.figures = metrics.Registry()
        self.charges = quota_charges.Charges(
            self.stored, clock, supervisor.spawn, self.figures, seconds=0.8
        )

    async def ask(self, *cpus, writes=True, quota=QUOTA):
        """Charge pods at once; returns which are let in."""
        asked = [self.charges.charge(review.Charge(quota, {"cpu": c}, writes)) for c in cpus]
        work = asyncio.gather(*asked)
        while not work.done():
            await self.clock.advance(0.01)
        return [not refusal for refusal in await work]


@pytest.fixture
async def world():
    clock = clocks.ManualClock()
    async with supervise.Supervisor("test") as supervisor:
        yield World(supervisor, clock)


async def test_pods_that_come_together_are_written_once(world):
    assert await world.ask(1000, 1000, 2000, 1000, 1000) == [True, True, False, True, False]
    assert (world.stored.used, world.stored.writes, world.stored.reads) == ('{"cpu":"3"}', 1, 1)


async def test_what_was_written_last_is_remembered(world):
    assert await world.ask(1000) == [True]
    assert await world.ask(1000) == [True]
    assert (world.stored.reads, world.stored.writes) == (1, 2)


async def test_what_was_released_meanwhile_counts_before_a_refusal(world):
    assert await world.ask(3000) == [True]
    world.stored.change('{"cpu":"1"}')
    assert await world.ask(2000) == [True]
    assert world.stored.used == '{"cpu":"3"}'


async def test_a_conflict_is_judged_anew(world):
    assert await world.ask(1000) == [True]
    world.stored.change('{"cpu":"3"}')
    assert await world.ask(1000) == [False]
    assert world.stored.used == '{"cpu":"3"}'
    world.stored.change('{"cpu":"2"}')
    world.stored.faults = [errors.Conflict("modified"), errors.Conflict("modified")]
    assert await world.ask(1000) == [True]
    assert world.figures.value("koord_webhook_quota_conflicts_total") >= 2


async def test_nobody_is_let_in_by_a_write_whose_outcome_is_unknown(world):
    world.stored.faults = [errors.Unreachable("no answer")]
    assert await world.ask(1000, 1000) == [False, False]
    assert await world.ask(1000) == [True]


async def test_pods_of_a_quota_that_is_gone_are_let_in(world):
    world.stored.faults = [errors.NotFound("gone")]
    assert await world.ask(1000) == [True]


async def test_a_word_that_comes_too_late_is_no(world):
    world.stored.faults = [errors.Conflict("modified")] * 10_000
    assert await world.ask(1000) == [False]
    world.stored.faults = []
    assert await world.ask(1000) == [True], "those who come later do not wait behind it"


async def test_a_trial_charges_nothing(world):
    assert await world.ask(3000, writes=False) == [True]
    assert await world.ask(4000, writes=False) == [False]
    assert (world.stored.writes, world.stored.used) == (0, None)
    assert await world.ask(3000) == [True]


async def test_nothing_is_remembered_of_a_quota_beyond_what_is_charged(world):
    world.stored.more = lambda: {"labels": {f"example.com/{at}": "x" * 60 for at in range(2000)}}
    assert await world.ask(1) == [True]
    tracemalloc.start()
    try:
        for at in range(50):
            assert await world.ask(1, quota=QUOTA._replace(name=f"q{at}")) == [True]
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 20
    assert await world.ask(1, quota=QUOTA._replace(name="q49")) == [True]
    assert world.stored.reads == 51


async def test_a_quota_that_limits_thousands_of_resources_is_read_anew(world):
    world.stored.cpu, many = "3", {f"example.com/{at}": "1" for at in range(600)}
    limits = json.dumps({"cpu": "3", **many})
    world.stored.more = lambda: {"annotations": {names.ANNOTATION_QUOTA_ADMISSION: limits}}
    assert await world.ask(1000) == [True]
    world.stored.used = None
    assert await world.ask(1000) == [True]
    assert world.stored.reads == 2
