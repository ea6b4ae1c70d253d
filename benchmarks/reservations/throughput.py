"""Pods per second beside many Reservations, and how soon a waiting owner is bound.

python -m benchmarks.reservations.throughput [--nodes 1000] [--pods 20000] [--waiting 1500]
    [--reservations 2000] [--owners 40] [--rounds 3] [--qps 5000] [--layout shared|apart]

rate: most pods have a node, the others wait, and a kube-scheduler with our extender drains them,
the manager beside it. Rounds interleave the same with and without Reservations. These hold their
nodes beforehand, each for the pods of one of some workloads, which half of the waiting pods belong
to. Every such pod has to be given a Reservation.

owners: with all Reservations in place, pods wait of which each may only use a Reservation of its
own, and kube-scheduler has refused them. Then these Reservations are created, a few every second:
the manager has each placed, and its owner is bound. Counted is the time from the moment at which a
watch shows the Reservation Available to the one at which a watch shows its owner bound.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from typing import Any

import uvloop

from api import names, resources
from api.kubernetes import scheduler_config
from benchmarks import figures
from benchmarks.plane import extenders, feed, layouts, managers, pod_events, rig
from benchmarks.reservations import objects, report, waits
from benchmarks.scheduling import variants
from process.runtime import supervise

_CONTROLLERS = ("reservation",)
_PLACED_BY = '--reservations.schedulers=["default-scheduler"]'
_OTHERS = "running"
"""The namespace of the pods that have a node."""
_MERGE = {"Content-Type": "application/merge-patch+json"}
_TICK_SECONDS = 0.01
_PROGRESS_SECONDS = 10.0
_PATIENCE = 60.0
_BACKOFF_SECONDS = 3.0
"""Longer than kube-scheduler leaves a refused pod alone."""
_EVERY_SECONDS = 0.25
"""Between two Reservations that are created for owners that wait."""
_ENOUGH = 0.95


class StuckError(RuntimeError):
    """What was waited for did not come."""


class Field:
    """Reservations and pods on a control plane."""

    def __init__(self, made: rig.Rig, arguments: argparse.Namespace) -> None:
        self.made = made
        self._given = arguments
        self._folder = made.workdir / "manager"
        self._folder.mkdir()
        self._login = made.plane.write_kubeconfig(self._folder / "kubeconfig", rig.USER)

    async def furnish(self) -> None:
        """Create the namespaces, and the pods that have a node."""
        for name in (names.NAMESPACE, _OTHERS):
            await self.made.call("POST", resources.NAMESPACES.path(), {"metadata": {"name": name}})
        account = f"/api/v1/namespaces/{_OTHERS}/serviceaccounts"
        await rig.until(lambda: self._has_items(account))
        count = self._given.pods - self._given.waiting
        path = resources.PODS.path(_OTHERS)
        await self.made.create(path, objects.running(count, self._given.nodes))
        _say(f"{count} pods with a node")

    async def _has_items(self, path: str) -> bool:
        return bool(json.loads(await self.made.call("GET", path))["items"])

    # -- reservations ------------------------------------------------------------------------

    async def reserve(self) -> None:
        """Create the Reservations, each on its node."""
        await rig.many(self._reserve(number) for number in range(self._given.reservations))
        _say(f"{self._given.reservations} Reservations")

    async def _reserve(self, number: int) -> None:
        body = objects.reservation(number)
        await self.made.call("POST", objects.PATH, body)
        node = feed.node_name(number * 7 % self._given.nodes)
        path = objects.SHAPE.path(name=body["metadata"]["name"], subresource="status")
        await self.made.call("PATCH", path, objects.available(node), headers=_MERGE)

    async def release(self) -> None:
        """Delete all Reservations."""
        await self.made.call("DELETE", objects.PATH)
        await rig.until(self._has_none)

    async def _has_none(self) -> bool:
        return not await self._has_items(f"{objects.PATH}?limit=1")

    async def _pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(await self.made.call("GET", rig.PODS))["items"]
        return found

    def manager(self) -> Any:
        """Run the manager, which keeps the status of Reservations and has them placed."""
        return managers.ours(self._folder, self._login, _CONTROLLERS, _PLACED_BY)

    # -- rate --------------------------------------------------------------------------------

    async def drained(self, turn: int, kind: str) -> report.Drain:
        """Measure one variant of one round, and leave nothing of it."""
        made, given = self.made, self._given
        first = (2 * turn + (kind == report.WITH) + 1) * 100_000
        await made.create(rig.PODS, objects.waiting(first, given.waiting))
        if kind == report.WITH:
            # Before the manager looks: it would have those without a node placed.
            await self.reserve()
        await made.refresh_reports()
        async with self.manager() as manager:
            before = figures.cpu_seconds(manager.pid)
            ours = variants.VARIANTS[variants.OURS]
            run = await variants.scheduled(made, ours, given.waiting, given.qps)
            worked = figures.cpu_seconds(manager.pid) - before
        used = objects.users(await self._pods())
        wanted = objects.owners(first, given.waiting) if kind == report.WITH else 0
        if used > wanted or used < wanted * _ENOUGH:
            raise RuntimeError(f"{used} pods use a Reservation, not {wanted}")
        await made.delete_pods()
        if kind == report.WITH:
            await self.release()
        drain = report.Drain(run, used, worked * 1000 / given.waiting)
        _say(f"round {turn} {kind}: {drain.line()}, load {os.getloadavg()[0]:.1f}")
        return drain

    # -- owners ------------------------------------------------------------------------------

    async def owners(self) -> list[waits.Wait]:
        """Measure how soon owners are bound that wait for their Reservations."""
        made, given = self.made, self._given
        every = [objects.own_name(0, number) for number in range(given.owners)]
        await self.reserve()
        folder = made.workdir / "ours"
        folder.mkdir(exist_ok=True)
        login = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
        known = waits.Waits()
        async with self.manager(), extenders.ours(folder, login) as extender:
            await made.refresh_reports()
            await made.create(rig.PODS, map(objects.own_pod, every))
            config = scheduler_config.Options(
                extender_url=extender.url, queries_per_second=given.qps
            )
            await made.start_scheduler(scheduler_config.render(config))
            await self._refused(len(every))
            await made.settle()
            async with supervise.Supervisor("watches") as tasks:
                for path, follow in ((rig.PODS, self._pods_of), (objects.PATH, self._reserved)):
                    listed = json.loads(await made.call("GET", path, params={"limit": "1"}))
                    version = listed["metadata"]["resourceVersion"]
                    tasks.spawn(path, follow(known, version))
                await self._create_slowly(every, known)
                await self._bound(every, known)
            await made.plane.stop_scheduler()
        if objects.users(await self._pods()) != len(every):
            raise RuntimeError("owners are bound without their Reservations")
        return list(known.found(every))

    async def _refused(self, count: int) -> None:
        end = time.perf_counter() + _PATIENCE
        while (found := objects.refused(await self._pods())) < count:
            if time.perf_counter() > end:
                raise StuckError(f"kube-scheduler has refused {found} of {count} owners")
            await asyncio.sleep(1.0)
        _say(f"{count} owners wait")
        await asyncio.sleep(_BACKOFF_SECONDS)

    async def _create_slowly(self, every: Sequence[str], known: waits.Waits) -> None:
        for name in every:
            await self.made.call("POST", objects.PATH, objects.own_reservation(name))
            known.created[name] = time.perf_counter()
            await asyncio.sleep(_EVERY_SECONDS)

    async def _bound(self, every: Sequence[str], known: waits.Waits) -> None:
        shown = start = time.perf_counter()
        while not known.ready(every):
            now = time.perf_counter()
            state = f"{len(known.available)} Available, {len(known.bound)} owners bound"
            if now > start + _PATIENCE:
                raise StuckError(f"of {len(every)} Reservations {state}")
            if now > shown + _PROGRESS_SECONDS:
                shown = now
                _say(state)
            await asyncio.sleep(_TICK_SECONDS)

    async def _pods_of(self, known: waits.Waits, version: str) -> None:
        node = feed.node_name(0).encode()
        prefix = node.partition(b"0")[0]
        async for frames in self.made.frames(version):
            now = time.perf_counter()
            for frame in frames:
                event = pod_events.read(frame, prefix, len(node))
                known.pod(event.name, now, bound=event.bound)

    async def _reserved(self, known: waits.Waits, version: str) -> None:
        async for line in self.made.lines(objects.PATH, version):
            known.reservation(line, time.perf_counter())


def _say(text: str) -> None:
    print(f"  {text}", flush=True)


async def _main(arguments: argparse.Namespace) -> None:
    what = (
        f"{arguments.reservations} Reservations, {arguments.pods} pods, {arguments.nodes} nodes, "
        f"cores {arguments.layout}"
    )
    print(f"{figures.machine()}\n{what}", flush=True)
    begun = time.perf_counter()
    runs: dict[str, list[report.Drain]] = {report.WITHOUT: [], report.WITH: []}
    async with rig.running(rig.even(arguments.nodes), layout=arguments.layout) as made:
        field = Field(made, arguments)
        await field.furnish()
        for turn in range(arguments.rounds):
            order = (report.WITHOUT, report.WITH) if turn % 2 else (report.WITH, report.WITHOUT)
            for kind in order:
                runs[kind].append(await field.drained(turn, kind))
            minutes = (time.perf_counter() - begun) / 60
            print(f"round {turn}: {report.ratio(runs)}; {minutes:.1f} minutes", flush=True)
        found = await field.owners() if arguments.owners else []
    report.show(runs, found, what)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark with the arguments of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=1500)
    parser.add_argument("--reservations", type=int, default=2000)
    parser.add_argument("--owners", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--qps", type=int, default=5000)
    parser.add_argument(
        "--layout", type=layouts.Layout, choices=layouts.Layout, default=layouts.Layout.SHARED
    )
    chosen = parser.parse_args(argv)
    if not 100 <= chosen.waiting < chosen.pods:
        parser.error("--waiting: from 100 to less than --pods; a rate needs that many")
    uvloop.run(_main(chosen))


if __name__ == "__main__":
    main()
