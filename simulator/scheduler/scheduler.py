"""A stand-in for the stock scheduler: the same order of calls, in one process with the store."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable

from api import resources
from api.kubernetes import scheduler_config
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.apiserver.storage import object_store
from simulator.scheduler import (
    diagnosis,
    event_handlers,
    extender_client,
    intree,
    other_pods,
    placements,
    preemption,
    scheduling_queue,
    snapshot,
)


class Scheduler:
    """Takes one pod after the other; binding goes on beside the next pod."""

    def __init__(
        self,
        store: object_store.Objects,
        options: scheduler_config.Options,
        clock: clocks.Clock,
        supervisor: supervise.Supervisor,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._supervisor = supervisor
        self._writer = placements.Writer(store, clock)
        self._view = snapshot.Snapshot()
        self._queue = scheduling_queue.Queue(max_backoff=float(options.max_backoff_seconds))
        self._intake = event_handlers.Intake(
            options.scheduler_names, self._view, self._queue, clock
        )
        self._start = 0
        self._nap = clocks.Nap(clock)
        self._extender = _extender(options)

    @property
    def queue(self) -> scheduling_queue.Queue:
        """Who waits where."""
        return self._queue

    @property
    def view(self) -> snapshot.Snapshot:
        """What the scheduler believes."""
        return self._view

    async def run(self) -> None:
        """Schedule until cancelled."""
        stop = self._store.subscribe(self._on_event)
        try:
            self._intake.start(self._store)
            while True:
                key = self._queue.pop(self._clock.monotonic())
                if key is None:
                    await self._nap.rest(self._queue.due_in(self._clock.monotonic()))
                else:
                    await self._attempt(key)
        finally:
            stop()
            if self._extender is not None:
                await self._extender.close()

    def _on_event(self, event: object_store.Event) -> None:
        self._intake.on_event(event)
        self._nap.wake()

    # One attempt

    async def _attempt(self, key: str) -> None:
        pod = self._intake.waiting[key]
        try:
            outcome = await self._choose(pod)
        except diagnosis.AttemptError as error:
            self._fail(pod, error)
            return
        if self._intake.is_current(pod):
            if isinstance(outcome, diagnosis.Placed):
                self._view.assume(pod, outcome.node)
                self._supervisor.spawn(f"bind {key}", self._bind(pod, outcome.node))
            else:
                await self._refuse(pod, outcome)

    async def _choose(self, pod: intree.PodInfo) -> diagnosis.Placed | diagnosis.Refused:
        nodes = self._view.nodes
        if pod.nominated in nodes:
            node = nodes[pod.nominated]
            if self._refusal(pod, node) is None and (await self._asked(pod, [node.name]))[0]:
                return diagnosis.Placed(node.name)
        listed = list(nodes.values())
        feasible, refusals = self._sampled(pod, listed)
        if feasible:
            left, refused = await self._asked(pod, [node.name for node in feasible])
            refusals |= refused
            feasible = [node for node in feasible if node.name in set(left)]
        if not feasible:
            return diagnosis.Refused(refusals, len(listed))
        if len(feasible) == 1:
            return diagnosis.Placed(feasible[0].name)
        return diagnosis.Placed(await self._highest(pod, feasible))

    def _sampled(
        self, pod: intree.PodInfo, nodes: list[intree.NodeInfo]
    ) -> tuple[list[intree.NodeInfo], dict[str, intree.Refusal]]:
        """Look at nodes from a rotating start until enough fit."""
        wanted = intree.sample_size(len(nodes), self._options.percentage_of_nodes_to_score)
        feasible: list[intree.NodeInfo] = []
        refusals: dict[str, intree.Refusal] = {}
        start = self._start % len(nodes) if nodes else 0
        for node in nodes[start:] + nodes[:start]:
            if len(feasible) == wanted:
                break
            refusal = self._refusal(pod, node)
            if refusal is None:
                feasible.append(node)
            else:
                refusals[node.name] = refusal
        self._start = start + len(feasible) + len(refusals)
        return feasible, refusals

    def _refusal(self, pod: intree.PodInfo, node: intree.NodeInfo) -> intree.Refusal | None:
        alone = intree.check(pod, node, self._view.nominated(node.name, pod.priority))
        return alone or other_pods.check(pod, node, self._view)

    async def _asked(
        self, pod: intree.PodInfo, names: list[str]
    ) -> tuple[list[str], dict[str, intree.Refusal]]:
        if self._extender is None:
            return names, {}
        return await self._extender.filter(pod, names)

    async def _highest(self, pod: intree.PodInfo, nodes: Iterable[intree.NodeInfo]) -> str:
        # The first of equals wins, so that the same input gives the same answer.
        points = {node.name: intree.score(pod, node) * scheduler_config.SCALE for node in nodes}
        if self._extender is not None:
            for name, extra in (await self._extender.prioritize(pod, list(points))).items():
                if name in points:
                    points[name] += extra
        return max(points, key=points.__getitem__)

    # How it ended

    async def _bind(self, pod: intree.PodInfo, node: str) -> None:
        try:
            if self._extender is None:
                self._writer.bind(pod, node)
            else:
                await self._extender.bind(pod, node)
        except diagnosis.AttemptError as error:
            self._unbind(pod, error)
        else:
            self._queue.done(pod.key)
            self._writer.placed(pod, node)

    def _unbind(self, pod: intree.PodInfo, error: diagnosis.AttemptError) -> None:
        if not self._intake.is_current(pod):
            # Bound although the answer was lost, or gone: there is nothing to try again.
            return
        if self._view.forget(pod.uid):
            now = self._clock.monotonic()
            self._queue.happened(scheduling_queue.Happening.POD_GONE, now)
        self._fail(pod, error)

    def _fail(self, pod: intree.PodInfo, error: diagnosis.AttemptError) -> None:
        if self._intake.is_current(pod):
            self._queue.retry(pod.key, self._clock.monotonic())
            self._view.nominate(pod, "")
            self._writer.refuse(pod, placements.ERROR, str(error))
            self._nap.wake()

    async def _refuse(self, pod: intree.PodInfo, refused: diagnosis.Refused) -> None:
        try:
            node, remark = await self._preempt(pod, refused)
        except diagnosis.AttemptError as error:
            node, remark = None, str(error)
        if not self._intake.is_current(pod):
            return
        if node is not None:
            self._view.nominate(pod, node)
        message = diagnosis.sentence(refused, remark)
        self._queue.park(pod.key, refused.plugins, self._clock.monotonic())
        self._writer.refuse(pod, placements.UNSCHEDULABLE, message, node)
        self._nap.wake()

    async def _preempt(
        self, pod: intree.PodInfo, refused: diagnosis.Refused
    ) -> tuple[str | None, str]:
        """Evict less important pods; returns the node to nominate or what to say instead.

        The node is empty where a nomination ends, and None where it stays as it is.
        """
        nodes = self._view.nodes
        final = pod.nominated in refused.refusals and not refused.refusals[pod.nominated].resolvable
        obstacle = preemption.obstacle(pod, None if final else nodes.get(pod.nominated))
        if obstacle:
            return None, obstacle
        tried = [
            nodes[name]
            for name, refusal in refused.refusals.items()
            if refusal.resolvable and name in nodes
        ]
        offered = preemption.candidates(
            pod, tried, self._budgets(), lambda name: self._view.nominated(name, pod.priority)
        )
        if not offered:
            return "", diagnosis.no_victims(refused)
        if self._extender is not None:
            offered = await self._extender.preempt(pod, offered, nodes)
        chosen = preemption.best(offered)
        if chosen is None:
            return None, diagnosis.NO_CANDIDATE
        self._evict(
            pod, chosen, [one for one in offered[chosen].pods if not preemption.leaving(one)]
        )
        return chosen, ""

    def _evict(self, pod: intree.PodInfo, node: str, victims: list[intree.PodInfo]) -> None:
        """Evict who does not leave yet; room on that node is promised to nobody less important."""
        if victims:
            for other in self._view.overtaken(node, pod.priority):
                self._view.nominate(other, "")
                self._writer.end_nomination(other)
        for victim in victims:
            self._writer.evict(victim, pod, node)

    def _budgets(self) -> list[preemption.Budget]:
        listed = self._store.list(resources.POD_DISRUPTION_BUDGETS).items
        return [preemption.read_budget(raw) for raw in listed]


def _extender(options: scheduler_config.Options) -> extender_client.Extender | None:
    if not options.extender_url:
        return None
    return extender_client.Extender(
        options.extender_url,
        decide_seconds=options.filter_timeout_seconds,
        bind_seconds=options.bind_timeout_seconds,
        context=_context(options.tls),
    )


def _context(tls: scheduler_config.ClientTls | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    return context


@contextlib.asynccontextmanager
async def running(
    store: object_store.Objects, options: scheduler_config.Options, clock: clocks.Clock
) -> AsyncIterator[Scheduler]:
    """Run a scheduler of its own until the block is left."""
    async with supervise.Supervisor("scheduler") as supervisor:
        scheduler = Scheduler(store, options, clock, supervisor)
        supervisor.start("scheduling", scheduler.run)
        yield scheduler
