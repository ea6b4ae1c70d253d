"""Nodes with CPUs and NUMA nodes, pods that want some, and the production plug-in."""

import json

import msgspec
import numpy as np

from api.kubernetes import core
from api.plugin_args import node as node_arguments
from domain.numa import node_topology
from extender import registry
from extender.framework import pipeline, verdicts, views
from extender.framework.eviction import preemption
from extender.plugins.node_numa_resource import node_numa_resource
from extender.state import claims, cluster_state, deltas, records

NAME = node_numa_resource.NAME
STATUS = "scheduling.koordinator.sh/resource-status"
SPEC = "scheduling.koordinator.sh/resource-spec"
NUMA_SPEC = "scheduling.koordinator.sh/numa-topology-spec"
NOW = 0.0


def plugin(**written):
    arguments = node_arguments.NodeNUMAResourceArgs.model_validate(written)
    return node_numa_resource.NodeNUMAResource(node_numa_resource.read_arguments(arguments))


def topology(*, cores=4, ids=(0, 1), memory="32Gi", notes=None, policies=("None",)):
    """Two threads a core, as many cores on each NUMA node; a sibling is `cores * nodes` away."""
    count = cores * len(ids)
    cpus = [
        {"id": n, "core": n % count, "socket": 0, "node": ids[n % count // cores]}
        for n in range(2 * count)
    ]
    amounts = {"cpu": str(2 * cores), "memory": memory}
    resources = [
        {"name": name, "capacity": text, "allocatable": text, "available": text}
        for name, text in amounts.items()
    ]
    texts = {name: json.dumps(one) for name, one in (notes or {}).items()}
    return {
        "metadata": {
            "annotations": {
                "node.koordinator.sh/cpu-topology": json.dumps({"detail": cpus}),
                **texts,
            }
        },
        "topologyPolicies": list(policies),
        "zones": [{"name": f"node-{node}", "type": "Node", "resources": resources} for node in ids],
    }


class NumaCluster:
    """A cluster state under the plug-in, and how pods come and go."""

    def __init__(self, made=None):
        self.plugin = made or plugin()
        self.state = cluster_state.ClusterState((self.plugin,), ("cpu", "memory"))
        self.projector = records.Projector(None, (self.plugin,), registry.inputs((self.plugin,)))
        self.pipeline = pipeline.Pipeline(
            pre_filters=(self.plugin,),
            filters=(self.plugin,),
            screens={NAME: self.plugin},
            scorers=(pipeline.Weighted(self.plugin, 1),),
            aligned=pipeline.numa.Aligned((self.plugin,), self.plugin),
            selectors={NAME: self.plugin},
            codecs=(self.plugin,),
            diagnosers={NAME: self.plugin},
            hints={NAME: self.plugin},
        )

    def node(self, name="n1", told=None, *, cpu="16", labels=None, annotations=None):
        raw = {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "labels": labels or {},
                "annotations": annotations or {},
            },
            "status": {"allocatable": {"cpu": cpu, "memory": "64Gi"}},
        }
        record = self.projector.node(msgspec.convert(raw, core.Node))
        self.state.apply(deltas.NodeDelta(name, self.state.node(name), record))
        if told is not None:
            self.tell(name, told)

    def tell(self, name, raw):
        """Set the NodeResourceTopology of a node; None: it is deleted."""
        known = self.state.told(deltas.NODE_TOPOLOGY, name)
        after = None if raw is None else node_topology.read(raw)
        before = known.after if known else None
        self.state.apply(deltas.ObjectDelta(deltas.NODE_TOPOLOGY, name, before, after, name))

    def pod(self, name, cpu, *, qos="LSR", spec=None, numa=None, annotations=None, node="", **more):
        notes = dict(annotations or {})
        notes |= {SPEC: json.dumps(spec)} if spec else {}
        notes |= {NUMA_SPEC: json.dumps(numa)} if numa else {}
        requests = {"cpu": cpu, "memory": more.get("memory", "1Gi")}
        raw = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": notes,
                "labels": {"koordinator.sh/qosClass": qos} if qos else {},
            },
            "spec": {
                "nodeName": node,
                "priority": more.get("priority", 9500),
                "containers": [
                    {"name": "main", "resources": {"requests": requests, "limits": requests}}
                ],
            },
        }
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def judge(self, pod, node="n1"):
        """Return why a node refuses a pod, empty where it passes."""
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        rows = np.array([view.rows[node]], dtype=np.intp)
        refusal = self.pipeline.filter(asked, view, rows, NOW).refusal(0)
        return refusal.status.text if refusal else ""

    def explain(self, pod, node="n1"):
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        row = view.rows[node]
        rows = np.array([row], dtype=np.intp)
        refusal = self.pipeline.filter(asked, view, rows, NOW).refusal(0)
        return self.pipeline.sentence(asked, view, row, refusal, NOW)

    def score(self, pod, node="n1"):
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        rows = np.array([view.rows[node]], dtype=np.intp)
        return int(self.pipeline.score(asked, view, rows, NOW)[0])

    def reserve(self, pod, node="n1"):
        """Return the allocation of a pod on a node, or the text of its refusal."""
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        found = self.pipeline.reserve(asked, view, view.rows[node])
        if isinstance(found, pipeline.Refusal):
            return found.status.text
        grant = found.get(NAME)
        return grant.allocation if grant else None

    def hold(self, pod, allocation, node="n1"):
        """Count a pod with what it was given."""
        record = msgspec.structs.replace(pod, node=node)
        granted = {NAME: allocation} if allocation else {}
        claim = claims.Claim(pod.uid, claims.ClaimKind.BOUND, node, record, granted)
        self.state.apply(deltas.ClaimDelta(claim.id, self.state.claim(claim.id), claim))
        return claim

    def place(self, name, cpu, node="n1", **more):
        """Judge, reserve and count a pod; return what is written on it."""
        pod = self.pod(name, cpu, **more)
        refused = self.judge(pod, node)
        if refused:
            return refused
        found = self.reserve(pod, node)
        assert not isinstance(found, str), found
        self.hold(pod, found, node)
        return dict(self.plugin.encode(found)) if found else {}

    def release(self, name):
        claim = self.state.claim(f"uid-{name}")
        self.state.apply(deltas.ClaimDelta(claim.id, claim, None))

    def victims(self, pod, node="n1"):
        view = self.state.view()
        asked = views.PodInfo.of(pod)
        found = preemption.victims(self.pipeline, asked, view, view.rows[node], NOW)
        return found.claims if isinstance(found, verdicts.Victims) else found.status.text

    def numa(self, node="n1"):
        view = self.state.view()
        return view.sparse(NAME, view.rows[node])
