"""One life of an extender that places gangs, its scheduler, and their time, without any socket."""

import asyncio
import itertools

import msgspec
import numpy as np

from api import names
from api.kubernetes import core
from api.kubernetes import extender as wire
from domain.gangs import declaration, pod_groups
from extender import registry, settings
from extender.framework import pipeline, views
from extender.gangs import controller, in_force, queue, renominations, writes
from extender.gangs.telling import conditions, notices
from extender.informers import pod_groups as watching
from extender.plugins.coscheduling import coscheduling
from extender.requeue import unschedulable_pods
from extender.state import cluster_state, deltas, invariants, ledger, records
from extender.verbs import bind
from kube.informers import store
from process.configuration import switches
from process.runtime import metrics
from tests.extender.clusters import slots
from tests.extender.gangs.stage import gang_server

CODECS = (slots.Slots(),)
KINDS = ("nodes", "pod_groups", "pods")
DEADLINE = 25.0


class _Events:
    """Takes events and keeps none."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class Life:
    """An extender from its start until it is killed; its watches lag behind."""

    numbers = itertools.count(1)

    def __init__(self, server, clock, loop):
        self.server, self.clock, self.loop = server, clock, loop
        self.number, self.ids = next(self.numbers), itertools.count(1)
        self.tasks, self.failed = set(), []
        self.raw = {}
        """Pods and PodGroups as the watches have shown them, by namespace/name."""
        self.events = {kind: [] for kind in KINDS}
        self.plugin = coscheduling.Coscheduling(declaration.Defaults())
        plugins = (self.plugin, *CODECS)
        self.line = pipeline.Pipeline(
            pre_filters=plugins, filters=plugins, permits=(self.plugin,),
            reservers=plugins, codecs=CODECS,
        )  # fmt: skip
        self.projector = records.Projector(None, CODECS, registry.inputs((self.plugin,)))
        self.books = ledger.Ledger(cluster_state.ClusterState(plugins, ("cpu",)))
        self.books.unscheduled.wanted = frozenset({deltas.UNSCHEDULED_MEMBER})
        self.pods, self.groups = store.Store(), (store.Store(), store.Store())
        self.waits = unschedulable_pods.UnschedulablePods()
        watching.connect(self.groups, self.books)
        self.pods.listen(lambda one: self.books.pod(one.old, one.new, clock.now()))
        self.client = gang_server.Line(server, self.number, self.about_to_bind)
        self.live = switches.Switches("extender")
        self.binder = bind.Binder(
            bind.Parts(
                self.books, self.line, self.client, self.pods, self.projector, clock, self.live
            ),
            settings.BindSettings(),
            new_id=lambda: f"{self.number}-{next(self.ids)}",
        )
        self._list()
        self.gangs = self._controller(settings.GangSettings())
        server.watchers.append(self.events)
        self.spawn("gangs", self.gangs.run())
        self.spawn("sweep", self.binder.outcomes.sweep())

    def _controller(self, chosen):
        written = writes.Writes(self.client, self.clock)
        said = conditions.Telling(written, self.pods, self.clock, per_second=50.0, burst=1000)
        self.spawn("conditions", said.run())
        made = controller.GangController(
            in_force.Parts(
                books=self.books,
                plugins=self.line,
                pods=self.pods,
                clock=self.clock,
                writes=written,
                telling=said,
                notices=notices.Notices(metrics.Registry(), _Events()),
                queue=queue.Queue(chosen.back_off_seconds, chosen.look_again_seconds),
                new_id=lambda: f"g{self.number}-{next(self.ids)}",
                doubt=self._doubt,
                enforces=lambda: True,
                wake=self.binder.waiting.wake,
                sampling=renominations.Sampling(lambda: self.server.looks_at, self.waits.get),
                spawn=self.spawn,
            ),
            chosen,
        )
        self.books.cluster.followers.append(made.follow)
        return made

    async def _doubt(self):
        return "the watch is behind" if self.events["pods"] else ""

    # -- tasks -------------------------------------------------------------------------------

    def spawn(self, name, work):
        del name
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task):
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failed.append(task.exception())

    async def kill(self):
        """End at once: what is on its way to the API server may still arrive."""
        self.client.alive = False
        watchers = self.server.watchers
        watchers[:] = [events for events in watchers if events is not self.events]
        while self.tasks:
            for task in self.tasks:
                task.cancel()
            await asyncio.wait(self.tasks)
            await asyncio.sleep(0)

    # -- watches -----------------------------------------------------------------------------

    def _list(self):
        for kind in KINDS:
            for key, raw in getattr(self.server, kind).items():
                self._take(kind, key, raw, int(raw["metadata"]["resourceVersion"]))
        for one in (self.pods, *self.groups):
            one.finished(self.server.version)

    def hear(self, kind, count=1 << 30):
        heard, self.events[kind][:] = self.events[kind][:count], self.events[kind][count:]
        for key, raw, version in heard:
            self._take(kind, key, raw, version)

    def catch_up(self):
        for kind in KINDS:
            self.hear(kind)

    def _take(self, kind, key, raw, version):
        if raw is None:
            self.raw.pop((kind, key), None)
        else:
            self.raw[kind, key] = raw
        if kind == "nodes":
            record = raw and self.projector.node(msgspec.convert(raw, core.Node))
            self.books.node(self.books.cluster.node(key), record)
            return
        stores = (self.pods,) if kind == "pods" else self.groups
        if raw is None:
            for one in stores:
                if one.get(key) is not None:
                    one.remove(key, version)
            return
        meta = store.Meta(key, raw["metadata"]["uid"], version)
        if kind == "pods":
            self.pods.put(meta, self.record(raw))
        elif raw["kind"] == "native":
            self.groups[1].put(meta, pod_groups.read_native(raw))
        else:
            self.groups[0].put(meta, pod_groups.read(raw))

    def record(self, raw):
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    # -- calls -------------------------------------------------------------------------------

    def passing(self, raw, nodes):
        """Return the nodes that filter leaves, and why there is none."""
        self.gangs.offered(raw["metadata"]["uid"], nodes, False)
        view = self.books.cluster.view()
        rows = np.array([view.rows[one] for one in nodes if one in view.rows], dtype=np.intp)
        asked = self.line.cycle(views.PodInfo.of(self.record(raw)), view)
        outcome = self.line.filter(asked, view, rows, self.clock.now())
        left = [view.names[row] for row in rows[outcome.codes == 0].tolist()]
        if not left:
            self.waits.refused(
                asked.pod, unschedulable_pods.attempt_on(view, rows), self.clock.now()
            )
            self.waits.nominated(asked.pod.key, raw["status"].get("nominatedNodeName", ""))
        return left, "; ".join(sorted(one.status.text for one in outcome.refusals))

    async def bind(self, raw, node, connected):
        meta = raw["metadata"]
        asked = wire.BindingArgs(meta["name"], meta["namespace"], meta["uid"], node)
        return await self.binder.bind(asked, connected)

    # -- what has to hold ----------------------------------------------------------------------

    def about_to_bind(self, key, uid):
        """A Binding leaves only while every gang of the group has its minimum, as far as known."""
        value = self.books.cluster.view().cluster[coscheduling.NAME]
        gang = next(one for one in value.table.entries.values() if one.member(uid)).gang
        group = value.table.group(declaration.listed(gang))
        once = declaration.MatchPolicy.ONCE_SATISFIED
        for ident in group.id.split(","):
            entry = value.table.get(ident)
            assert entry is not None, f"{key} is bound and gang {ident} is not known"
            # One that does not list the others starts without them, and may run long since.
            began = entry.ever_bound if ident in group.elsewhere else group.ever_bound
            if began and entry.gang.match_policy is once:
                continue
            # The watch may not have shown yet the pod that kube-scheduler binds.
            held = sum(
                member.uid == uid or self._holds(member.uid, member.key) for member in entry.members
            )
            assert held >= entry.gang.min_member, f"{key} is bound with {held} of {ident}"

    def _holds(self, uid, key):
        raw = self.raw.get(("pods", key))
        if raw is None or raw["metadata"]["uid"] != uid:
            return False
        return bool(raw["spec"].get("nodeName")) or uid in self.books.assumptions

    def problems(self):
        found = invariants.check(self.books, self.pods.values())
        # What an earlier life has written late may overlap with what this one has kept.
        by = self.server.granted_by
        for text in invariants.overlapping(self.books.cluster, CODECS):
            uids = text.partition(" allocated to ")[2].split(" and to ")
            if all(by.get(uid, self.number) == self.number for uid in uids):
                found.append(text)
        return found + [repr(one) for one in self.failed] + self._homeless()

    def _homeless(self):
        """Name claims without a plan, once the plans of an earlier life were looked at."""
        alive = {uid for one in self.gangs.plans.by_group.values() for uid in one.slots}
        due = self.gangs._interruptions.recovered
        kept = [one for one in self.books.nominations.values() if due and one.evidence == "gang"]
        return [f"{one.pod.key} keeps {one.node}" for one in kept if one.usable_by not in alive]


class Scheduler:
    """Tries pods that have neither gate nor node, and binds where filter leaves a node."""

    def __init__(self, server, clock):
        self.server, self.clock = server, clock
        self.flights = {}
        """By pod: the node on which it is being bound, and whether the caller is still there."""
        self.tried = {}
        """By uid: the version of the cluster and the time at the last attempt."""
        self.samples = False
        """Whether it looks at nodes of which the kept one is none, where a pod is not nominated."""

    def due(self):
        for key, raw in sorted(self.server.pods.items()):
            if raw["spec"].get("nodeName") or gang_server.gated(raw) or key in self.flights:
                continue
            version, at = self.tried.get(raw["metadata"]["uid"], (-1, -1.0))
            if version != self.server.version and self.clock.monotonic() >= at:
                yield key

    def attempt(self, life, key):
        """Try one pod."""
        raw = self.server.pods[key]
        free = self.server.free({one: flight[0] for one, flight in self.flights.items()})
        need = gang_server.cpu(raw)
        fitting = sorted(one for one, left in free.items() if left is not None and left >= need)
        passing, why = [], "Insufficient cpu"
        for some in self.samples_of(life, raw, fitting):
            if some and not passing:
                passing, why = life.passing(raw, some)
        if not passing:
            self._unschedulable(key, f"0/{len(free)} nodes are available: {why}")
            return
        self.flights[key] = flight = [passing[0], True]
        life.spawn(key, self._bind(life, key, raw, flight))

    def samples_of(self, life, raw, fitting):
        """The nominated node, then others."""
        nominated = raw["status"].get("nominatedNodeName")
        if nominated in fitting:
            yield [nominated]
        kept = life.gangs.plans.holding.kept(raw["metadata"]["uid"]) if self.samples else ""
        yield [one for one in fitting if one != kept] or fitting

    async def _bind(self, life, key, raw, flight):
        uid = raw["metadata"]["uid"]
        until = self.clock.monotonic() + DEADLINE + 5.0
        try:
            why = await life.bind(
                raw, flight[0], lambda: flight[1] and self.clock.monotonic() < until
            )
            if why:
                self.tried[uid] = -1, self.clock.monotonic() + 1.0
                self._says(key, uid, "SchedulerError", why)
        finally:
            if self.flights.get(key) is flight:
                del self.flights[key]

    def _unschedulable(self, key, message):
        """Write that no node was found; only a change of the cluster lets it try again."""
        uid = self.server.pods[key]["metadata"]["uid"]
        self._says(key, uid, "Unschedulable", message)
        self.tried[uid] = self.server.version, self.clock.monotonic() + 1.0

    def _says(self, key, uid, reason, message):
        """Write why a pod has no node, and take its nomination off."""
        found = self.server.pods.get(key)
        if found is None or found["metadata"]["uid"] != uid or found["spec"].get("nodeName"):
            return
        pod = self.server.changed(key)
        kept = [one for one in pod["status"].get("conditions", []) if one["type"] != "PodScheduled"]
        said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        pod["status"]["conditions"] = [*kept, said]
        pod["status"].pop("nominatedNodeName", None)
        if pod["status"] != found["status"]:
            self.server.put(key, pod)

    def crash(self):
        """Leave all calls alone, and begin anew."""
        for flight in self.flights.values():
            flight[1] = False
        self.flights.clear()
        self.tried.clear()


def gate():
    return [{"name": names.GATE_GANG}]
