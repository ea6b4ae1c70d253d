"""A cluster with an extender that decides, fed without an API server."""

import itertools
import json

import msgspec
import numpy as np

from domain.scoring import objects, profile, releases
from domain.scoring.indexes import workloads
from extender import registry
from extender.explain import explanations
from extender.framework import assembly, verdicts
from extender.scoring import decider, state, traits
from extender.state import cluster_state, ledger, records
from extender.verbs import request_codec, verbs
from process.configuration import switches

NOW = 1782907200.0
PROFILE = profile.ScoringProfile("default-scheduler", releases.RELEASES[36])


class Preference:
    """A scorer with given points per node, and a filter that refuses nodes by name."""

    name = "Preference"

    def __init__(self):
        self.points = {}
        self.refused = set()

    def pre_filter(self, pod, view):
        del view
        return pod.key

    def score(self, prepared, view, rows, now):
        del prepared, now
        values = [self.points.get(view.names[row], 0) for row in rows]
        return verdicts.Score(np.array(values, dtype=np.int64))

    def filter(self, prepared, view, rows, now):
        del prepared, now
        codes = [int(view.names[row] in self.refused) for row in rows]
        return verdicts.Verdict(
            np.array(codes, dtype=np.int16), (verdicts.Status("refused by name"),)
        )


class Deciding:
    """Everything between the watches and the bytes of filter and prioritize."""

    def __init__(self, *profiles, draw=None, decides=True, plugins=()):
        self.profiles = profiles or (PROFILE,)
        resources = tuple(dict.fromkeys(name for one in self.profiles for name in one.resources))
        release = self.profiles[0].release
        self.projector = records.Projector(
            traits.Projector(resources, release), (), registry.inputs(plugins)
        )
        self.cluster = cluster_state.ClusterState(plugins, resources)
        self.ledger = ledger.Ledger(self.cluster)
        self.scoring = state.ScoringState(resources)
        self.cluster.followers.append(self.scoring.follow)
        self.workloads = workloads.WorkloadIndex()
        self.bound_claims, self.device_resources, self.synced = set(), set(), True
        self.counted = []
        self.moment = 100.0
        self.decider = decider.Decider(
            {one.scheduler_name: one for one in self.profiles},
            self.scoring,
            decider.Caches(
                self.workloads, self.bound_claims, self.device_resources, lambda: self.synced
            ),
            monotonic=lambda: self.moment,
            draw=draw or itertools.repeat(0).__next__,
            count=self.counted.append,
        )
        self.preference = Preference()
        self.switches = switches.Switches("extender")
        self.verbs = verbs.Verbs(
            self.cluster,
            assembly.assemble(
                lambda _: [self.preference, *plugins],
                {"Preference": 1} | {one.name: 1 for one in plugins},
            ),
            self.projector,
            self.switches,
            explanations.Explanations(),
            lambda told: None,
            request_codec.Reader(self.projector),
            decider=self.decider if decides else None,
        )
        self.pods = {}

    def node(self, written):
        record = self.projector.node(msgspec.convert(written, objects.Node))
        self.ledger.node(self.cluster.node(record.name), record)

    def pod(self, written):
        record = self.projector.pod(msgspec.convert(written, objects.Pod))
        key = record.key
        self.ledger.pod(self.pods.get(key), record, NOW)
        self.pods[key] = record
        return record

    def bind(self, written, node):
        """Show a pod on a node, as the watch does."""
        spec = {**written["spec"], "nodeName": node}
        return self.pod({**written, "spec": spec})

    def filter(self, written, *names):
        body = {"Pod": written, "Nodes": None, "NodeNames": list(names)}
        answer = json.loads(self.verbs.filter(json.dumps(body).encode(), NOW))
        assert answer["Error"] == ""
        return answer["NodeNames"]

    def prioritize(self, written, *names):
        body = {"Pod": written, "Nodes": None, "NodeNames": list(names)}
        answer = json.loads(self.verbs.prioritize(json.dumps(body).encode(), NOW))
        return {one["Host"]: one["Score"] for one in answer}


def node(name, cpu="8", memory="16Gi", labels=None, taints=(), images=()):
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": memory}, "images": list(images)},
    }


def pod(name, *, requests=None, metadata=None, **spec):
    requests = {"cpu": "1", "memory": "1Gi"} if requests is None else requests
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": "web"},
            **(metadata or {}),
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
    }
