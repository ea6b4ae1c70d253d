"""`koord drain`: empty a node by PodMigrationJobs, with a preview, progress and a way back."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from api import names, resources
from api.koordinator import migration
from api.wire import durations
from cli import clusters
from cli.output import answers, terminal
from cli.rebalancing import departures, drain_abort, drain_plan, drain_progress, live_cluster
from descheduler.framework import protocols
from descheduler.migration import reads
from descheduler.migration.plan import conditions, facts, jobs
from descheduler.model import object_projection, objects, picture, podinfo
from domain import wording
from kube.client import client as clients
from kube.client import errors
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import entry, supervise

LEASE: Final = "koord-descheduler"
_FRESH_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
_ECHO_SECONDS: Final = 10.0
"""How long the watch may take to show the jobs that were created."""
_UNDECIDED_SECONDS: Final = 5.0
"""How long an eviction that was announced may take to be accepted or refused."""
_MOST: Final = 5
"""Pods of which is said what holds them."""
_NOTHING_DONE: Final = "nothing was done"


class DrainError(explained_error.ExplainedError):
    """The node cannot be drained; says why and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord drain`."""
    parser.description = (
        "Empty a node: cordon it, and let the descheduler move its pods, each to a place that is "
        "reserved before the pod is evicted, within the limits and disruption budgets that hold "
        "for every migration. Shows first which pod would go where, and which must stay and why. "
        "Pods that terminate already are waited for. "
        "Can be interrupted and run again. Exit code: 0 the node is empty but for pods that belong "
        "to it; 1 some pods stay; 2 bad arguments."
    )
    parser.add_argument("node", help="the node to empty")
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--abort",
        action="store_true",
        help="end the jobs of an earlier drain whose pods are not leaving yet, and uncordon",
    )
    parser.add_argument(
        "--evict-directly",
        action="store_true",
        help="evict without a Reservation: whether the pod finds a place is not waited for",
    )
    parser.add_argument(
        "--gangs",
        action="store_true",
        help="also move gangs with members on other nodes, all members together",
    )
    parser.add_argument("--no-wait", action="store_true", help="create the jobs and end")
    parser.add_argument(
        "--ttl",
        default="15m",
        metavar="TIME",
        help="when a job gives up, and the wait for pods that were leaving already ends "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long reading the cluster may take (default %(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    try:
        return asyncio.run(drained(chosen))
    except KeyboardInterrupt:
        if chosen.dry_run:
            raise
        terminal.warn(
            f"koord drain: the jobs go on. `koord drain {chosen.node}` follows them again, "
            f"`koord drain {chosen.node} --abort` ends those whose pods are not leaving yet."
        )
        return entry.FAILED


async def drained(chosen: argparse.Namespace) -> int:
    """Do what the arguments ask for; return the exit code."""
    try:
        ttl = durations.seconds(chosen.ttl)
    except ValueError as error:
        terminal.warn(f"koord drain: --ttl: {error}")
        return entry.BAD_SETTINGS
    try:
        async with _opened(chosen, clocks.SystemClock()) as drain:
            return await (drain.aborted() if chosen.abort else drain.run(ttl))
    except (DrainError, errors.KubeError, live_cluster.NotReadError) as error:
        terminal.warn(f"koord drain: {error}")
        return entry.FAILED


@contextlib.asynccontextmanager
async def _opened(chosen: argparse.Namespace, clock: clocks.Clock) -> AsyncIterator["Drain"]:
    access = await clusters.connect(chosen)
    async with (
        live_cluster.quiet(),
        clients.Client(access, clock=clock, user_agent="koord-drain") as kube,
        supervise.Supervisor("drain") as supervisor,
    ):
        live = live_cluster.LiveCluster(kube, clock, chosen.koord_namespace)
        yield Drain(chosen, kube, clock, live, supervisor)


class Drain:
    """One node that is being emptied."""

    def __init__(
        self,
        chosen: argparse.Namespace,
        kube: clients.Client,
        clock: clocks.Clock,
        live: live_cluster.LiveCluster,
        supervisor: supervise.Supervisor,
    ) -> None:
        self._chosen, self._kube, self._clock = chosen, kube, clock
        self._live, self._supervisor = live, supervisor
        self._read = reads.Reads(kube)
        self._node: str = chosen.node
        self._unseen: set[str] = set()
        """The names of jobs that no watch has shown yet."""
        self._known: dict[str, objects.Job] = {}
        """The jobs of this drain, and those that moved a pod of the node before it."""
        self._past: set[str] = set()
        """The names of jobs that have ended before."""
        self._departing: set[str] = set()
        """The uids of pods that were leaving already."""
        self._told: set[str] = set()
        """The uids of pods of which was said what holds them."""

    async def run(self, ttl: float) -> int:
        """Show, ask, cordon, create jobs, and follow them to their end."""
        await self._live.started(self._supervisor, self._chosen.timeout)
        plan = await self._plan()
        if answers.is_document(self._chosen.output):
            answers.show(self._chosen.output, drain_progress.document(plan))
        else:
            terminal.lines(drain_progress.lines(plan))
        moves, leaving = plan.of(drain_plan.Fate.MOVES), plan.of(drain_plan.Fate.IS_LEAVING)
        waits = leaving or plan.of(drain_plan.Fate.IS_MOVING)
        if self._chosen.dry_run or not (moves or waits):
            return entry.OK if plan.empties else entry.FAILED
        node = self._live.picture().nodes.get(self._node)
        is_open = node is not None and node.is_schedulable
        if (moves or (leaving and is_open)) and not await self._begun(plan, ttl):
            return entry.FAILED
        if self._chosen.no_wait:
            return entry.OK if plan.empties else entry.FAILED
        is_gone = await self._followed(ttl)
        return entry.OK if is_gone and plan.empties else entry.FAILED

    async def _plan(self) -> drain_plan.Plan:
        seen = self._live.picture()
        if self._node not in seen.nodes:
            near = [name for name in seen.nodes if self._node in name][:5]
            there = f"; there are {', '.join(near)}" if near else ""
            raise DrainError(f"there is no node {self._node} among {len(seen.nodes)}{there}")
        arguments, note = await self._live.arguments()
        if note:
            terminal.warn(f"note: {note}; the defaults of the descheduler hold")
        fork = await self._live.fork()
        options = drain_plan.Options(arguments, gangs=self._chosen.gangs)
        plan = drain_plan.plan(seen, self._node, fork.targets(seen), options)
        self._known = drain_progress.moving(plan, seen.jobs)
        self._past = {job.name for job in seen.jobs.values() if not job.is_open}
        self._departing = {line.pod.uid for line in plan.of(drain_plan.Fate.IS_LEAVING)}
        return plan

    async def _begun(self, plan: drain_plan.Plan, ttl: float) -> bool:
        """Cordon the node and create the jobs, if that is wanted."""
        moves = plan.of(drain_plan.Fate.MOVES)
        if moves:
            await self._check_descheduler()
        what = "move these pods" if moves else "wait until its pods have left"
        if not self._chosen.yes and not await self._is_agreed(what):
            return False
        await self._cordon(is_closed=True)
        terminal.say(f"node {self._node} is cordoned")
        now = self._clock.now()
        for line in moves:
            body = self._job(line, now, ttl)
            name = body["metadata"]["name"]
            self._unseen.add(name)
            with contextlib.suppress(errors.AlreadyExists):
                made = await self._kube.create(resources.POD_MIGRATION_JOBS, body)
                self._known[name] = object_projection.job(made)
        return True

    def _job(self, line: drain_plan.Line, now: float, ttl: float) -> dict[str, Any]:
        mode = (
            migration.EVICT_DIRECTLY if self._chosen.evict_directly else migration.RESERVATION_FIRST
        )
        wanted = jobs.Wanted(
            line.pod,
            drain_plan.PLUGIN,
            f"drain of node {self._node}",
            protocols.Purpose.EMPTY,
            # Jobs of an earlier drain of the same gang may still be there.
            group=f"{line.group}@{now:.0f}" if line.group else "",
            group_size=line.group_size,
        )
        defaults = facts.Defaults(mode, ttl, eviction_policy="")
        body = jobs.body(jobs.name(line.pod, now), wanted, defaults)
        body["metadata"]["labels"] = {names.LABEL_DRAIN: self._node}
        return body

    async def _check_descheduler(self) -> None:
        """Refuse to create jobs that nothing would carry out."""
        namespace = self._chosen.koord_namespace
        remedy = "install it (descheduler.enabled=true of the chart), or look at its pods"
        try:
            lease = await self._kube.get(resources.LEASES, LEASE, namespace)
        except errors.NotFound:
            raise DrainError(f"no descheduler runs in {namespace}: {remedy}") from None
        spec = lease.get("spec") or {}
        try:
            renewed = durations.timestamp(str(spec.get("renewTime") or ""))
        except ValueError:
            renewed = 0.0
        if not spec.get("holderIdentity") or self._clock.now() - renewed > _FRESH_SECONDS:
            raise DrainError(f"no descheduler leads in {namespace}: {remedy}")

    async def _is_agreed(self, what: str) -> bool:
        if not sys.stdin.isatty():
            terminal.say(f"{_NOTHING_DONE}: pass --yes, since there is no terminal to ask at")
            return False
        terminal.ask(f"cordon node {self._node} and {what}? [y/N]")
        agreed = (await asyncio.to_thread(sys.stdin.readline)).strip().lower() in ("y", "yes")
        if not agreed:
            terminal.say(_NOTHING_DONE)
        return agreed

    async def _cordon(self, *, is_closed: bool) -> None:
        body = {"spec": {"unschedulable": True if is_closed else None}}
        await self._kube.patch(resources.NODES, self._node, body)

    async def _followed(self, ttl: float) -> bool:
        """Show how far the drain is until all has ended; return whether every pod has left."""
        said, latest = "", self._clock.monotonic() + _ECHO_SECONDS
        begun = self._clock.now()
        while True:
            seen = self._live.picture()
            jobs_now = {name: job for name, job in seen.jobs.items() if name not in self._past}
            self._unseen -= jobs_now.keys()
            if self._unseen and self._clock.monotonic() < latest:
                # Until then those of an earlier drain would speak for them.
                await self._clock.sleep(_LOOK_SECONDS)
                continue
            self._known = drain_progress.followed(self._known, jobs_now, self._node)
            found = drain_progress.progress(self._known, self._departing, seen.pods)
            line = drain_progress.bar(found)
            if line != said and (found.jobs or found.departures):
                terminal.say(line)
                said = line
            now = self._clock.now()
            if not (found.open or departures.are_awaited(found.leaving, begun, ttl, now)):
                terminal.lines(drain_progress.failures(found))
                await self._tell_held(drain_progress.terminating(found, seen.pods), seen)
                is_any = bool(found.jobs or found.departures)
                return is_any and not found.failed and not found.leaving
            await self._tell_held(departures.overdue(found.leaving, now), seen)
            if self._supervisor.failed.done():
                self._supervisor.failed.result()
            await self._clock.sleep(_LOOK_SECONDS)

    async def _tell_held(self, pods: Sequence[podinfo.Pod], seen: picture.Picture) -> None:
        """Say of pods that terminate for too long what holds them, once of each.

        The drain goes on where that cannot be read, and tries again as long as it does.
        """
        new = [pod for pod in pods if pod.uid not in self._told]
        self._told |= {pod.uid for pod in new}
        for pod in new[:_MOST]:
            try:
                raw = await self._read.raw_pod(pod.namespace, pod.name)
            except errors.KubeError:
                self._told.discard(pod.uid)
                continue
            if raw is not None:
                node = seen.nodes.get(pod.node)
                terminal.say(departures.held(pod, raw, node, self._clock.now()))
        if more := len(new[_MOST:]):
            terminal.say(f"{wording.count(more, 'more is', 'more are')} still terminating")

    async def aborted(self) -> int:
        """End the open jobs of an earlier drain whose pods are not leaving, and uncordon."""
        ended, until = 0, self._clock.monotonic() + _UNDECIDED_SECONDS
        while True:
            found = await self._judged()
            open_jobs = [*found.ends, *found.undecided]
            if not open_jobs:
                break
            is_late = self._clock.monotonic() >= until
            count = sum([await self._ends(job) for job in (open_jobs if is_late else found.ends)])
            ended += count
            if count < len(open_jobs):
                await self._clock.sleep(_LOOK_SECONDS)
        await self._cordon(is_closed=False)
        terminal.lines(drain_abort.lines(found.goes_on))
        terminal.say(
            f"{wording.count(ended, 'job is', 'jobs are')} aborted, node {self._node} is uncordoned"
        )
        return entry.OK

    async def _judged(self) -> drain_abort.Judged:
        selector = f"{names.LABEL_DRAIN}={self._node}"
        listed = await self._kube.list(resources.POD_MIGRATION_JOBS, labels=selector)
        found = [object_projection.job(raw) for raw in listed.items]
        refs = {job.name: job.spec.pod_ref for job in found if drain_abort.needs_pod(job)}
        pods = {name: await self._read.pod(ref.namespace, ref.name) for name, ref in refs.items()}
        return drain_abort.judged(found, pods)

    async def _ends(self, job: objects.Job) -> bool:
        """Abort a job, unless it has changed since it was read."""
        guard = {"uid": job.uid, "resourceVersion": job.version}
        body = {"metadata": guard, "status": {"phase": conditions.ABORTED}}
        try:
            await self._kube.patch(
                resources.POD_MIGRATION_JOBS, job.name, body, subresource="status"
            )
        except (errors.Conflict, errors.NotFound):
            return False
        return True
