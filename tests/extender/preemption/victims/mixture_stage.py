"""Nodes with CPUs, NUMA nodes, GPUs and quotas; pods that hold a mixture, budgets, and plans."""

import json

import msgspec
import numpy as np

from api import names
from api.kubernetes import core
from domain.numa import node_topology
from domain.pods import disruption_budgets as budgets
from extender import registry
from extender.framework import assembly, claim_index, pipeline, views
from extender.framework.eviction import preemption
from extender.plugins.elastic_quota import elastic_quota
from extender.preemption import planner
from extender.state import claims, cluster_state, deltas, ledger, records
from tests.extender.clusters import device_cluster, numa_cluster, quota_cluster

NOW = 1782907200.0
TOPOLOGY = node_topology.read(numa_cluster.topology(cores=2))
ALIGNED = {numa_cluster.NUMA_SPEC: json.dumps({"numaTopologyPolicy": "SingleNUMANode"})}


class Mixture:
    """Two NUMA nodes of two cores each, and a GPU beside each, on every node."""

    def __init__(self, *nodes, team_cpu="1000", topology=TOPOLOGY):
        self.plugins = (
            numa_cluster.plugin(),
            device_cluster.plugin(),
            elastic_quota.ElasticQuota(quota_cluster.RULES),
        )
        codecs = self.plugins[:2]
        self.pipeline = assembly.assemble(lambda _: list(self.plugins), {})
        self.projector = records.Projector(None, codecs, registry.inputs(self.plugins))
        self.state = cluster_state.ClusterState(self.plugins, ["cpu", "memory"])
        self.books = ledger.Ledger(self.state)
        self.index = claim_index.ClaimIndex(self.state.all_claims())
        self.state.followers.append(self.index.follow)
        self.budgets = []
        found = quota_cluster.quotas.read_elastic_quota(
            quota_cluster.written("team", least={"cpu": "0"}, most={"cpu": team_cpu})
        )
        self._tell(deltas.ELASTIC_QUOTA, found.identity, found)
        for name in nodes:
            self.node(name, topology)

    def _tell(self, kind, name, found, node=""):
        self.state.apply(deltas.ObjectDelta(kind, name, None, found, node))

    def node(self, name, topology):
        raw = {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
        }
        self.books.node(None, self.projector.node(msgspec.convert(raw, core.Node)))
        self._tell(deltas.NODE_TOPOLOGY, name, topology, name)
        gpus = [device_cluster.gpu(m, numa=m, pcie=str(m)) for m in range(2)]
        found = device_cluster.devices.read_device(device_cluster.device(name, *gpus))
        self._tell(deltas.DEVICE, name, device_cluster.inventory.read(found), name)

    def pod(self, name, *, cpus=0, gpu=0, team="", priority=0, kept=False, **more):
        """A pod; `gpu` in percent, 200 for two whole ones. `aligned` on one NUMA node."""
        labels = {"app": more.get("app", name)}
        labels |= {names.LABEL_QUOTA_NAME: team} if team else {}
        labels |= {names.LABEL_QOS: "LSR"} if cpus and not more.get("shared") else {}
        labels |= {names.LABEL_QUOTA_PREEMPTIBLE: "false"} if kept else {}
        requests = {"cpu": str(cpus)} if cpus else {}
        requests |= {names.GPU: str(gpu)} if gpu else {}
        raw = {
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "labels": labels,
                "annotations": ALIGNED if more.get("aligned") else {},
            },
            "spec": {
                "priority": priority, "containers": [{"name": "c", "resources": {
                    "requests": requests, "limits": requests}}],
            },
        }  # fmt: skip
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def refusal(self, pod, node):
        """Why a node refuses a pod, or could allocate nothing; empty where it takes it."""
        view = self.state.view()
        asked, row = self.pipeline.cycle(views.PodInfo.of(pod), view), view.rows[node]
        found = self.pipeline.filter(asked, view, pipeline.alone(row), NOW).refusal(0)
        granted = found or self.pipeline.reserve(asked, view, row)
        return granted.status.reason if isinstance(granted, pipeline.Refusal) else ""

    def place(self, name, node, *, at=0.0, leaves_at=-1.0, kind=claims.ClaimKind.BOUND, **more):
        """Bind a pod as a scheduler would; return its claim, None where the node refuses it."""
        pod = self.pod(name, **more)
        if self.refusal(pod, node):
            return None
        view = self.state.view()
        grants = self.pipeline.reserve(
            self.pipeline.cycle(views.PodInfo.of(pod), view), view, view.rows[node]
        )
        granted = {name: one.allocation for name, one in grants.items() if one.allocation}
        pod = msgspec.structs.replace(
            pod, node=node, assigned_at=at, leaves_at=leaves_at,
            own_labels={"app": more.get("app", name)},
        )  # fmt: skip
        claim = claims.Claim(pod.uid, kind, node, pod, granted)
        self.change(None, claim)
        return claim

    def change(self, before, after):
        self.state.apply(deltas.ClaimDelta((before or after).id, before, after))

    def leave(self, claim):
        self.change(claim, None)

    def budget(self, app, allowed=0):
        self.budgets.append(budgets.Budget("default", f"of-{app}", {"matchLabels": {"app": app}},
                                           allowed))  # fmt: skip

    def plan(self, pod, *nodes, **terms):
        view = self.state.view()
        rows = [view.rows[name] for name in nodes] if nodes else np.flatnonzero(view.known)
        terms = preemption.Terms(self.index, budgets.Budgets(self.budgets), **terms)
        rows = np.asarray(rows, dtype=np.intp)
        return planner.plan(self.pipeline, views.PodInfo.of(pod), view, rows, terms, NOW)

    def victims(self, pod, *nodes, **terms):
        """The names of those who are to be evicted, or why no pod is."""
        found = self.plan(pod, *nodes, **terms)
        if isinstance(found, planner.NoPlan):
            return found.reason
        return sorted(claim.id for claim in found.found.victims)
