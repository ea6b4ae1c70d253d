"""How soon large gangs are bound and impossible ones refused, and pods per second of small ones.

python -m benchmarks.gangs.throughput [--nodes 512] [--members 512] [--gangs 1000] [--rounds 3]
    [--parts whole,refused,rate,gated,alone] [--qps 5000] [--layout shared|apart]

A real control plane with our webhook, extender and an unmodified kube-scheduler, all of them with
their default settings but for the scheduler's rate limit. Nodes are objects. The moments are those
of a watch; a member was created when the watch shows it or its creation is answered.

whole: a gang of which every member needs a node of its own, over plain HTTP and with mutual TLS.
refused: ten members, of which each fits nine nodes, one at a time; until each of them says so.
rate: many gangs of eight and the same pods without gangs, in turns, while everything runs: created
as fast as the API server takes them.
gated: the same pods behind a gate of no gang, which is opened by one write as soon as they are
there; alone: both without our programs, by kube-scheduler alone. What a gate costs at least.
"""

import argparse
import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Any

import uvloop

from api import names, resources
from benchmarks import figures
from benchmarks.admission import reviewers
from benchmarks.gangs import moments, objects, programs, report
from benchmarks.plane import layouts, rig
from process.runtime import clock as clocks
from process.runtime import supervise

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PARTS = WHOLE, REFUSED, RATE, GATED, ALONE = "whole", "refused", "rate", "gated", "alone"
_USUAL = WHOLE, REFUSED, RATE
_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json", "Accept": _METADATA}
_TICK_SECONDS = 0.01
_PROGRESS_SECONDS = 10.0
_PATIENCE = 120.0


class StuckError(RuntimeError):
    """What was waited for did not come."""


class Field:
    """Pods on a control plane, and what a watch shows of them."""

    def __init__(self, made: rig.Rig, arguments: argparse.Namespace) -> None:
        self.made, self.given = made, arguments
        self.seen = moments.Moments()
        self.pids: dict[str, int] = {}
        """Programs of ours that run all the time."""
        self._turn = 0

    async def follow(self, version: str) -> None:
        """Keep the moments of everything since a version until cancelled."""
        async for frames in self.made.frames(version):
            now = time.perf_counter()
            for frame in frames:
                self.seen.frame(frame, now)

    def anew(self) -> moments.Moments:
        """Forget the pods of before: nothing is reported of them any more."""
        self.seen = moments.Moments()
        return self.seen

    def name(self, kind: str) -> str:
        """Return a prefix of names that no other pod has."""
        self._turn += 1
        return f"{kind}-{self._turn:03d}"

    async def create(self, bodies: Iterable[dict[str, Any]]) -> list[str]:
        """Create pods in their order, several at a time; return their names."""
        found = []

        async def one(body: dict[str, Any]) -> None:
            name = body["metadata"]["name"]
            found.append(name)
            await self.made.call("POST", rig.PODS, body)
            self.seen.answered(name, time.perf_counter())

        await rig.many(one(body) for body in bodies)
        return found

    async def open(self, bodies: Iterable[dict[str, Any]]) -> None:
        """Create pods behind a gate, and open each at once."""

        async def one(body: dict[str, Any]) -> None:
            name = body["metadata"]["name"]
            await self.made.call("POST", rig.PODS, body)
            self.seen.answered(name, time.perf_counter())
            path, query = f"{rig.PODS}/{name}", {"fieldValidation": "Ignore"}
            await self.made.call("PATCH", path, objects.OPENING, headers=_STRATEGIC, params=query)

        await rig.many(one(body) for body in objects.gated(bodies))

    async def until(self, what: str, ends: Collection[str], wanted: int) -> None:
        """Wait until so many pods are among those, as long as anything still changes."""
        shown = changed = time.perf_counter()
        events = -1
        while (have := len(ends)) < wanted:
            now = time.perf_counter()
            if self.seen.events != events:
                events, changed = self.seen.events, now
            if now > changed + _PATIENCE:
                raise StuckError(f"{have} of {wanted} {what}; nothing has happened since long")
            if now > shown + _PROGRESS_SECONDS:
                shown = now
                _say(f"{have} of {wanted} {what}")
            await asyncio.sleep(_TICK_SECONDS)

    @contextlib.asynccontextmanager
    async def measured(self, pair: programs.Pair, pods: int) -> AsyncIterator[dict[str, float]]:
        """Count the processor time of every program until the end of the block."""
        pids = {
            **self.made.plane.pids(),
            **pair.pids,
            **self.pids,
            "bench": os.getpid(),
        }
        before = {name: figures.cpu_seconds(pid) for name, pid in pids.items()}
        counted, cpu = await pair.counters(), dict[str, float]()
        yield cpu
        for name, pid in pids.items():
            cpu[name] = figures.cpu_seconds(pid) - before[name]
        _say(f"per pod: {programs.grown(counted, await pair.counters(), pods)}")

    async def empty(self) -> None:
        """Remove every pod, and let nodes report anew and everything come to rest."""
        await self.made.delete_pods()
        await self.made.refresh_reports()
        await self.made.settle()

    # -- what is measured ----------------------------------------------------------------------

    async def whole(self, pair: programs.Pair) -> report.Whole:
        """Measure one gang that needs many nodes."""
        seen, wanted = self.anew(), self.given.members
        async with self.measured(pair, wanted) as cpu:
            members = await self.create(objects.large(self.name("large"), wanted))
            await self.until("members bound", seen.bound, wanted)
        await self.empty()
        opened, bound = (list(seen.delays(members, ends)) for ends in (seen.opened, seen.bound))
        return report.Whole(min(opened), max(opened), min(bound), max(bound), cpu)

    async def refused(self, pair: programs.Pair) -> float:
        """Measure a gang without room; return when the last member has said so."""
        seen = self.anew()
        async with self.measured(pair, objects.IMPOSSIBLE):
            members = await self.create(objects.impossible(self.name("never")))
            await self.until("members that say why", seen.refused, objects.IMPOSSIBLE)
        if seen.bound:
            raise RuntimeError(f"{len(seen.bound)} members of a gang without room were bound")
        await self.empty()
        return max(seen.delays(members, seen.refused))

    async def drained(self, pair: programs.Pair, kind: str) -> report.Drain:
        """Measure many small gangs, or the same pods without gangs."""
        seen, wanted = self.anew(), self.given.gangs * objects.SMALL
        bodies = objects.small(self.name(kind), self.given.gangs, is_gang=kind == report.GANGS)
        async with (
            supervise.Supervisor("reports") as beside,
            self.measured(pair, wanted) as cpu,
        ):
            # All of them take minutes, and a node is not used that has not reported for three.
            beside.start("reports", lambda: self.made.renew_reports(clocks.SystemClock()))
            start = time.perf_counter()
            if kind in (report.GATED, report.ALONE_GATED):
                await self.open(bodies)
            else:
                await self.create(bodies)
            created, early = time.perf_counter(), len(seen.bound)
            await self.until("pods bound", seen.bound, wanted)
        if bool(seen.gated) != (kind == report.GANGS):
            raise RuntimeError(f"{len(seen.gated)} of {wanted} pods were behind the gate of gangs")
        if seen.gated:
            _say(f"{len(seen.gated)} of {wanted} members were behind their gate")
        await self.empty()
        end = max(seen.bound.values())
        per_pod = {name: value / wanted for name, value in cpu.items()}
        rest = (wanted - early) / (end - created) if early < wanted else 0.0
        return report.Drain(wanted / (end - start), rest, per_pod)


async def _round(field: Field, turn: int, found: report.Found) -> None:
    parts, queries = field.given.parts, field.given.qps
    if WHOLE in parts or REFUSED in parts:
        for transport, name in programs.TRANSPORTS.items():
            async with programs.running(field.made, transport, queries) as pair:
                if WHOLE in parts:
                    whole = await field.whole(pair)
                    found.whole[transport].append(whole)
                    _say(f"round {turn} {name}: {whole.line()}, {_load()}")
                if REFUSED in parts:
                    seconds = await field.refused(pair)
                    found.refused[transport].append(seconds)
                    _say(f"round {turn} {name}: all say why after {seconds:.2f} s, {_load()}")
    kinds = [report.GANGS] * (RATE in parts) + [report.GATED] * (GATED in parts)
    for kind in _order([*kinds, report.PLAIN] if kinds else [], turn):
        async with programs.running(field.made, programs.HTTP, queries) as pair:
            await _drain(field, pair, kind, turn, found)


async def _alone(field: Field, turn: int, found: report.Found) -> None:
    for kind in _order([report.ALONE_GATED, report.ALONE], turn):
        async with programs.alone(field.made, field.given.qps) as pair:
            await _drain(field, pair, kind, turn, found)


async def _drain(
    field: Field, pair: programs.Pair, kind: str, turn: int, found: report.Found
) -> None:
    drain = await field.drained(pair, kind)
    found.drains[kind].append(drain)
    _say(f"round {turn} {kind}: {drain.line()}, {_load()}")


def _order(kinds: list[str], turn: int) -> list[str]:
    return kinds[::-1] if turn % 2 else kinds


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


async def _main(arguments: argparse.Namespace) -> None:
    gangs = f"{arguments.gangs} gangs of {objects.SMALL}"
    what = f"{arguments.nodes} nodes, cores {arguments.layout}"
    print(f"{figures.machine()}\n{what}", flush=True)
    found = report.Found.nothing()
    nodes = objects.nodes(arguments.nodes)
    async with rig.running(nodes, layout=arguments.layout) as made, asyncio.TaskGroup() as tasks:
        namespace = {"metadata": {"name": names.NAMESPACE}}
        await made.call("POST", resources.NAMESPACES.path(), namespace)
        path = resources.CONFIG_MAPS.path(names.NAMESPACE)
        await made.call("POST", path, objects.SCHEDULERS)
        field = Field(made, arguments)
        following = tasks.create_task(field.follow(await made.version()))
        for turn in range(arguments.rounds if ALONE in arguments.parts else 0):
            # Before our webhook is registered.
            await _alone(field, turn, found)
        async with reviewers.ours(made) as webhook:
            field.pids["webhook"] = webhook.pid
            for turn in range(arguments.rounds):
                print(f"round {turn}, {_load()}", flush=True)
                await _round(field, turn, found)
            following.cancel()
    print("\n".join(report.table(found, arguments.members, gangs)), flush=True)
    report.show(found, arguments.members, f"{gangs}, {what}")


def _parts(text: str) -> list[str]:
    found = text.split(",")
    if unknown := set(found) - set(_PARTS):
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(_PARTS)}")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--members", type=int, default=512)
    parser.add_argument("--gangs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=_parts, default=[*_USUAL])
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=[*layouts.Layout], default=layouts.Layout.SHARED
    )
    chosen = parser.parse_args(argv)
    if chosen.members > chosen.nodes:
        parser.error("--members: at most as many as --nodes; each needs a node of its own")
    if chosen.nodes < objects.IMPOSSIBLE:
        parser.error(f"--nodes: at least {objects.IMPOSSIBLE}")
    uvloop.run(_main(chosen))


if __name__ == "__main__":
    main()
