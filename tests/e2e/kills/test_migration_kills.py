"""The descheduler is killed around every write by which a pod moves.

Whatever was written then: the pod leaves only for a place that is kept for it, its successor gets
that place, the job ends, and nothing is kept once it has ended.
"""

import asyncio
import contextlib
import json
import random

import aiohttp
import pytest
import pytest_asyncio

from api import names, resources
from process.runtime import supervise
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.migration import migrating
from tests.planes.processes import gate
from tests.planes.quota.quota_processes import LEASE
from tests.planes.stage import LEASE_PATH, PATIENCE

JOBS, KEPT = resources.POD_MIGRATION_JOBS, resources.RESERVATIONS
SHORT = (
    "--leader_election.lease_seconds=3",
    "--leader_election.renew_seconds=2",
    "--leader_election.retry_seconds=0.5",
)
MANAGER = (
    *SHORT,
    '--controllers=["reservation"]',
    '--reservations.schedulers=["default-scheduler"]',
)
JOB, RESERVATION = "/podmigrationjobs/", "/reservations"
MOVE = {
    "arbitration": ("PATCH", JOB, b"passed-arbitration"),
    "running": ("PATCH", JOB, b'"phase":"Running"'),
    "reservation": ("POST", RESERVATION, b""),
    "reference": ("PATCH", JOB, b'"reservationRef"'),
    "created": ("PATCH", JOB, b'"status":"ReservationCreated"'),
    "scheduled": ("PATCH", JOB, b'"status":"ReservationScheduled"'),
    "announcement": ("PATCH", JOB, b'"reason":"EvictionBegun"'),
    "trial": ("POST", "/eviction", b'"dryRun"'),
    "opening": ("PATCH", RESERVATION, b'"unschedulable":false'),
    "eviction": ("POST", "/eviction", b"Eviction"),
    "accepted": ("PATCH", JOB, b'"message":"Pod \\"'),
    "gone": ("PATCH", JOB, b'"reason":"EvictComplete"'),
    "bound": ("PATCH", JOB, b'"status":"ReservationBound"'),
    "success": ("PATCH", JOB, b'"phase":"Succeeded"'),
}
TRIAL = MOVE["trial"][2]
GIVING_UP = {
    "failure": ("PATCH", JOB, b'"phase":"Failed"'),
    "deletion": ("DELETE", RESERVATION, b""),
}
BRIEF = {
    ("reservation", "after"),
    ("reference", "before"),
    ("announcement", "after"),
    ("opening", "after"),
    ("eviction", "before"),
    ("eviction", "after"),
    ("gone", "before"),
    ("bound", "after"),
    ("failure", "before"),
    ("deletion", "after"),
}
"""Where a mistake would cost a pod or a place; `make soak` kills around every write."""
pytestmark = pytest.mark.timeout(180)


def cases(steps):
    """Steps and moments at which the descheduler is killed."""
    every = [(step, moment) for step in steps for moment in ("before", "after")]
    return [one for one in every if stages.FULL or one in BRIEF]


class System(migrating.Migrating):
    """Extender and manager, and deschedulers behind gates of their own, one after the other."""

    def __init__(self, stage, pair, manager, uplinks, configuration):
        super().__init__(stage, None, None, None)
        self.pair, self.manager, self.uplinks = pair, manager, uplinks
        flags = (*SHORT, f"--configuration={configuration}", "--finds_targets=false")
        self.deschedulers = {
            letter: stage.process(
                f"descheduler-{letter}", "descheduler", *flags, server=uplink.url, serves=False
            )
            for letter, uplink in uplinks.items()
        }

    def killed_at(self, step, moment, letter="a"):
        """Kill the descheduler at a write, before it arrives or before it is answered."""
        method, path, text = step
        gated, done = self.uplinks[letter], asyncio.Event()

        async def strike(call):
            if done.is_set() or call.method != method or path not in call.path:
                return
            if text not in call.body or (text != TRIAL and TRIAL in call.body):
                return
            done.set()
            await self.deschedulers[letter].kill()
            raise aiohttp.ClientError

        setattr(gated, moment, strike)
        return done

    async def replaced(self, done, letter="a"):
        """Wait until it was killed, and start another one."""
        await asyncio.wait_for(done.wait(), PATIENCE)
        await self.started_anew(letter)

    async def started_anew(self, letter="a"):
        """Start a descheduler where one was killed."""
        self.uplinks[letter].reset()
        self.uplinks[letter].hang_up()
        await self.deschedulers[letter].start()
        await self.deschedulers[letter].ready()

    async def nothing_left(self):
        """Wait until no Reservation is kept for a job of this test."""

        async def none():
            found = (await self.api.get(KEPT.path()))["items"]
            mine = [one for one in found if self._is_mine(one)]
            phases = [one.get("status", {}).get("phase") for one in mine]
            return all(phase == "Succeeded" for phase in phases)

        await raw.eventually(none, PATIENCE)

    def _is_mine(self, held):
        owners = held["metadata"].get("ownerReferences", ())
        return any(one["name"].startswith(self.here.name("")) for one in owners)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(breakable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("migration-kills")
    configuration = folder / "descheduler.yaml"
    configuration.write_text(migrating.CONFIGURATION)
    async with contextlib.AsyncExitStack() as stack:
        stage = await stack.enter_async_context(stages.opened(breakable, folder))
        for path in (LEASE, LEASE_PATH):
            await stage.api.call("DELETE", path)
        opened = [gate.opened(breakable.server, breakable.ca) for _ in "ab"]
        uplinks = {
            letter: await stack.enter_async_context(one)
            for letter, one in zip("ab", opened, strict=True)
        }
        manager = stage.process("manager-a", "manager", *MANAGER, serves=False)
        made = System(stage, await stage.pair("a"), manager, uplinks, configuration)
        for process in (manager, made.deschedulers["a"]):
            await process.start()
        for process in (manager, made.deschedulers["a"]):
            await process.ready()
        await made.pair.schedule(bind_timeout_seconds=3)
        for suffix in ("n", "m"):
            await stage.node(suffix, cpu="8")
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def moving(system):
    """The system, whose workloads and jobs of one test are gone after it."""
    yield system
    await system.clear()
    await system.here.empty()


async def moved(moving, app, pod, job):
    """Wait until a pod has moved to the place that was kept for it."""
    new = await moving.successor(app, pod["metadata"]["name"])
    status = await moving.ended(job, "Succeeded")
    assert new["spec"]["nodeName"] == status["nodeName"] != pod["spec"]["nodeName"]
    note = json.loads(new["metadata"]["annotations"][names.ANNOTATION_RESERVATION_ALLOCATED])
    job_object = await moving.api.get(moving.job_path(job))
    named = job_object["spec"]["reservationOptions"]["reservationRef"]["name"]
    assert note["name"] == named
    await moving.nothing_left()


@pytest.mark.parametrize(("step", "moment"), cases(MOVE))
async def test_killed_around_a_write(moving, step, moment):
    app = f"{step}-{moment}"
    (pod,) = await moving.deployment(app)
    done = moving.killed_at(MOVE[step], moment)
    await moving.move(app, pod["metadata"]["name"])
    if step in ("bound", "success"):
        await moving.successor(app, pod["metadata"]["name"])
    await moving.replaced(done)
    await moved(moving, app, pod, app)


@pytest.mark.parametrize(("step", "moment"), cases(GIVING_UP))
async def test_killed_while_it_gives_up(moving, step, moment):
    app = f"{step}-{moment}"
    (pod,) = await moving.deployment(app)
    await moving.protect(app)
    done = moving.killed_at(GIVING_UP[step], moment)
    await moving.move(app, pod["metadata"]["name"], ttl="6s")
    await moving.replaced(done)
    await moving.ended(app, "Failed", "Timeout")
    await moving.nothing_left()
    (same,) = await moving.pods(app)
    assert same["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_another_replica_goes_on(moving):
    await moving.deschedulers["b"].start()
    try:
        (pod,) = await moving.deployment("two")
        done = moving.killed_at(MOVE["eviction"], "after")
        await moving.move("two", pod["metadata"]["name"])
        await asyncio.wait_for(done.wait(), PATIENCE)
        await moved(moving, "two", pod, "two")
    finally:
        await moving.deschedulers["b"].kill()
    await moving.started_anew()


async def test_killed_again_and_again_at_random(moving):
    rng = random.Random(17)
    pods = {}
    for number in range(6):
        app = f"r{number}"
        (pods[app],) = await moving.deployment(app, requests={"cpu": "500m"})
    for app, pod in pods.items():
        await moving.move(app, pod["metadata"]["name"])
    async with supervise.Supervisor("kubelets") as tasks:
        tasks.spawn("kubelets", playing_kubelets(moving, pods))
        for _ in range(8):
            await asyncio.sleep(rng.uniform(0.0, 1.0))
            await moving.deschedulers["a"].kill()
            await moving.started_anew()
        for app, pod in pods.items():
            await moved(moving, app, pod, app)
        await tasks.stop()


async def playing_kubelets(moving, apps):
    """Let every pod that has a node be ready."""
    while True:
        for app in apps:
            for pod in await moving.pods(app):
                if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Running":
                    await moving.started(pod["metadata"]["name"])
        await asyncio.sleep(0.2)
