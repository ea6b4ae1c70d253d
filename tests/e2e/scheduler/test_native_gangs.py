"""PodGroups of Kubernetes itself: kube-scheduler gathers their members, and our plan places them.

The extender hears of members that kube-scheduler has gathered already, without a scheduling gate.
"""

import asyncio
import contextlib
import time

import pytest
import pytest_asyncio

from simulator.processes import binaries
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.gangs import gang_stand, gang_variants
from tests.planes.processes import audit

MEMBERS, CORES = 100, 4
CALLS_PER_SECOND = 2
# kube-scheduler counts repeated events together, and writes them seconds later.
SILENT_SECONDS = 12.0
WATCHED_SECONDS = 12.0
GATED = gang_stand.GATED
pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.since(1, 37, reason="PodGroups of Kubernetes itself are beta there"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(native, tmp_path_factory):
    """Extender and scheduler, for all tests."""
    async with contextlib.AsyncExitStack() as stack:
        opened = stages.opened(native, tmp_path_factory.mktemp("native-gangs"))
        stage = await stack.enter_async_context(opened)
        yield await stack.enter_async_context(gang_stand.standing(stage, **GATED))


@pytest_asyncio.fixture(loop_scope="session")
async def gangs(stand):
    """The vocabulary of one test, which leaves no node, pod or claim."""
    yield stand.gangs
    await stand.gangs.clear()
    await gang_stand.removed(stand)


class Calls:
    """How often the extender and the API server are called for a gang that waits."""

    def __init__(self, stand, gang):
        self._stand, self._gang = stand, gang
        self._log = stand.stage.plane.binaries.audit_log

    def _asked(self, mark):
        """What the API server was asked about the gang and its members by others than this test."""
        where, own = self._stand.stage.namespace, f"{self._gang}-"
        return [
            call
            for call in audit.read(self._log, mark)
            if call.user != binaries.ADMIN
            and call.namespace == where
            and (call.name == self._gang or call.name.startswith(own))
        ]

    async def settled(self):
        """Wait until every member has been told about once: some seconds without a call."""
        mark, heard = audit.mark(self._log), time.monotonic()

        async def silent():
            nonlocal mark, heard
            start, mark = mark, audit.mark(self._log)
            if self._asked(start):
                heard = time.monotonic()
            return time.monotonic() - heard >= SILENT_SECONDS

        await raw.eventually(silent, stages.PATIENCE)

    async def rates(self):
        """Calls of the extender and of the API server per second, over some seconds."""
        await self.settled()
        mark, began = audit.mark(self._log), time.monotonic()
        front = self._stand.pair.front.calls
        before, named = len(front), f'"{self._gang}-'.encode()

        async def watched():
            return time.monotonic() - began >= WATCHED_SECONDS

        await raw.eventually(watched, stages.PATIENCE)
        counts = sum(named in call.body for call in front[before:]), len(self._asked(mark))
        return [count / (time.monotonic() - began) for count in counts]


# PodGroups of Kubernetes outlive their members for a while, so no name is used twice.
MIXES = {
    "both native": (gang_variants.Native(), "a", "b"),
    "native and ours": (gang_variants.Mixed("c"), "c", "d"),
}


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
async def test_exactly_one_of_two_runs_and_then_the_other(stand, gangs, mix):
    kind, *both = mix
    members = await kind.prepare(gangs, MEMBERS)
    bursts = gang_stand.Bursts(stand, both, members)
    await asyncio.gather(*(kind.create(gangs, name, members) for name in both))
    winner, other = await gangs.winner(*both, count=members)
    await gangs.waits(other, reason="InsufficientRoom")
    rates = await Calls(stand, other).rates()
    await gangs.never(other)
    assert max(rates) <= CALLS_PER_SECOND, rates
    await gangs.remove(winner)
    await gangs.whole(other, members)
    await gangs.up_to_date()
    assert list(bursts.problems((), 10.0)) == []
    await stand.rests(other, members=members)


async def test_a_native_gang_without_room_waits_whole(stand, gangs):
    for number in range(MEMBERS // CORES):
        await gangs.here.node(f"n{number}", cpu=str(CORES))
    await gangs.here.pod("kept", requests={"cpu": "1"})
    await gangs.here.bound("kept")
    await gang_variants.Native().create(gangs, "job", MEMBERS)
    told = await gangs.waits("job", reason="InsufficientRoom")
    assert f"of {MEMBERS} members" in told
    rates = await Calls(stand, "job").rates()
    assert max(rates) <= CALLS_PER_SECOND, rates
    await gangs.never("job")
    await gangs.here.remove("kept")
    await gangs.whole("job", MEMBERS)
