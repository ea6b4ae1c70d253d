"""The pods and quotas of the teams on a control plane: made, followed by a watch, exchanged."""

import asyncio
import contextlib
import functools
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from api import names, resources
from benchmarks.plane import feed, pod_events, rig
from benchmarks.quota_churn import accounts, objects
from process.runtime import supervise

_AT_ONCE = {"gracePeriodSeconds": 0}
_MERGE = {"Content-Type": "application/merge-patch+json"}
_PAGE = "1000"
_TICK_SECONDS = 0.01
_PATIENCE = 120.0
_PROGRESS_SECONDS = 10.0
_SETTLING_SECONDS = 20.0
"""Places in line are written on waiting pods for minutes, so there is no complete rest."""
_UNDER_WAY = 100
"""Exchanges at the same time."""


class StuckError(RuntimeError):
    """What was waited for did not come in time."""


class Teams:
    """All teams, and the accounts of what the watch shows of their pods."""

    def __init__(self, made: rig.Rig, size: objects.Size, kilobytes: int) -> None:
        self.made = made
        self.size = size
        self.accounts = accounts.Accounts()
        self.exchanged = 0
        """Pods that the last exchange has deleted, and created."""
        self.late = 0.0
        """Seconds by which an exchange was begun too late, at most."""
        self._kilobytes = kilobytes
        self._numbers = itertools.count()
        self._rng = random.Random(7)
        self._there = set[str]()
        """Names of the pods that exist by what the API server has answered to our writes."""

    @property
    def is_current(self) -> bool:
        """Whether the watch has shown every pod that we have created or deleted.

        It may be behind the answers: until then the accounts hold pods that are gone.
        """
        known = self.accounts.pods
        return len(known) == len(self._there) and known.keys() == self._there

    async def beginning(self) -> str:
        """Return the version from which `follow` has to watch: before the first pod is made."""
        listed = json.loads(await self.made.call("GET", rig.PODS, params={"limit": "1"}))
        return str(listed["metadata"]["resourceVersion"])

    async def follow(self, version: str) -> None:
        """Keep the accounts of everything since a version until cancelled."""
        node = feed.node_name(0).encode()
        prefix = node.partition(b"0")[0]
        async for frames in self.made.frames(version):
            now = time.perf_counter()
            for frame in frames:
                self.accounts.take(pod_events.read(frame, prefix, len(node)), now)

    # --- Pods -----------------------------------------------------------------------------------

    async def level(self) -> None:
        """Let every team have as many running pods as it should, and none that waits."""
        await self.until("the watch to show all writes", lambda: self.is_current)
        known = self.accounts
        gone = [name for name, pod in known.pods.items() if pod.bound_at is None]
        missing = []
        for team in range(self.size.teams):
            have = list(known.running.get(team, ()))
            gone += have[self.size.running :]
            missing += [team] * (self.size.running - len(have))
        async with self._progress("pods on nodes"):
            await rig.many(self._delete(name) for name in gone)
            await rig.many(self._create(team, node=True) for team in missing)
        running = self.size.teams * self.size.running
        await self.until("pods on nodes", lambda: self.is_current and known.bound == running)

    async def queue(self) -> None:
        """Create the pods that wait, the teams in turn."""
        teams = [*range(self.size.teams)] * self.size.waiting
        async with self._progress("waiting pods"):
            await rig.many(self._create(team) for team in teams)
        await self.until("waiting pods", lambda: self.is_current)

    async def exchange(self, per_second: float, seconds: float) -> None:
        """Delete running pods and create new ones of the same teams, at an even rate.

        The rate does not depend on how fast the cluster answers, until more exchanges are under way
        than the API server could answer in time.
        """
        turns, leaving, under_way = self._turns(), set[str](), set[str]()
        done, start = 0, time.perf_counter()
        self.late, shown = 0.0, start

        async def exchange(name: str, team: int) -> None:
            under_way.add(name)
            await asyncio.gather(self._delete(name), self._create(team))
            under_way.discard(name)

        async with asyncio.TaskGroup() as tasks:
            while (now := time.perf_counter()) < start + seconds:
                due = int((now - start) * per_second)
                if done < due:
                    self.late = max(self.late, now - start - done / per_second)
                for _ in range(min(due - done, _UNDER_WAY - len(under_way))):
                    team = next(turns)
                    have = [name for name in self.accounts.running[team] if name not in leaving]
                    if not have:
                        break  # All of them are leaving.
                    name = self._rng.choice(have)
                    leaving.add(name)
                    tasks.create_task(exchange(name, team))
                    done += 1
                self.exchanged = done
                if now >= shown + _PROGRESS_SECONDS:
                    shown = now
                    self.show(f"{now - start:.0f} s")
                await asyncio.sleep(_TICK_SECONDS)
        await self.until("the watch to show all exchanges", lambda: self.is_current)

    def _turns(self) -> Iterator[int]:
        """Yield all teams in an order drawn by chance, again and again."""
        while True:
            order = list(range(self.size.teams))
            self._rng.shuffle(order)
            yield from order

    async def _create(self, team: int, *, node: bool = False) -> None:
        number = next(self._numbers)
        place = number % self.made.nodes if node else None
        body = objects.pod(team, number, place, self._kilobytes)
        await self.made.call("POST", rig.PODS, body)
        self._there.add(body["metadata"]["name"])

    async def _delete(self, name: str) -> None:
        await self.made.call("DELETE", f"{rig.PODS}/{name}", _AT_ONCE)
        self._there.discard(name)

    async def until(
        self, what: str, condition: Callable[[], bool], seconds: float = _PATIENCE
    ) -> None:
        """Wait until the accounts show something, as long as anything still changes."""
        shown = changed = time.perf_counter()
        seen = -1
        while not condition():
            now, events = time.perf_counter(), self.accounts.window.events
            if events != seen:
                seen, changed = events, now
            if now > changed + seconds:
                raise StuckError(f"{what}: nothing has changed for {seconds:g} s; {self.state()}")
            if now >= shown + _PROGRESS_SECONDS:
                shown = now
                self.show(what)
            await asyncio.sleep(_TICK_SECONDS)

    async def rest(self) -> None:
        """Let nodes report anew and everything come to rest."""
        async with self._progress("coming to rest"):
            await self.made.refresh_reports()
            await self.made.settle(_SETTLING_SECONDS)

    @contextlib.asynccontextmanager
    async def _progress(self, what: str) -> AsyncIterator[None]:
        """Print how far things are now and then, until the end of the block."""

        async def show() -> None:
            while True:
                await asyncio.sleep(_PROGRESS_SECONDS)
                self.show(what)

        async with supervise.Supervisor("progress") as tasks:
            tasks.start("show", show)
            yield

    def state(self) -> str:
        """Return in words how many pods there are."""
        known = self.accounts
        return (
            f"{len(known.pods)} pods, {known.bound} on nodes, "
            f"{len(known.window.bound_at)} bound in this window, {known.pending} places free, "
            f"{len(known.excesses)} times above a quota"
        )

    def show(self, what: str) -> None:
        """Print how far things are."""
        print(f"  {what}: {self.state()}", flush=True)

    # --- Quotas ---------------------------------------------------------------------------------

    async def create_quotas(self) -> None:
        """Create a quota for each team that is full, and wait until admission knows them."""
        full, teams = self.size.running, range(self.size.teams)
        await self.made.create(objects.QUOTAS, (objects.quota(t, full // 2, full) for t in teams))
        self.accounts.limit(dict.fromkeys(teams, full))
        for team in teams:
            await rig.until(functools.partial(self._is_gated, team))

    async def _is_gated(self, team: int) -> bool:
        """Tell whether admission lets pods of a team wait."""
        body = objects.pod(team, 0, kilobytes=self._kilobytes)
        body["metadata"]["name"] = f"dry-{team}"
        made = json.loads(await self.made.call("POST", rig.PODS, body, params={"dryRun": "All"}))
        return {"name": names.GATE_QUOTA} in made["spec"].get("schedulingGates", ())

    async def raise_quotas(self) -> None:
        """Let every team run all of its pods."""
        teams, most = range(self.size.teams), self.size.running + self.size.waiting
        # What is allowed is known before anything is allowed.
        self.accounts.limit(dict.fromkeys(teams, most))
        body = {"spec": {"max": objects.amounts(most)}}
        await rig.many(
            self.made.call(
                "PATCH", f"{objects.QUOTAS}/{objects.team_name(team)}", body, headers=_MERGE
            )
            for team in teams
        )

    async def delete_quotas(self) -> None:
        """Delete the quotas of all teams."""
        self.accounts.limit({})
        await rig.many(
            self.made.call("DELETE", f"{objects.QUOTAS}/{objects.team_name(team)}")
            for team in range(self.size.teams)
        )

    async def recount(self) -> objects.Recount:
        """Add up all pods that the API server lists, and compare them with all quotas."""
        pods = [pod async for pod in self._listed(rig.PODS)]
        quotas = [quota async for quota in self._listed(objects.QUOTAS)]
        if len(quotas) != self.size.teams:
            raise StuckError(f"there are {len(quotas)} quotas of {self.size.teams} teams")
        return objects.recount(pods, quotas)

    async def _listed(self, path: str) -> AsyncIterator[dict[str, Any]]:
        query = {"limit": _PAGE}
        while True:
            page = json.loads(await self.made.call("GET", path, params=query))
            for item in page["items"]:
                yield item
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token


async def furnish(made: rig.Rig) -> None:
    """Create the namespace of our own objects."""
    body = {"metadata": {"name": names.NAMESPACE}}
    await made.call("POST", resources.NAMESPACES.path(), body)
