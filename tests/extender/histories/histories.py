"""An API server, extender processes and a random history of everything that goes wrong between."""

import asyncio
import itertools
import json

import msgspec

from api import names
from api.koordinator import quota as quotas
from api.kubernetes import core
from api.kubernetes import extender as wire
from domain.quota import model
from extender.framework import pipeline
from extender.overlap import detector
from extender.plugins.elastic_quota import elastic_quota
from extender.settings import BindSettings
from extender.state import cluster_state, deltas, invariants, ledger, records
from extender.verbs import bind
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from tests.extender.clusters import quota_cluster, slots
from tests.extender.histories import faulty_server

NODES = ("n1", "n2")
PODS = ("a", "b", "c", "d", "e")
SLOTS = 2
CODECS = (slots.Slots(),)
QUOTA = 3
"""Slots that all pods may hold together, one less than there are."""


def _quota():
    """A quota of the namespace of all pods."""
    most = {slots.RESOURCE: str(QUOTA)}
    raw = quota_cluster.written("default", namespace="default", least=most, most=most)
    found = quotas.read_elastic_quota(raw)
    return deltas.ObjectDelta(deltas.ELASTIC_QUOTA, found.identity, None, found)


class Slots:
    """What pods are given in these histories: slots of two nodes, under one quota."""

    pods = PODS
    codecs = CODECS

    def projector(self):
        return records.Projector(codecs=CODECS)

    def plugins(self):
        return (elastic_quota.ElasticQuota(model.Rules()), *CODECS)

    def line(self, plugins):
        return pipeline.Pipeline(
            pre_filters=plugins, filters=plugins, reservers=CODECS, codecs=CODECS
        )

    def begin(self, books):
        """Tell a process of everything but pods."""
        books.cluster.apply(_quota())
        figures = (("cpu", 64000), (slots.RESOURCE, SLOTS))
        for name in NODES:
            books.node(None, records.NodeRecord(name, figures, figures, uid=name))

    def body(self, chance):
        """The metadata and the container of a new pod."""
        del chance
        return {}, {"name": "main", "resources": {"requests": {slots.RESOURCE: "1"}}}

    def steps(self, history):
        """More that may happen, and how often."""
        return {history.keep: 2}

    def check(self, history):
        bound = sum(bool(pod["spec"]["nodeName"]) for pod in history.server.pods.values())
        assert history.shared or bound <= QUOTA, "more than the quota was bound"

    def settled(self, history):
        """Check what holds once everything has arrived."""


class Process:
    """One life of an extender, fed by a watch that lags behind."""

    numbers = itertools.count(1)

    def __init__(self, server, clock, kit):
        self.server, self.clock, self.kit = server, clock, kit
        self.number = next(self.numbers)
        self.events, self.last = [], None
        self.projector = kit.projector()
        self.store = store.Store()
        plugins = kit.plugins()
        self.ledger = ledger.Ledger(cluster_state.ClusterState(plugins, ("cpu",)))
        self.ledger.unscheduled.wanted = frozenset({deltas.UNSCHEDULED_POD})
        kit.begin(self.ledger)
        self.store.listen(lambda change: self.ledger.pod(change.old, change.new, clock.now()))
        server.watchers.append(self.events)
        self.relist()
        self.line = kit.line(plugins)
        client, live = faulty_server.Line(server, self.number), switches.Switches("extender")
        parts = bind.Parts(self.ledger, self.line, client, self.store, self.projector, clock, live)
        self.binder = bind.Binder(parts, BindSettings())

    def _record(self, pod):
        return self.projector.pod(msgspec.convert(pod, core.Pod))

    def tell(self, event):
        """Take in one event of the watch."""
        key, pod, version = event
        if pod is None:
            self.store.remove(key, version)
        else:
            meta = store.Meta(key, pod["metadata"]["uid"], version)
            self.store.put(meta, self._record(pod))
        self.last = event

    def hear(self, count):
        for _ in range(min(count, len(self.events))):
            self.tell(self.events.pop(0))

    def catch_up(self):
        self.hear(len(self.events))

    def repeat(self):
        if self.last is not None:
            self.tell(self.last)

    def relist(self):
        """Lose what was on its way and list everything."""
        self.events.clear()
        for key, pod in self.server.pods.items():
            metadata = pod["metadata"]
            meta = store.Meta(key, metadata["uid"], int(metadata["resourceVersion"]))
            self.store.accept(meta, self._record(pod))
        self.store.finish(self.server.pods, self.server.version)

    def end(self):
        # By identity: two empty queues are equal.
        watchers = self.server.watchers
        watchers[:] = [events for events in watchers if events is not self.events]

    def problems(self):
        """What does not hold of this process, granted by others or not."""
        found = invariants.check(self.ledger, self.store.values())
        for text in invariants.overlapping(self.ledger.cluster, self.kit.codecs):
            uids = text.partition(" allocated to ")[2].split(" and to ")
            if not self.foreign(uids) and not self.ended(uids):
                found.append(text)
        return found

    def ended(self, idents):
        """Whether one of these pods is gone, and only the watch has not told it yet."""
        there = {pod["metadata"]["uid"] for pod in self.server.pods.values()}
        return any(ident.removeprefix("nominated/") not in there for ident in idents)

    def foreign(self, idents):
        """Whether one of these claims was granted by another process than this one."""
        placed = (self.server.granted_by.get(ident, self.number) for ident in idents)
        return any(by != self.number for by in placed)


class History:
    """Random steps; `shared` lets processes end, take over and work side by side."""

    def __init__(self, chance, *, shared, kit=None):
        self.chance, self.shared, self.kit = chance, shared, kit or Slots()
        self.clock = clocks.ManualClock()
        self.server = faulty_server.Server(chance)
        self.incarnations = itertools.count(1)
        self.processes = [self.fresh()]
        self.steps = {
            self.create: 10,
            self.delete: 3,
            self.replace: 1,
            self.bind: 16,
            self.bind_two: 4,
            self.hear: 14,
            self.server.deliver: 8,
            self.sweep: 5,
            self.repeat: 2,
            self.relist: 1,
            self.nominate: 2,
            self.pass_time: 3,
            self.undo: 1,
            **self.kit.steps(self),
        }
        if shared:
            self.steps |= {self.restart: 1, self.join: 1}

    async def run(self, steps):
        kinds, weights = list(self.steps), list(self.steps.values())
        for number in range(steps):
            kind = self.chance.choices(kinds, weights)[0]
            done = kind()
            if asyncio.iscoroutine(done):
                await done
            self.check(f"step {number}: {kind.__name__}")

    # -- steps -----------------------------------------------------------------------------

    def fresh(self):
        return Process(self.server, self.clock, self.kit)

    def any(self):
        return self.chance.choice(self.processes)

    def key(self):
        return f"default/{self.chance.choice(self.kit.pods)}"

    def create(self):
        key = self.key()
        if key not in self.server.pods:
            uid = f"{key}-{next(self.incarnations)}"
            more, container = self.kit.body(self.chance)
            metadata = {"name": key.partition("/")[2], "namespace": "default", "uid": uid, **more}
            spec = {"nodeName": "", "containers": [container]}
            self.server.put(key, {"metadata": metadata, "spec": spec, "status": {}})

    def delete(self):
        key = self.key()
        if key in self.server.pods:
            self.server.delete(key)

    def replace(self):
        """Delete and create again by the same name."""
        self.delete()
        self.create()

    async def bind(self, process=None, key=""):
        process, key = process or self.any(), key or self.key()
        known = process.store.get(key)
        if known is not None and not known.node:
            asked = wire.BindingArgs(known.name, "default", known.uid, self.chance.choice(NODES))
            await process.binder.bind(asked)

    async def bind_two(self):
        process, keys = self.any(), self.chance.sample(self.kit.pods, 2)
        await asyncio.gather(*(self.bind(process, f"default/{key}") for key in keys))

    def hear(self):
        self.any().hear(self.chance.randint(1, 4))

    def repeat(self):
        self.any().repeat()

    def relist(self):
        self.any().relist()

    async def sweep(self):
        await self.any().binder.outcomes.sweep_once()

    async def pass_time(self):
        await self.clock.advance(self.chance.choice([1.0, 31.0]))

    def nominate(self):
        """The scheduler expects a waiting pod on a node, or no longer."""
        key = self.key()
        pod = self.server.pods.get(key)
        if pod is not None and not pod["spec"]["nodeName"]:
            pod = json.loads(json.dumps(pod))
            pod["status"]["nominatedNodeName"] = self.chance.choice(("", *NODES))
            self.server.put(key, pod)

    def keep(self):
        """A process keeps a slot for a waiting pod for a while."""
        process = self.any()
        pod = process.store.get(self.key())
        if pod is None or pod.node or pod.uid in process.ledger.assumptions:
            return
        view = process.ledger.cluster.view()
        row = view.rows[self.chance.choice(NODES)]
        slot = slots.lowest_free(view, row)
        if slot is not None:
            process.ledger.nominate(
                pod,
                view.names[row],
                evidence="kept",
                expires_at=self.clock.now() + 20.0,
                granted={slots.NAME: slot},
            )

    def undo(self):
        """What a fork does and undoes leaves no trace, neither in it nor where it came from."""
        cluster = self.any().ledger.cluster
        before, other = cluster.fingerprint(), cluster.fork()
        done = []
        for ident, claim in self.chance.sample(
            sorted(other.all_claims().items()), k=min(2, len(other.all_claims()))
        ):
            done.append(deltas.ClaimDelta(ident, claim, None))
            other.apply(done[-1])
        assert cluster.fingerprint() == before
        other.undo(done)
        assert other.fingerprint() == before

    def restart(self):
        """A process is killed and its successor begins with a list."""
        place = self.chance.randrange(len(self.processes))
        self.processes[place].end()
        self.processes[place] = self.fresh()

    def join(self):
        """A second process begins to work beside the first, or ends."""
        if len(self.processes) == 1:
            self.processes.append(self.fresh())
        else:
            self.processes.pop().end()

    # -- what has to hold ------------------------------------------------------------------

    def check(self, step):
        for process in self.processes:
            assert process.problems() == [], step
        self.kit.check(self)
        for overlap in self.overlaps():
            holding = (*overlap.others, overlap.kept, overlap.later)
            by = {self.server.granted_by[one.id] for one in holding}
            assert self.shared, step
            assert len(by) == 2, f"{step}: one process granted the same thing twice: {overlap}"

    def overlaps(self):
        """What the API server's objects say that two pods hold."""
        reader, codecs = self.kit.projector(), self.kit.codecs
        fresh = ledger.Ledger(cluster_state.ClusterState((), ("cpu",)))
        for pod in self.server.pods.values():
            fresh.pod(None, reader.pod(msgspec.convert(pod, core.Pod)), 0.0)
        return [
            found
            for node in NODES
            for found in detector.overlaps(fresh.cluster.claims_on(node), codecs)
        ]

    async def settle(self):
        """Let everything arrive; evict what has to leave; then all processes agree."""
        while self.server.late:
            self.server.deliver()
        self.server.fault = lambda **_: ""
        for process in self.processes:
            process.catch_up()
            await process.binder.outcomes.sweep_once()
        for overlap in self.overlaps():
            self.server.delete(overlap.later.pod.key)
        assert self.overlaps() == []
        await self.clock.advance(60.0)
        for process in self.processes:
            process.catch_up()
            await process.binder.outcomes.sweep_once()
            process.catch_up()
            assert not process.ledger.assumptions
            known = process.store.values()
            assert invariants.check(process.ledger, known, self.kit.codecs) == []
            assert self._placed(process) == {
                pod["metadata"]["uid"]: pod["spec"]["nodeName"]
                for pod in self.server.pods.values()
                if pod["spec"]["nodeName"]
            }
        self.kit.settled(self)

    @staticmethod
    def _placed(process):
        return {uid: pod.node for uid, pod in process.ledger.cluster.placements().items()}


def written(server):
    """Every bound pod says what it was allocated, and nobody else does."""
    return all(
        bool(pod["spec"]["nodeName"])
        is (slots.ANNOTATION in pod["metadata"].get("annotations", {}))
        and (not pod["spec"]["nodeName"] or names.PLACEMENT in pod["metadata"]["annotations"])
        for pod in server.pods.values()
    )
