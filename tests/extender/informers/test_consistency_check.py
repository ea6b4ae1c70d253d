"""The view is proven current after silence."""

import asyncio

import pytest

from extender import settings
from extender.informers import consistency_check
from kube.client import errors
from process.runtime import clock, metrics

PROOF = 0.05


class Barrier:
    """Placed at the version that the server has; passed when the watch has delivered it."""

    def __init__(self):
        self.newest, self.delivered, self.error = 100, 100, None
        self.current_at = None
        self.placed = 0
        self.passed = asyncio.Event()

    async def place(self):
        self.placed += 1
        if self.error:
            raise self.error
        return self.newest

    async def reached(self, version):
        while self.delivered < version:
            await self.passed.wait()
            self.passed.clear()

    def deliver(self, version):
        self.delivered = version
        self.passed.set()


class Contact:
    age = 0.0
    missing = False


class Watch:
    """A watch that no barrier covers."""

    def __init__(self, name):
        self.name, self.contact, self.hastened = name, Contact(), 0

    def hasten(self):
        self.hastened += 1


@pytest.fixture
def parts():
    time, barrier, nodes = clock.ManualClock(), Barrier(), Watch("nodes")
    limits = settings.FreshnessSettings(idle_seconds=10, proof_seconds=PROOF, silence_seconds=65)
    registry = metrics.Registry()
    made = consistency_check.ConsistencyCheck(
        [barrier], [nodes, Watch("configmaps")], time, limits, registry
    )
    return made, barrier, nodes, time, registry


def counted(registry, outcome):
    name = "koord_extender_consistency_check_seconds_count"
    return registry.value(name, {"outcome": outcome})


async def test_the_first_call_and_the_first_after_silence_are_proven(parts):
    fresh, barrier, _, time, registry = parts
    assert await fresh.doubt() == ""
    assert barrier.placed == 1
    await time.advance(9)
    assert await fresh.doubt() == ""
    await time.advance(9)
    assert await fresh.doubt() == ""
    assert barrier.placed == 1
    await time.advance(11)
    assert await fresh.doubt() == ""
    assert barrier.placed == 2
    assert counted(registry, "current") == 2


async def test_work_of_its_own_uses_a_proof_and_does_not_prolong_it(parts):
    fresh, barrier, _, time, _ = parts
    assert await fresh.doubt() == ""
    for _ in range(3):
        await time.advance(3)
        assert await fresh.background_doubt() == ""
    assert barrier.placed == 1
    await time.advance(3)
    assert not fresh.trusted(), "nobody has called for 12 seconds"
    assert await fresh.background_doubt() == ""
    assert (barrier.placed, fresh.trusted()) == (2, True)


async def test_a_complete_list_is_a_proof_as_well(parts):
    fresh, barrier, _, time, _ = parts
    await time.advance(100)
    barrier.current_at = 95.0
    assert fresh.trusted()
    await time.advance(11)
    assert not fresh.trusted()
    assert await fresh.doubt() == ""
    assert barrier.placed == 1


async def test_a_view_that_is_behind_is_not_trusted_until_the_watch_has_caught_up(parts):
    fresh, barrier, _, _, registry = parts
    barrier.newest = 200
    assert "could not be proven" in await fresh.doubt()
    assert counted(registry, "behind") == 1
    barrier.newest = 500
    barrier.deliver(200)
    # What was newest when it was first asked for is what has to be seen: a watch that is always a
    # little behind would otherwise never be good enough.
    assert await fresh.doubt() == ""
    assert barrier.placed == 1


async def test_a_watch_that_catches_up_in_time_is_waited_for(parts):
    fresh, barrier, _, _, _ = parts
    barrier.newest = 200
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(fresh.doubt())
        await asyncio.sleep(0)
        barrier.deliver(199)
        await asyncio.sleep(0)
        assert not asked.done()
        barrier.deliver(200)
    assert asked.result() == ""


async def test_all_who_wait_share_one_proof(parts):
    fresh, barrier, _, _, _ = parts
    barrier.newest = 200
    answers = await asyncio.gather(*(fresh.doubt() for _ in range(20)))
    assert all("could not be proven" in answer for answer in answers)
    assert barrier.placed == 1


async def test_whoever_waits_for_a_proof_that_is_interrupted_is_told(parts):
    fresh, barrier, _, _, _ = parts
    barrier.newest = 200
    async with asyncio.TaskGroup() as group:
        first = group.create_task(fresh.doubt())
        await asyncio.sleep(0)
        second = group.create_task(fresh.doubt())
        await asyncio.sleep(0)
        first.cancel()
    assert "interrupted" in second.result()


async def test_what_was_newest_long_ago_proves_nothing(parts):
    fresh, barrier, _, time, _ = parts
    barrier.newest = 200
    assert "could not be proven" in await fresh.doubt()
    barrier.deliver(200)
    await time.advance(11)
    barrier.newest = 300
    assert "could not be proven" in await fresh.doubt()
    assert barrier.placed == 2


async def test_a_server_that_does_not_answer_is_no_proof(parts):
    fresh, barrier, _, _, registry = parts
    barrier.error = errors.Unreachable("no answer")
    assert "cannot be compared: no answer" in await fresh.doubt()
    assert counted(registry, "failed") == 1
    barrier.error = None
    assert await fresh.doubt() == ""


@pytest.mark.parametrize(
    ("age", "trusted"),
    [
        pytest.param(65, True, id="as silent as a quiet watch may be"),
        pytest.param(75, True, id="while it is opened again"),
        pytest.param(76, False, id="longer than that"),
    ],
)
async def test_what_no_barrier_covers_was_heard_not_long_ago(parts, age, trusted):
    fresh, _, nodes, _, _ = parts
    nodes.contact.age = age
    answer = await fresh.doubt()
    assert (answer == "") is trusted
    assert nodes.hastened == (not trusted)
    if not trusted:
        assert answer.endswith("not current: nodes not heard of for 76 s")
        nodes.contact.age = 0
        assert await fresh.doubt() == ""


async def test_what_the_api_server_does_not_serve_is_not_waited_for(parts):
    fresh, _, nodes, _, _ = parts
    nodes.contact.age, nodes.contact.missing = 1e6, True
    assert (await fresh.doubt(), nodes.hastened) == ("", 0)


async def test_every_kind_with_a_barrier_is_proven():
    time, pods, reservations = clock.ManualClock(), Barrier(), Barrier()
    limits = settings.FreshnessSettings(idle_seconds=10, proof_seconds=PROOF)
    made = consistency_check.ConsistencyCheck(
        [pods, reservations], [], time, limits, metrics.Registry()
    )
    pods.current_at = 0.0
    assert not made.trusted(), "the list of one kind proves nothing of the other"
    reservations.newest = 300
    assert "could not be proven" in await made.doubt()
    assert (pods.placed, reservations.placed) == (1, 1)
    reservations.deliver(300)
    assert await made.doubt() == ""
    assert (pods.placed, reservations.placed) == (1, 1)
