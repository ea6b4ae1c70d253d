"""A cluster with slots, fed without an API server."""

import msgspec
import numpy as np

from api.kubernetes import core
from extender import registry
from extender.framework import assembly, views
from extender.state import claims, cluster_state, deltas, records
from tests.extender.sample_plugin import allocation, plugin, tracker

CAP = 6
NOW = 1782907200.0


class SlotsCluster:
    """Nodes and claims, with the sample plug-in and what others stand beside it."""

    def __init__(self, cap=CAP, beside=()):
        self.plugin = plugin.SlotsPlugin(cap)
        plugins = [self.plugin, *beside]
        self.projector = records.Projector(None, registry.codecs(plugins), registry.inputs(plugins))
        self.pipeline = assembly.assemble(lambda _: plugins, {allocation.NAME: 1})
        self.state = cluster_state.ClusterState(plugins, ["cpu"])

    def node(self, name, slots, **labels):
        named = {key.replace("_", "-"): text for key, text in labels.items()}
        raw = {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "labels": {f"example.com/{key}": text for key, text in named.items()},
            },
            "status": {"allocatable": {allocation.RESOURCE: str(slots)}},
        }
        record = self.projector.node(msgspec.convert(raw, core.Node))
        self.state.apply(deltas.NodeDelta(name, self.state.node(name), record))

    def record(self, name, slots, *, node="", priority=0, numbers=None, **more):
        labels = {allocation.TEAM: more["team"]} if "team" in more else {}
        notes = {allocation.BARRIER: more["barrier"]} if "barrier" in more else {}
        notes |= more.get("notes", {})
        if numbers is not None:
            notes[allocation.NUMBERS] = numbers
        raw = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": labels,
                "annotations": notes,
            },
            "spec": {
                "nodeName": node,
                "priority": priority,
                "containers": [
                    {"name": "c", "resources": {"requests": {allocation.RESOURCE: str(slots)}}}
                ],
            },
        }
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def info(self, *given, **more):
        record = self.record(*given, **more)
        return views.PodInfo(record.key, record.uid, record.requirements)

    def hold(self, *given, kind=claims.ClaimKind.BOUND, **more):
        """Count a pod that has its slots on a node."""
        pod = self.record(*given, **more)
        claim = claims.Claim(pod.uid, kind, pod.node, pod, pod.allocations)
        self.state.apply(deltas.ClaimDelta(pod.uid, None, claim))
        return claim

    def place(self, node, *given, **more):
        """Give a pod slots of a node as bind does; return their numbers, or why there are none."""
        pod = self.record(*given, **more)
        asked = views.PodInfo(pod.key, pod.uid, pod.requirements)
        one = self.state.view().only(self.state.view().rows[node])
        cycle = self.pipeline.cycle(asked, one)
        refusal = self.refusal(asked, node)
        if refusal:
            return refusal
        granted = self.pipeline.reserve(cycle, one, 0)[allocation.NAME]
        placed = msgspec.structs.replace(pod, node=node)
        held = {allocation.NAME: granted.allocation}
        claim = claims.Claim(pod.uid, claims.ClaimKind.ASSUMED, node, placed, held)
        self.state.apply(deltas.ClaimDelta(pod.uid, None, claim))
        return granted.allocation.numbers

    def refusal(self, pod, node):
        """Why a node refuses a pod, empty where it passes."""
        view = self.state.view()
        cycle = self.pipeline.cycle(pod, view)
        rows = np.array([view.rows[node]])
        found = self.pipeline.filter(cycle, view, rows, NOW).refusal(0)
        return found.status.reason if found else ""

    def holders(self):
        """The cluster-wide value."""
        found = self.state.view().cluster[allocation.NAME]
        assert isinstance(found, tracker.Holders)
        return found
