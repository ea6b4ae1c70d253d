"""Teams in which one pod preempts and another one takes back what was borrowed, again and again."""

import asyncio
import contextlib
import random

from api import names
from process.runtime import supervise
from tests.planes import raw
from tests.planes.stage import PATIENCE

GRACE = 30
LONGEST_LEAVE = 0.6


class Reaper:
    """Ends pods that leave a while after they were asked to, as kubelets do, and notes them."""

    def __init__(self, here, chance):
        self._here, self._chance = here, chance
        self._due = {}
        self._dismissed = set()
        self.left = set()
        """Names of the pods that were evicted."""

    def dismiss(self, names):
        """Begin anew, and note none of these pods, which the test deletes itself.

        What was listed before may be looked at after that, so it is not enough to forget them.
        """
        self._dismissed.update(names)
        self.left.clear()

    async def run(self):
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            found = await self._here.api.get(self._here.path("pods"))
            for pod in found["items"]:
                name = pod["metadata"]["name"]
                if "deletionTimestamp" not in pod["metadata"]:
                    continue
                wait = self._chance.uniform(0.0, LONGEST_LEAVE)
                due = self._due.setdefault(name, loop.time() + wait)
                if name not in self._dismissed:
                    self.left.add(name)
                if loop.time() >= due:
                    path = self._here.path("pods", name)
                    await self._here.api.call("DELETE", path, query={"gracePeriodSeconds": "0"})
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def reaping(here, seed):
    """A reaper at work."""
    reaper = Reaper(here, random.Random(seed))
    async with supervise.Supervisor("reaper") as supervisor:
        supervisor.start("reaper", reaper.run)
        yield reaper


class Cell:
    """Two nodes of their own. On one, a quota of 4 cores is full of 4 pods of low priority; on the
    other, a borrower uses the 4 cores of an owner besides its own."""

    def __init__(self, teams, number, important):
        self.teams, self.number, self._important = teams, number, important
        self.full = self.owner = self.borrower = ""
        self._serial = 0

    async def make(self):
        """Create nodes, quotas and pods, and wait until all of them run."""
        teams, n = self.teams, self.number
        await teams.here.node(f"full-{n}", cpu="16")
        await teams.here.node(f"lent-{n}", cpu="8")
        self.full = await teams.quota(f"full-{n}", min={"cpu": 4}, max={"cpu": 4})
        parent = await teams.parent(f"both-{n}", min={"cpu": 8}, max={"cpu": 8})
        below = {names.LABEL_QUOTA_PARENT: parent}
        amounts = {"min": {"cpu": 4}, "max": {"cpu": 8}}
        self.owner, self.borrower = [
            await teams.quota(f"{name}-{n}", labels=below, **amounts)
            for name in ("owns", "borrows")
        ]
        await self.fill(4, 8)

    async def fill(self, low, borrowed):
        """Create so many pods of both kinds."""
        for _ in range(low):
            await self._pod(self.full, "low", "full")
        for _ in range(borrowed):
            await self._pod(self.borrower, "borrowed", "lent")

    async def _pod(self, quota, prefix, node, cpu="1", **more):
        self._serial += 1
        name = f"{prefix}-{self.number}-{self._serial}"
        chosen = {names.LABEL_HOSTNAME: self.teams.here.name(f"{node}-{self.number}")}
        await self.teams.here.pod(
            name,
            requests={"cpu": cpu},
            labels={names.LABEL_QUOTA_NAME: quota},
            nodeSelector=chosen,
            terminationGracePeriodSeconds=GRACE,
            **more,
        )
        return name

    async def ask(self):
        """Create a pod that preempts two, and one for which two have to leave."""
        high = await self._pod(self.full, "high", "full", "2", priorityClassName=self._important)
        owned = await self._pod(self.owner, "owned", "lent", "2")
        return high, owned

    def resting(self, asked):
        """How many pods of each quota have a node while two of them have been helped."""
        return {self.full: 3, self.owner: 1, self.borrower: 6} if asked else {
            self.full: 4, self.owner: 0, self.borrower: 8
        }  # fmt: skip

    def left(self, gone):
        """How many pods have left each of the two that give."""
        return {
            kind: len([name for name in gone if name.startswith(f"{kind}-{self.number}-")])
            for kind in ("low", "borrowed", "high", "owned")
        }


async def rest(teams, cells, *, asked):
    """Wait until every cell is as it has to be, in what pods, statuses and the extender say."""
    wanted, cores = {}, {}
    for cell in cells:
        wanted |= cell.resting(asked)
        cores |= {cell.full: 4, cell.owner: 2 if asked else 0, cell.borrower: 6 if asked else 8}

    async def running():
        pods = (await teams.api.get(teams.here.path("pods")))["items"]
        found = dict.fromkeys(wanted, 0)
        for pod in pods:
            stays = "deletionTimestamp" not in pod["metadata"]
            if pod["spec"].get("nodeName") and stays:
                found[pod["metadata"]["labels"][names.LABEL_QUOTA_NAME]] += 1
        return found

    await teams.agree(running, lambda found: found == wanted)
    await counted(teams, {quota: str(amount) for quota, amount in cores.items()})


async def counted(teams, wanted):
    """Wait until the extender, and the statuses that the manager writes, count so much in use."""
    seen = {}

    async def agrees():
        extender = {one["name"]: one for one in await teams.system.figures()}
        stored = await teams.api.get(teams.path(""))
        status = {one["metadata"]["name"]: one.get("status", {}) for one in stored["items"]}
        for quota in wanted:
            known = extender.get(quota, {}), status.get(quota, {})
            seen[quota] = tuple(one.get("used", {}).get("cpu", "0") for one in known)
        return all(seen[quota] == (amount, amount) for quota, amount in wanted.items())

    try:
        await raw.eventually(agrees, PATIENCE)
    except TimeoutError:
        raise AssertionError(f"in use are {wanted}; extender and status say {seen}") from None
