"""Many quotas under churn on a real control plane: no quota exceeded, and freed places taken soon.

python -m benchmarks.quota_churn.churn [--quotas 200] [--pods 20000] [--per-second 100]
    [--seconds 60] [--nodes 1000] [--kilobytes 7] [--qps 5000] [--rounds 3] [--layout shared|apart]
    [--variants stock,none,quotas]

Rounds interleave kube-scheduler alone, with all of our processes and no quota, and the same with a
quota for every team; all on one control plane with the same pods, four fifths of which have a node.

churn: running pods are deleted and as many of the same teams are created, at an even rate. With
quotas the rest of the pods waits behind full quotas, so each place that was freed is taken by the
next in line: from the deletion on the watch to the binding on the same watch is one latency.
burst: the waiting fifth may go at once, because the max of every quota is raised, or, where there
is none, because the scheduler starts; pods per second without the first and the last tenth.

A watch of all pods tells every state of the cluster in order: that a team runs more than the max of
its quota would be seen at any resource version. In the end all pods are listed and added up anew,
and the status of every quota has to say the same. Any of that failing ends the benchmark.
"""

import argparse
import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import uvloop

from benchmarks import figures
from benchmarks.plane import feed, layouts, rig
from benchmarks.quota_churn import objects, programs, report, teams
from benchmarks.quota_churn.programs import QUOTAS

_STATUS_SECONDS = 60.0
_LEFT_SECONDS = 30.0
_COUNTERS = re.compile(
    r"koord_(manager_writes_total|kube_watch_events_total|quota_gate_seconds_(sum|count)|"
    r"extender_verb_seconds_(sum|count)|"
    r"kube_request_seconds_count\{[^}]*verb=\"(patch|bind)\")"
)
"""What our processes say that explains a result."""


class Variant:
    """One variant of one round, with what runs for it."""

    def __init__(
        self, field: teams.Teams, name: str, ours: programs.Programs, arguments: argparse.Namespace
    ) -> None:
        self.field = field
        self.name = name
        self.ours = ours
        self._given = arguments

    async def run(self) -> report.Run:
        """Measure both phases, in the order in which pods can be made to wait."""
        field, before = self.field, len(self.field.accounts.excesses)
        if self.name == QUOTAS:
            await field.create_quotas()
            await self._start_scheduler()
            await field.queue()
            await field.rest()
            churn = await self._churn()
            await self._check()
            await field.rest()
            burst = await self._burst(field.raise_quotas)
            await self._check()
        else:
            await field.queue()
            await field.rest()
            burst = await self._burst(self._start_scheduler)
            await field.rest()
            churn = await self._churn()
        return report.Run(churn, burst, len(field.accounts.excesses) - before)

    async def _start_scheduler(self) -> None:
        await self.field.made.start_scheduler(self.ours.configuration(self._given.qps))

    async def _churn(self) -> report.Phase:
        given, field = self._given, self.field
        async with self._phase("churn", measures=self.name == QUOTAS) as found:
            await field.exchange(given.per_second, given.seconds)
            if self.name == QUOTAS:
                await field.until(
                    "freed places taken", lambda: not field.accounts.pending, _LEFT_SECONDS
                )
            else:
                await field.until(
                    "pods bound", lambda: field.accounts.bound == field.size.pods, _LEFT_SECONDS
                )
        print(
            f"  {field.exchanged} pods exchanged, {field.exchanged / given.seconds:.0f} a second, "
            f"begun {field.late * 1e3:.0f} ms late at most",
            flush=True,
        )
        return found[0]

    async def _burst(self, begin: Callable[[], Awaitable[None]]) -> report.Phase:
        field = self.field
        async with self._phase("burst", measures=False) as found:
            await begin()
            await field.until("burst", lambda: field.accounts.bound == field.size.pods)
        return found[0]

    @asynccontextmanager
    async def _phase(self, name: str, *, measures: bool) -> AsyncIterator[list[report.Phase]]:
        """Count what happens until the end of the block; the phase is in the list afterwards."""
        made, found = self.field.made, list[report.Phase]()
        pids = {**made.plane.pids(), **self.ours.pids, "load": os.getpid()}
        before = {program: figures.cpu_seconds(pid) for program, pid in pids.items()}
        counted = await self.ours.counters(_COUNTERS)
        window = self.field.accounts.begin(measures=measures)
        start = time.perf_counter()
        yield found
        seconds = time.perf_counter() - start
        pids |= made.plane.pids()
        cpu = {p: figures.cpu_seconds(pid) - before.get(p, 0.0) for p, pid in pids.items()}
        resident = {program: figures.resident(pid) for program, pid in pids.items()}
        found.append(report.Phase(window, seconds, cpu, resident))
        counters = await self.ours.counters(_COUNTERS)
        grown = {key: value - counted.get(key, 0.0) for key, value in counters.items()}
        load = os.getloadavg()[0]
        print(f"{report.line(f'{self.name} {name}', found[0])}; load {load:.1f}", flush=True)
        print(report.counted(grown, len(window.bound_at)), flush=True)

    async def _check(self) -> None:
        """Recount everything: no quota is exceeded, and the status of each says what is used."""
        field, end = self.field, time.perf_counter() + _STATUS_SECONDS
        while True:
            found = await field.recount()
            if found.excesses:
                raise teams.StuckError(f"quotas are exceeded: {'; '.join(found.excesses[:5])}")
            if not found.stale:
                print("  recount: no quota exceeded, every status says what is used", flush=True)
                return
            if time.perf_counter() > end:
                raise teams.StuckError(f"status is stale: {'; '.join(found.stale[:5])}")
            await asyncio.sleep(1.0)


async def _variant(field: teams.Teams, name: str, arguments: argparse.Namespace) -> report.Run:
    """Run one variant on the control plane of all, and leave nothing of it."""
    made = field.made
    await field.level()
    async with programs.running(made, name) as ours:
        run = await Variant(field, name, ours, arguments).run()
        await made.plane.stop_scheduler()
    if name == QUOTAS:
        await field.delete_quotas()
    return run


async def _main(arguments: argparse.Namespace) -> None:
    size = objects.size(arguments.quotas, arguments.pods)
    what = (
        f"{size.teams} quotas, {size.pods} pods, {arguments.per_second:g} pods/s of churn, "
        f"{arguments.nodes} nodes, cores {arguments.layout}"
    )
    print(f"{figures.machine()}\n{what}", flush=True)
    begun = time.perf_counter()
    runs: dict[str, list[report.Run]] = {name: [] for name in arguments.variants}
    nodes = rig.even(arguments.nodes)
    async with rig.running(nodes, layout=arguments.layout) as made, asyncio.TaskGroup() as tasks:
        await teams.furnish(made)
        field = teams.Teams(made, size, arguments.kilobytes)
        # Pods that are made before this version is known would never be seen.
        following = tasks.create_task(field.follow(await field.beginning()))
        for turn in range(arguments.rounds):
            first = turn % len(arguments.variants)
            for name in (*arguments.variants[first:], *arguments.variants[:first]):
                print(f"round {turn}, {name}", flush=True)
                runs[name].append(await _variant(field, name, arguments))
                minutes = (time.perf_counter() - begun) / 60
                print(f"  {minutes:.1f} minutes since the beginning", flush=True)
            for line in report.ratios({name: found[-1] for name, found in runs.items()}):
                print(f"round {turn}: {line}", flush=True)
        following.cancel()
    report.table(runs)
    report.show(runs, what)
    if above := field.accounts.excesses:
        raise SystemExit(f"quotas were exceeded {len(above)} times: {above[:5]}")


def _variants(text: str) -> list[str]:
    found = text.split(",")
    if unknown := set(found) - set(programs.VARIANTS):
        known = ", ".join(programs.VARIANTS)
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {known}")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quotas", type=int, default=200)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--per-second", type=float, default=100.0, help="pods that come and go")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the churn")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--kilobytes", type=int, choices=[*feed.KILOBYTES], default=7)
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=[*layouts.Layout], default=layouts.Layout.SHARED
    )
    parser.add_argument("--variants", type=_variants, default=[*programs.VARIANTS])
    uvloop.run(_main(parser.parse_args(argv)))


if __name__ == "__main__":
    main()
