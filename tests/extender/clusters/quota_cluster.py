"""A cluster with quotas, fed without an API server."""

import dataclasses

import msgspec
import numpy as np

from api import names, resources
from api.koordinator import quota as quotas
from api.kubernetes import core
from api.plugin_args import job
from domain.quota import model
from extender import registry
from extender.framework import assembly, nominations, views
from extender.plugins.elastic_quota import elastic_quota
from extender.state import cluster_state, deltas, invariants, ledger, records

NAME = elastic_quota.NAME
NOW = 1782907200.0
RULES = model.rules(job.ElasticQuotaArgs())


def written(name, *, namespace="teams", resource=resources.ELASTIC_QUOTAS, **more):
    """Return an ElasticQuota: `least` and `most` by resource, labels by their last word."""
    spec = {"min": more.pop("least", {}), "max": more.pop("most", {})} | more.pop("spec", {})
    notes = more.pop("notes", {})
    labels = {
        f"quota.scheduling.koordinator.sh/{key.replace('_', '-')}": str(value).lower()
        if isinstance(value, bool)
        else value
        for key, value in more.items()
    }
    return {
        "apiVersion": resource.api_version,
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
        | {"labels": labels, "annotations": notes},
        "spec": spec,
    }


class QuotaCluster:
    """Nodes, quotas and pods as watches tell of them, with the quota plug-in alone."""

    def __init__(self, rules=RULES, *, home=names.NAMESPACE, **changed):
        rules = dataclasses.replace(rules, **changed)
        self.plugin = elastic_quota.ElasticQuota(rules, namespace=home)
        plugins = [self.plugin]
        self.projector = records.Projector(None, (), registry.inputs(plugins))
        self.pipeline = assembly.assemble(lambda _: plugins, {})
        self.state = cluster_state.ClusterState(plugins, ["cpu"])
        self.books = ledger.Ledger(self.state)
        self.books.unscheduled.wanted = frozenset({deltas.UNSCHEDULED_POD})
        self.pods = {}
        self.clock = 0.0

    # -- what watches tell -----------------------------------------------------------------

    def node(self, name="n1", **allocatable):
        raw = {
            "metadata": {"name": name, "uid": f"uid-{name}"},
            "status": {
                "allocatable": {"cpu": "100", "memory": "100Gi", "pods": "110"} | allocatable
            },
        }
        record = self.projector.node(msgspec.convert(raw, core.Node))
        self.books.node(self.state.node(name), record)

    def no_node(self, name="n1"):
        self.books.node(self.state.node(name), None)

    def quota(self, name, **more):
        found = quotas.read_elastic_quota(written(name, **more))
        known = self.state.told(deltas.ELASTIC_QUOTA, found.identity)
        before = known.after if known else None
        self.state.apply(deltas.ObjectDelta(deltas.ELASTIC_QUOTA, found.identity, before, found))

    def no_quota(self, name, **more):
        found = quotas.read_elastic_quota(written(name, **more))
        known = self.state.told(deltas.ELASTIC_QUOTA, found.identity)
        self.state.apply(
            deltas.ObjectDelta(deltas.ELASTIC_QUOTA, found.identity, known.after, None)
        )

    def record(self, name, quota="", *, node="", namespace="default", uid="", **more):
        labels = {names.LABEL_QUOTA_NAME: quota} if quota else {}
        if not more.pop("preemptible", True):
            labels[names.LABEL_QUOTA_PREEMPTIBLE] = "false"
        requests = more.pop("requests", None) or {"cpu": str(more.pop("cpu", 1))}
        raw = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": uid or f"uid-{namespace}-{name}",
                "labels": labels,
                **more.pop("metadata", {}),
            },
            "spec": {
                "nodeName": node,
                "priority": more.pop("priority", 0),
                "containers": [{"name": "c", "resources": {"requests": requests}}],
            },
            "status": {"phase": more.pop("phase", "Running" if node else "Pending")} | more,
        }
        return self.projector.pod(msgspec.convert(raw, core.Pod))

    def pod(self, name, quota="", **more):
        """Let the watch show a pod; one that has ended is gone."""
        key = f"{more.get('namespace', 'default')}/{name}"
        record = self.record(name, quota, **more)
        self.books.pod(self.pods.pop(key, None), record, NOW)
        if record is not None:
            self.pods[key] = record
        return record

    def gone(self, name, namespace="default"):
        self.books.pod(self.pods.pop(f"{namespace}/{name}"), None, NOW)

    # -- what is asked ---------------------------------------------------------------------

    def refusal(self, pod, node="n1"):
        """Return why the filter refuses a pod on a node, None where it does not."""
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        rows = np.array([view.rows[node]], dtype=np.intp)
        found = self.pipeline.filter(asked, view, rows, NOW).refusal(0)
        return found.status if found else None

    def passes(self, name, quota="", **more):
        """Whether the filter lets a pod pass that the watch has not shown."""
        return self.refusal(self.record(name, quota, **more)) is None

    def bind(self, pod, node="n1"):
        """Check, reserve and assume as bind does; return whether it was done."""
        view = self.state.view(node)
        shown, row = nominations.seen_by(views.PodInfo.of(pod), view, view.rows[node])
        asked = self.pipeline.cycle(views.PodInfo.of(pod), shown)
        rows = np.array([row], dtype=np.intp)
        if self.pipeline.filter(asked, shown, rows, NOW).refusal(0) is not None:
            return False
        self.clock += 1
        self.books.assume(pod, node, NOW, self.clock)
        return True

    @property
    def value(self):
        return self.state.view().cluster[NAME]

    def used(self, quota, resource="cpu"):
        return self.value.forest.figures(quota).used.get(resource, 0)

    def figures(self, quota):
        return self.value.forest.figures(quota)

    def problems(self):
        return invariants.check(self.books, self.pods.values())
