"""A binder with slots to allocate and plug-ins that let pods wait, on virtual time."""

import asyncio

from api.kubernetes import extender as wire
from extender.framework import pipeline
from extender.settings import BindSettings
from extender.state import cluster_state, ledger, records
from extender.verbs import bind
from kube.client import errors
from kube.informers import store
from process.configuration import switches
from process.runtime import clock
from tests.extender.clusters import slots

CODEC = slots.Slots()
WANTED = {slots.RESOURCE: "1"}


class Server:
    """Keeps what is bound; everything else is known from the watch."""

    def __init__(self):
        self.bound = {}
        self.refuses = False

    async def bind(self, namespace, name, *, uid, node, annotations, version, guard):
        await asyncio.sleep(0)
        guard.check()
        if self.refuses:
            raise errors.Forbidden(403, message="no")
        self.bound[name] = node, annotations


class World:
    """A state with slots, a binder, and pods that the watch has shown."""

    def __init__(self, make, projector, deadline, *plugins):
        self.make, self.projector = make, projector
        self.clock, self.server, self.store = clock.ManualClock(), Server(), store.Store()
        self.books = ledger.Ledger(cluster_state.ClusterState([CODEC], ("cpu",)))
        self.empty = {}
        self.switches = switches.Switches("extender")
        line = pipeline.Pipeline(
            pre_filters=(CODEC, *plugins),
            filters=(CODEC, *(p for p in plugins if hasattr(p, "filter"))),
            reservers=(CODEC, *(p for p in plugins if hasattr(p, "reserve"))),
            permits=tuple(p for p in plugins if hasattr(p, "permit")),
            codecs=(CODEC,),
        )
        parts = bind.Parts(
            self.books, line, self.server, self.store, projector, self.clock, self.switches
        )
        self.binder = bind.Binder(parts, BindSettings(deadline_seconds=deadline))

    def node(self, name, count):
        figures = (("cpu", 64000), (slots.RESOURCE, count))
        record = records.NodeRecord(name, figures, figures, uid=name)
        self.books.node(self.books.cluster.node(name), record)

    def pods(self, *wanted, requests=WANTED):
        for name in wanted:
            asked = self.projector(self.make.pod("p", requests=requests))
            record = records.PodRecord(f"default/{name}", f"uid-{name}", "", asked)
            self.store.put(store.Meta(record.key, record.uid, 7), record)
            self.books.pod(None, record, 0.0)
        self.empty = self.books.cluster.fingerprint()

    async def bind(self, name, node="n1", connected=lambda: True):
        return await self.binder.bind(
            wire.BindingArgs(name, "default", f"uid-{name}", node), connected
        )

    def start(self, name, node="n1", connected=lambda: True):
        return asyncio.gather(self.bind(name, node, connected))

    def nothing_is_held(self):
        return self.books.cluster.fingerprint() == self.empty and not self.books.assumptions
