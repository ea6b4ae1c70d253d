"""Receipts are written on jobs and told of, and memory outlives the process."""

import dataclasses

import msgspec
import pytest

from api import names, resources
from api.wire import durations
from descheduler.model import object_projection
from descheduler.receipts import breaker, controller, ledger, memory, receipt
from kube.client import errors
from kube.controllers import recorder
from process.runtime import metrics, supervise
from tests.descheduler.receipts import moves

NEW = moves.pod("web-2", "b", ready=True)
MEMORY = names.CONFIG_MAP_DESCHEDULER_MEMORY


@dataclasses.dataclass
class Stage:
    """A controller on a control plane, with a picture of our own making."""

    world: object
    controller: controller.ReceiptController
    books: ledger.Ledger
    registry: metrics.Registry
    loads: dict

    async def job(self, name="j1", profile="default"):
        told = msgspec.structs.replace(moves.expected(), profile=profile)
        notes = {names.ANNOTATION_MIGRATION_RECEIPT: receipt.text(told)}
        done = {"type": "Eviction", "status": "True", "reason": "EvictComplete"}
        done["lastTransitionTime"] = durations.moment(moves.ENDED)
        await self.world.create(
            resources.POD_MIGRATION_JOBS,
            {
                "metadata": {"name": name, "annotations": notes},
                "spec": {"podRef": {"namespace": "default", "name": "web-1", "uid": "uid-web-1"}},
                "status": {
                    "phase": "Succeeded",
                    "conditions": [done],
                    "podRef": {"namespace": "default", "name": "web-2", "uid": "uid-web-2"},
                },
            },
        )

    def picture(self, _now):
        stored = self.world.stored(resources.POD_MIGRATION_JOBS)
        jobs = [object_projection.job(raw) for raw in stored]
        return moves.world(self.loads, [NEW], now=moves.LATER, jobs=jobs)

    def told(self, name):
        (raw,) = [
            one
            for one in self.world.stored(resources.POD_MIGRATION_JOBS)
            if one["metadata"]["name"] == name
        ]
        return receipt.read(object_projection.job(raw))

    async def events(self):
        await self.world.pass_time(3)
        found = self.world.stored(resources.CORE_EVENTS)
        return {
            (one["reason"], (one.get("regarding") or one["involvedObject"])["kind"])
            for one in found
        }


@pytest.fixture
async def stage(world):
    async with (
        world.client("koord-descheduler") as api,
        supervise.Supervisor("term") as tasks,
    ):
        events = recorder.Recorder(api, "koord-descheduler", world.clock, instance="me")
        events.start(tasks)
        books = ledger.Ledger(breaker.Options(least=2), moves.SETTLE, moves.loads)
        registry = metrics.Registry()
        figures = controller.ReceiptMetrics(
            registry, lambda: dict.fromkeys(books.halted(moves.LATER), 1.0)
        )
        made = Stage(world, None, books, registry, {"a": 8, "b": 4})
        parts = controller.Parts(api, events, world.clock, made.picture, names.NAMESPACE)
        made.controller = controller.ReceiptController(parts, books, figures)
        yield made


def settled(registry, verdict):
    labels = {"profile": "default", "plugin": "LowNodeLoad", "verdict": verdict}
    return registry.value("koord_descheduler_moves_settled_total", labels)


async def test_a_receipt_is_written_counted_and_told_to_job_and_pod(stage):
    await stage.job()
    await stage.controller.once()
    assert stage.told("j1").outcome.verdict is receipt.Verdict.PAID
    assert settled(stage.registry, "Paid") == 1
    points = {"profile": "default", "kind": "gained"}
    assert stage.registry.value("koord_descheduler_gain_points_total", points) == 10
    assert await stage.events() == {("MovePaid", "PodMigrationJob"), ("MovePaid", "Pod")}
    await stage.controller.once()
    assert settled(stage.registry, "Paid") == 1


async def test_a_profile_is_halted_and_that_is_remembered(stage):
    stage.loads |= {"a": 3, "b": 9}
    await stage.job("j1")
    await stage.job("j2")
    await stage.controller.once()
    halted = {"profile": "default"}
    assert stage.registry.value("koord_descheduler_profile_halted", halted) == 1
    assert stage.registry.value("koord_descheduler_profile_halts_total", halted) == 1
    lost = {"profile": "default", "kind": "lost"}
    assert stage.registry.value("koord_descheduler_gain_points_total", lost) == 20
    assert ("ProfileHalted", "ConfigMap") in await stage.events()
    later = ledger.Ledger(breaker.Options(), moves.SETTLE, moves.loads)
    parts = stage.controller._parts
    await controller.ReceiptController(parts, later, None).restore()
    assert later.halted(moves.LATER) == stage.books.halted(moves.LATER)


async def test_receipts_that_name_ever_new_profiles_fill_neither_memory_nor_metrics(stage):
    for number in range(controller.MOST_SERIES + 8):
        await stage.job(f"j{number}", f"profile-{number}")
    await stage.controller.once()
    stage.books.keep_changed()
    assert len(stage.books.changes().breakers) == memory.MOST_PROFILES
    other = {"profile": "other", "plugin": "other", "verdict": "Paid"}
    assert stage.registry.value("koord_descheduler_moves_settled_total", other) == 8


async def test_memory_that_is_not_there_or_cannot_be_read_begins_anew(stage):
    await stage.controller.restore()
    assert stage.books.halted(moves.LATER) == {}
    metadata = {"name": MEMORY, "namespace": names.NAMESPACE}
    body = {"metadata": metadata, "data": {memory.KEY: "{"}}
    await stage.world.create(resources.CONFIG_MAPS, body)
    await stage.controller.restore()
    assert stage.books.halted(moves.LATER) == {}


async def test_memory_is_read_again_where_no_api_server_answers(stage):
    """As when a proxy shows a page of its own, or the credential has expired for a moment."""
    for error in (errors.Malformed("a page"), errors.AccessError("no credential")):
        odd = Odd(error)
        stage.controller._parts = dataclasses.replace(stage.controller._parts, api=odd)
        async with supervise.Supervisor("test") as tasks:
            restoring = tasks.spawn("restore", stage.controller.restore())
            await stage.world.pass_time(5)
            assert restoring.done()
            await restoring
        assert odd.asked == 2


class Odd:
    """A client whose first read fails."""

    def __init__(self, error):
        self._error, self.asked = error, 0

    async def get(self, *_args):
        self.asked += 1
        if self.asked == 1:
            raise self._error
        return {}


async def test_a_job_that_was_deleted_meanwhile_stops_nothing(stage):
    await stage.job("gone")
    await stage.job("there")
    seen = stage.picture(0.0)
    stage.controller._parts = dataclasses.replace(
        stage.controller._parts, pictures=lambda _now: seen
    )
    await stage.world.admin.delete(resources.POD_MIGRATION_JOBS, "gone")
    await stage.controller.once()
    assert stage.told("there").outcome is not None
    assert settled(stage.registry, "Paid") == 2


async def test_receipts_wait_for_an_api_server_that_is_away(stage):
    await stage.job()
    seen = stage.picture(0.0)
    parts = dataclasses.replace(stage.controller._parts, pictures=lambda _now: seen)
    away = Away(parts.api)
    stage.controller._parts = dataclasses.replace(parts, api=away)
    await stage.controller.once()
    assert stage.told("j1").is_open
    away.is_away = False
    await stage.controller.once()
    assert not stage.told("j1").is_open
    assert settled(stage.registry, "Paid") == 1


class Away:
    """A client whose writes get no answer for a while."""

    def __init__(self, api):
        self._api, self.is_away = api, True

    async def patch(self, *args, **options):
        if self.is_away:
            raise errors.Unreachable("away")
        return await self._api.patch(*args, **options)


async def test_it_looks_again_and_again(stage):
    async with supervise.Supervisor("term") as tasks:
        tasks.start("receipts", stage.controller.run)
        await stage.world.quiet()
        await stage.job()
        await stage.world.pass_time(controller.LOOK_SECONDS + 1)
        await stage.world.until(lambda: not stage.told("j1").is_open)
