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
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock as clocks
from tests.extender import quota_cluster, slots

NODES = ("n1", "n2")
PODS = ("a", "b", "c", "d", "e")
SLOTS = 2
CODECS = (slots.Slots(),)
QUOTA = 3
"""Slots that all pods may hold together, one less than there are."""
LOST = errors.Unreachable("no answer")


class Server:
    """Pods with versions, and faults by chance; Bindings may be carried out later."""

    def __init__(self, chance):
        self.chance = chance
        self.version = 100
        self.pods = {}
        self.late = []
        self.watchers = []
        self.granted_by = {}
        """Uid of a bound pod to the process whose Binding it was."""

    def fault(self, **shares):
        """Draw a fault; what is left of 1 is none."""
        drawn = self.chance.random()
        for name, share in shares.items():
            drawn -= share
            if drawn < 0:
                return name
        return ""

    def put(self, key, pod):
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.pods[key] = json.loads(json.dumps(pod))
        self._tell(key, self.pods[key])

    def delete(self, key):
        self.version += 1
        del self.pods[key]
        self._tell(key, None)

    def _tell(self, key, pod):
        for watcher in self.watchers:
            watcher.append((key, pod, self.version))

    def changed(self, key, **metadata):
        pod = json.loads(json.dumps(self.pods[key]))
        pod["metadata"].setdefault("annotations", {}).update(metadata)
        return pod

    def commit(self, process, key, uid, version, node, annotations):
        pod = self.pods.get(key)
        if pod is None:
            raise errors.NotFound(404)
        metadata = pod["metadata"]
        if metadata["uid"] != uid or pod["spec"]["nodeName"]:
            raise errors.Conflict(409)
        if version != metadata["resourceVersion"]:
            raise errors.Conflict(409, message="version")
        bound = self.changed(key, **annotations)
        bound["spec"]["nodeName"] = node
        self.granted_by[uid] = process
        self.put(key, bound)

    def deliver(self):
        """Carry out one Binding that its sender has given up."""
        if self.late:
            late = self.late.pop(self.chance.randrange(len(self.late)))
            try:
                self.commit(*late)
            except errors.KubeError:
                return


class Line:
    """The client of one process: what it sends may be lost, refused, late or not answered."""

    def __init__(self, server, process):
        self._server, self._process = server, process

    async def get(self, resource, name, namespace=""):
        del resource
        await asyncio.sleep(0)
        if self._server.fault(lost=0.1):
            raise LOST
        return self._found(namespace, name)

    def _found(self, namespace, name):
        pod = self._server.pods.get(f"{namespace}/{name}")
        if pod is None:
            raise errors.NotFound(404)
        return pod

    async def patch(self, resource, name, body, *, namespace):
        del resource
        await asyncio.sleep(0)
        fault = self._server.fault(lost=0.15, unanswered=0.15)
        if fault == "lost":
            raise LOST
        pod = self._found(namespace, name)
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            raise errors.Conflict(409)
        key = f"{namespace}/{name}"
        self._server.put(key, self._server.changed(key, **body["metadata"]["annotations"]))
        if fault == "unanswered":
            raise LOST
        return self._server.pods[key]

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        await asyncio.sleep(0)
        guard.check()
        fault = self._server.fault(
            refused=0.05, unsent=0.05, lost=0.08, late=0.2, unanswered=0.1, broken=0.05
        )
        binding = (self._process, f"{namespace}/{name}", uid, version, node, annotations)
        if fault == "refused":
            raise errors.Forbidden(403)
        if fault == "unsent":
            raise errors.NotSent("no connection")
        if fault == "broken":
            raise errors.ServerFailure(500)
        if fault == "late":
            self._server.late.append(binding)
        if fault in ("late", "lost"):
            raise LOST
        self._server.commit(*binding)
        if fault == "unanswered":
            raise LOST


def _quota():
    """A quota of the namespace of all pods."""
    most = {slots.RESOURCE: str(QUOTA)}
    raw = quota_cluster.written("default", namespace="default", least=most, most=most)
    found = quotas.read_elastic_quota(raw)
    return deltas.ObjectDelta(deltas.ELASTIC_QUOTA, found.identity, None, found)


class Process:
    """One life of an extender, fed by a watch that lags behind."""

    numbers = itertools.count(1)

    def __init__(self, server, clock):
        self.server, self.clock, self.number = server, clock, next(self.numbers)
        self.events, self.last = [], None
        self.projector = records.Projector(codecs=CODECS)
        self.store = store.Store()
        quota = elastic_quota.ElasticQuota(model.Rules())
        plugins = (quota, *CODECS)
        self.ledger = ledger.Ledger(cluster_state.ClusterState(plugins, ("cpu",)))
        self.ledger.unscheduled.wanted = True
        self.ledger.cluster.apply(_quota())
        figures = (("cpu", 64000), (slots.RESOURCE, SLOTS))
        for name in NODES:
            self.ledger.node(None, records.NodeRecord(name, figures, figures, uid=name))
        self.store.listen(lambda change: self.ledger.pod(change.old, change.new, clock.now()))
        server.watchers.append(self.events)
        self.relist()
        line = pipeline.Pipeline(
            pre_filters=plugins, filters=plugins, reservers=CODECS, codecs=CODECS
        )
        client, live = Line(server, self.number), switches.Switches("extender")
        parts = bind.Parts(self.ledger, line, client, self.store, self.projector, clock, live)
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
        for text in invariants.overlapping(self.ledger.cluster, CODECS):
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

    def __init__(self, chance, *, shared):
        self.chance, self.shared = chance, shared
        self.clock = clocks.ManualClock()
        self.server = Server(chance)
        self.incarnations = itertools.count(1)
        self.processes = [Process(self.server, self.clock)]
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
            self.keep: 2,
            self.pass_time: 3,
            self.undo: 1,
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

    def any(self):
        return self.chance.choice(self.processes)

    def key(self):
        return f"default/{self.chance.choice(PODS)}"

    def create(self):
        key = self.key()
        if key not in self.server.pods:
            uid = f"{key}-{next(self.incarnations)}"
            container = {"name": "main", "resources": {"requests": {slots.RESOURCE: "1"}}}
            metadata = {"name": key.partition("/")[2], "namespace": "default", "uid": uid}
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
        process, keys = self.any(), self.chance.sample(PODS, 2)
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
        self.processes[place] = Process(self.server, self.clock)

    def join(self):
        """A second process begins to work beside the first, or ends."""
        if len(self.processes) == 1:
            self.processes.append(Process(self.server, self.clock))
        else:
            self.processes.pop().end()

    # -- what has to hold ------------------------------------------------------------------

    def check(self, step):
        for process in self.processes:
            assert process.problems() == [], step
        bound = sum(bool(pod["spec"]["nodeName"]) for pod in self.server.pods.values())
        assert self.shared or bound <= QUOTA, f"{step}: more than the quota was bound"
        for overlap in self.overlaps():
            by = {self.server.granted_by[one.id] for one in (overlap.kept, overlap.later)}
            assert self.shared, step
            assert len(by) == 2, f"{step}: one process granted the same thing twice: {overlap}"

    def overlaps(self):
        """What the API server's objects say that two pods hold."""
        reader = records.Projector(codecs=CODECS)
        fresh = ledger.Ledger(cluster_state.ClusterState(CODECS, ("cpu",)))
        for pod in self.server.pods.values():
            fresh.pod(None, reader.pod(msgspec.convert(pod, core.Pod)), 0.0)
        return [
            found
            for node in NODES
            for found in detector.overlaps(fresh.cluster.claims_on(node), CODECS)
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
            assert invariants.check(process.ledger, process.store.values(), CODECS) == []
            assert self._placed(process) == {
                pod["metadata"]["uid"]: pod["spec"]["nodeName"]
                for pod in self.server.pods.values()
                if pod["spec"]["nodeName"]
            }

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
