"""`koord drain` on a real control plane, while command and descheduler die and connections break.

Whatever happens, a pod leaves once and for a place that is kept for it, nobody else leaves, budgets
hold, and no job or Reservation is left behind.
"""

import asyncio
import contextlib
import re
import sys

import aiohttp
import pytest
import pytest_asyncio

from api import names
from tests.planes import raw
from tests.planes import stage as stages
from tests.planes.migration import migration_record, rebalancing
from tests.planes.stage import PATIENCE

WORKLOADS, REPLICAS = 2, 4
PODS = WORKLOADS * REPLICAS
LAST_LINE = re.compile(r"(\d+) of (\d+) pods have moved")
pytestmark = pytest.mark.timeout(120)


class Drained:
    """One node that runs all pods of some Deployments, and others with room for them."""

    def __init__(self, stand, login, suffix):
        self.stand, self.record = stand, stand.record
        self._login, self._suffix = login, suffix
        self.node, self.labels = "", {"drained": suffix}

    async def fill(self, least=REPLICAS - 1):
        """Start the pods while their node is the only one they may go to.

        Budgets keep so many of each workload.
        """
        stand, labels = self.stand, {"drained": self._suffix}
        (self.node,) = await stand.nodes(f"{self._suffix}-full", labels=labels, cpu="16")
        for number in range(WORKLOADS):
            name = f"{self._suffix}-{number}"
            requests = {"cpu": "500m", "memory": "1Gi"}
            await stand.deployment(
                name, REPLICAS, 100, least=least, nodeSelector=labels, requests=requests
            )
            await stand.run(name, REPLICAS)
        empty = (f"{self._suffix}-{number}" for number in range(3))
        await stand.nodes(*empty, labels=labels, cpu="16")

    def staying(self):
        """The pods that run on the node."""
        return [pod for pod in self.pods() if pod["spec"]["nodeName"] == self.node]

    def pods(self):
        """The pods of all its workloads that run."""
        apps = [f"{self._suffix}-{number}" for number in range(WORKLOADS)]
        return [pod for app in apps for pod in self.record.running(app=app)]

    def jobs(self, *phases):
        """The jobs of the drain in these phases."""
        return [
            one
            for one in self.record.jobs.now.values()
            if one["metadata"].get("labels", {}).get(names.LABEL_DRAIN) == self.node
            and migration_record.phase(one) in phases
        ]

    def refused(self):
        """The jobs of the drain whose evictions were refused so far."""
        return [
            one
            for one in self.jobs("Running")
            if any(
                told.get("reason") == "FailedEvict" for told in one["status"].get("conditions", ())
            )
        ]

    async def command(self, *words):
        """Start `koord drain` for the node."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-m", "cli", "drain", self.node, *words),
            f"--kubeconfig={self._login}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def drain(self, *words):
        """Run `koord drain` to its end; return its exit code and what it said."""
        return await ended(await self.command(*words))

    async def is_cordoned(self):
        """Whether the node takes no pods."""
        found = await self.stand.stage.api.get(f"/api/v1/nodes/{self.node}")
        return found["spec"].get("unschedulable", False)

    def has_kept_budgets(self):
        """Whether never more than one pod of a workload was missing."""
        apps = [f"{self._suffix}-{number}" for number in range(WORKLOADS)]
        return all(self.record.fewest_ready(app=app) >= REPLICAS - 1 for app in apps)


async def ended(command):
    """Wait for the end of a command; return its exit code and what it said."""
    said, _ = await asyncio.wait_for(command.communicate(), PATIENCE)
    return command.returncode, said.decode()


async def planned(command):
    """Wait until a command has said how many pods it moves, so that it has read the cluster."""
    async with asyncio.timeout(PATIENCE):
        while "pods move" not in (said := (await command.stdout.readline()).decode()):
            assert said, "it ended before it had a plan"


def is_eviction(call):
    """Whether a call evicts a pod, and does not only ask whether it may."""
    return call.path.endswith("/eviction") and b'"dryRun"' not in call.body


class Blows:
    """What happens to the only descheduler at a call that it makes."""

    def __init__(self, stand):
        self.descheduler, self.uplink = stand.deschedulers["a"], stand.uplinks["a"]

    def dies(self, count):
        """Kill it at an eviction that was accepted, before it hears of that."""
        struck, evictions = asyncio.get_running_loop().create_future(), []

        async def strike(call):
            if not is_eviction(call) or struck.done():
                return
            evictions.append(call.path)
            if len(evictions) == count:
                struck.set_result(call.path)
                await self.descheduler.kill()
            if len(evictions) >= count:
                raise aiohttp.ClientConnectionError("the process is gone")

        self.uplink.after = strike
        return struck

    def is_cut_off(self):
        """Lose every packet once it has opened a Reservation, and does not know that yet."""
        struck = asyncio.get_running_loop().create_future()

        async def strike(call):
            if b'"unschedulable":false' in call.body and not struck.done():
                struck.set_result(call.path)
                self.uplink.swallow()

        self.uplink.after = strike
        return struck

    async def comes_back(self):
        """Start it anew."""
        self.uplink.hang_up()
        await self.descheduler.start()

    async def stands_by(self):
        """Wait until it knows that it has lost the lead; then let packets through again.

        Evictions wait for the event that is returned.
        """
        may_go_on = asyncio.Event()

        async def has_lost():
            return await self.descheduler.figure("koord_lease_leading") == 0

        async def hold(call):
            if is_eviction(call):
                await may_go_on.wait()

        await raw.eventually(has_lost, PATIENCE)
        self.uplink.reset()
        self.uplink.before = hold
        self.uplink.hang_up()
        return may_go_on

    def evictions(self, path):
        """How often it has evicted one pod."""
        return sum(is_eviction(call) and call.path == path for call in self.uplink.calls)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(breakable, tmp_path_factory):
    folder = tmp_path_factory.mktemp("drain")
    async with contextlib.AsyncExitStack() as stack:
        stage = await stack.enter_async_context(stages.opened(breakable, folder))
        document = rebalancing.configuration(stage.id, per_node=3)
        made = await stack.enter_async_context(rebalancing.standing(stage, folder, document))
        descheduler = made.deschedulers["a"]
        await descheduler.start()
        await descheduler.ready()
        made.login = folder / "descheduler-a-login.json"
        yield made


async def test_a_node_is_emptied_through_kills_and_a_cut(stand):
    full, blows = Drained(stand, stand.login, "resumed"), Blows(stand)
    await full.fill()
    dead = blows.dies(2)
    first = await full.command("--yes")
    evicted = await asyncio.wait_for(dead, PATIENCE)
    first.kill()
    await ended(first)
    assert await full.is_cordoned()
    assert stand.record.open_jobs()
    cut = blows.is_cut_off()
    await blows.comes_back()
    await asyncio.wait_for(cut, PATIENCE)
    # It starts while nothing gets through, and reads the cluster once something does.
    second = await full.command("--yes")
    may_go_on = await blows.stands_by()
    # A busy machine may start a process more slowly than pods move.
    await planned(second)
    may_go_on.set()
    code, said = await ended(second)
    assert code == 0, said
    # What had moved before it began is not counted again.
    moved, total = LAST_LINE.search(said.splitlines()[-1]).groups()
    assert moved == total
    assert 0 < int(total) <= PODS
    await stand.record.until(lambda: len(full.pods()) == PODS, "pods are missing")
    await stand.at_rest()
    assert not full.staying()
    assert len(full.jobs("Succeeded")) == PODS
    assert full.has_kept_budgets()
    assert blows.evictions(evicted) == 1


async def test_a_drain_is_aborted_while_the_descheduler_is_dead(stand):
    full, blows = Drained(stand, stand.login, "aborted"), Blows(stand)
    await full.fill()
    dead = blows.dies(2)
    code, said = await full.drain("--yes", "--no-wait")
    assert code == 0, said
    await asyncio.wait_for(dead, PATIENCE)
    code, said = await full.drain("--abort")
    assert code == 0, said
    assert "is uncordoned" in said
    assert not await full.is_cordoned()
    blows.uplink.reset()
    await blows.comes_back()
    await stand.record.until(lambda: len(full.pods()) == PODS and stand.rests())
    await stand.at_rest()
    left = len(full.jobs("Succeeded"))
    assert 2 <= left < PODS
    assert len(full.jobs("Aborted")) == PODS - left == len(full.staying())
    assert full.has_kept_budgets()


async def test_an_abort_keeps_pods_whose_evictions_a_budget_refuses(stand):
    full = Drained(stand, stand.login, "refused")
    await full.fill(least=REPLICAS)
    before = {pod["metadata"]["uid"] for pod in full.staying()}
    code, said = await full.drain("--yes", "--no-wait")
    assert code == 0, said
    await stand.record.until(full.refused, "no eviction was refused")
    code, said = await full.drain("--abort")
    assert code == 0, said
    assert f"{PODS} jobs are aborted" in said
    await stand.at_rest()
    assert len(full.jobs("Aborted")) == PODS
    assert {pod["metadata"]["uid"] for pod in full.staying()} == before
    assert not await full.is_cordoned()


async def test_a_pod_that_terminates_already_is_waited_for(stand):
    full, stage = Drained(stand, stand.login, "leaving"), stand.stage
    await full.fill()
    leaving = stage.path("pods", full.staying()[0]["metadata"]["name"])
    await stage.api.patch(leaving, {"metadata": {"finalizers": ["example.com/backup"]}})
    await stage.api.delete(leaving)
    for number in range(WORKLOADS):
        await stand.run(f"leaving-{number}", REPLICAS)
    command = await full.command("--yes")
    await planned(command)
    await stage.api.patch(leaving, {"metadata": {"finalizers": None}})
    code, said = await ended(command)
    assert code == 0, said
    assert "is leaving already: " in said
    assert "1 of 1 pod that was leaving already has ended" in said.splitlines()[-1]
    await stand.at_rest()
    assert not full.staying()
