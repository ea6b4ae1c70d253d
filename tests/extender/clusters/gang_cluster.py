"""A cluster with gangs, fed without an API server, and plans as their controller makes them."""

import itertools

import msgspec
import numpy as np

from api import names
from api.kubernetes import core
from domain import persistent
from domain.gangs import declaration, pod_groups
from extender import registry
from extender.framework import assembly, nominations, verdicts, views
from extender.plugins.coscheduling import coscheduling, tracker
from extender.state import cluster_state, deltas, gang_facts, invariants, ledger, records

NAME = coscheduling.NAME
NOW = 1782907200.0
CREATED = "2026-07-01T11:00:00Z"
_NOTES = {
    "least": names.ANNOTATION_GANG_MIN_AVAILABLE,
    "mode": names.ANNOTATION_GANG_MODE,
    "policy": names.ANNOTATION_GANG_MATCH_POLICY,
    "wait": names.ANNOTATION_GANG_WAITING_TIME,
    "groups": names.ANNOTATION_GANG_GROUPS,
    "selector": names.ANNOTATION_NETWORK_TOPOLOGY_SELECTOR,
    "topology": names.ANNOTATION_GANG_NETWORK_TOPOLOGY,
}


def notes(gang="", **more):
    """Return the annotations that declare a gang, by short names, and a pod's selector."""
    texts = {_NOTES[key]: str(value) for key, value in more.items()}
    return texts | ({names.ANNOTATION_GANG_NAME: gang} if gang else {})


def raw_pod(name, gang="", *, namespace="team", node="", cpu=1, labels=None, **more):
    """Return a member as the API server has it."""
    native, priority = more.pop("native", ""), more.pop("priority", 0)
    gates = [{"name": names.GATE_GANG}] if more.pop("gated", False) else []
    leaves = {"deletionTimestamp": CREATED} if more.pop("leaves", False) else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "labels": labels or {},
            "annotations": notes(gang, **more),
            "creationTimestamp": CREATED,
            **leaves,
        },
        "spec": {
            "nodeName": node,
            "priority": priority,
            "schedulingGates": gates,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}],
        }
        | ({"schedulingGroup": {"podGroupName": native}} if native else {}),
        "status": {"phase": "Running" if node else "Pending"},
    }


class GangCluster:
    """Nodes, PodGroups and members as watches tell of them, with Coscheduling alone."""

    def __init__(self, **defaults):
        network = defaults.pop("network", True)
        self.plugin = coscheduling.Coscheduling(declaration.Defaults(**defaults), network=network)
        plugins = [self.plugin]
        self.projector = records.Projector(None, (), registry.inputs(plugins))
        self.pipeline = assembly.assemble(lambda _: plugins, {NAME: 1})
        self.state = cluster_state.ClusterState(plugins, ["cpu"])
        self.books = ledger.Ledger(self.state)
        self.books.unscheduled.wanted = frozenset({deltas.UNSCHEDULED_MEMBER})
        self.pods = {}
        self.numbers = itertools.count(1)
        self.clock = 0.0

    # -- what watches tell -----------------------------------------------------------------

    def nodes(self, *wanted, cpu="8", labels=None):
        for name in wanted:
            raw = {
                "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
                "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
            }
            record = self.projector.node(msgspec.convert(raw, core.Node))
            self.books.node(self.state.node(name), record)

    def no_node(self, name):
        self.books.node(self.state.node(name), None)

    def record(self, name, gang="", **more):
        return self.projector.pod(msgspec.convert(raw_pod(name, gang, **more), core.Pod))

    def pod(self, name, gang="", **more):
        """Let the watch show a pod."""
        record = self.record(name, gang, **more)
        self.books.pod(self.pods.get(record.key), record, NOW)
        self.pods[record.key] = record
        return record

    def layers(self, found):
        """Let the watch show the layers of the network; None: there is no such object."""
        known = self.state.told(deltas.CLUSTER_NETWORK_TOPOLOGY, "default")
        before = known.after if known else None
        kind = deltas.CLUSTER_NETWORK_TOPOLOGY
        self.state.apply(deltas.ObjectDelta(kind, "default", before, found))

    def members(self, gang, count, **more):
        return [self.pod(f"{gang}-{number}", gang, **more) for number in range(count)]

    def gone(self, pod):
        self.books.pod(self.pods.pop(pod.key), None, NOW)

    def pod_group(self, name, least, *, namespace="team", native=False, timeout=0, **more):
        found = pod_groups.PodGroup(
            namespace, name, f"uid-{name}", is_native=native, min_member=least,
            timeout_seconds=timeout,
            annotations=tuple(sorted(notes(**more).items())),
        )  # fmt: skip
        known = self.state.told(deltas.POD_GROUP, found.gang_id)
        before = known.after if known else None
        self.state.apply(deltas.ObjectDelta(deltas.POD_GROUP, found.gang_id, before, found))
        return found

    def no_pod_group(self, found):
        self.state.apply(deltas.ObjectDelta(deltas.POD_GROUP, found.gang_id, found, None))

    # -- what the controller of plans does -------------------------------------------------

    def plan(self, *placed, until=NOW + 60.0):
        """Keep a node for each member given with it, and put the plan of their group in force."""
        return planned(self.books, self.group_of(placed[0][0]), placed, until, next(self.numbers))

    def give_up(self, plan, why="node n1 is gone"):
        given_up(self.books, plan, why)

    def group_of(self, pod):
        gang = tracker.declared(pod.requirements, pod.namespace, declaration.Defaults())
        return self.value.table.group_of(gang.id).id

    # -- what is asked ---------------------------------------------------------------------

    @property
    def value(self):
        return self.state.view().cluster[NAME]

    def passing(self, pod):
        """Return the nodes that filter lets the pod have, or why it lets it have none."""
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        rows = np.flatnonzero(view.known)
        outcome = self.pipeline.filter(asked, view, rows, NOW)
        if asked.refused is not None:
            return asked.refused.status.text
        found = [view.names[row] for row in rows[outcome.codes == 0].tolist()]
        return sorted(found) or outcome.refusals[0].status.text

    def scores(self, pod, *nodes):
        """Return the weighed score of each candidate by name."""
        view = self.state.view()
        asked = self.pipeline.cycle(views.PodInfo.of(pod), view)
        rows = np.array([view.rows[name] for name in nodes])
        return dict(zip(nodes, self.pipeline.score(asked, view, rows, NOW).tolist(), strict=True))

    def reserve(self, pod, node):
        """Check, reserve and assume as bind does; return what PreFilter prepared."""
        view = self.state.view(node)
        shown, row = nominations.seen_by(views.PodInfo.of(pod), view, view.rows[node])
        asked = self.pipeline.cycle(views.PodInfo.of(pod), shown)
        assert self.pipeline.filter(asked, shown, np.array([row]), NOW).refusal(0) is None
        granted = self.pipeline.reserve(asked, shown, row)
        self.clock += 1
        self.books.assume(pod, node, NOW, self.clock)
        return asked, granted.get(NAME)

    def permission(self, asked, now=NOW):
        return self.pipeline.permit(asked, self.state.view(), now)

    def arrive(self, pod, node):
        return self.permission(self.reserve(pod, node)[0])

    def protected(self, pod):
        view = self.state.view()
        return self.plugin.protects(views.PodInfo.of(pod), view, self.state.claim(pod.uid))

    def rebuilt(self):
        """Return the value of a tracker that is told everything that holds, anew."""
        value = self.plugin.start()
        for name in self.state.nodes():
            node = deltas.NodeDelta(name, None, self.state.node(name))
            value = self.plugin.cluster(value, node)
        for told in self.state.objects():
            if told.after is not None:
                delta = deltas.ObjectDelta(told.kind, told.key, None, told.after)
                value = self.plugin.cluster(value, delta)
        for ident, claim in self.state.all_claims().items():
            value = self.plugin.cluster(value, deltas.ClaimDelta(ident, None, claim))
        return value

    def problems(self):
        return invariants.check(self.books, self.pods.values())


def planned(books, group, placed, until, number):
    """Put a plan in force, as one step."""
    nodes = persistent.Map((pod.uid, node) for pod, node in placed)
    plan = gang_facts.GangPlan(group, f"g{number}", until, nodes)
    known = books.cluster.told(deltas.GANG_PLAN, group)
    before = known.after if known else None
    books.cluster.apply(deltas.ObjectDelta(deltas.GANG_PLAN, group, before, plan))
    for pod, node in placed:
        if books.cluster.claim(pod.uid) is None:
            books.nominate(pod, node, evidence=tracker.EVIDENCE, expires_at=until)
    return plan


def given_up(books, plan, why):
    """Give a plan up: what it keeps is free, and held binds learn why."""
    after = msgspec.structs.replace(plan, refusal=why)
    books.cluster.apply(deltas.ObjectDelta(deltas.GANG_PLAN, plan.group, plan, after))
    for uid in plan.nodes:
        books.withdraw(uid)


def waits(permission):
    """Return the one wait of a permission."""
    ((_, wait),) = permission.waits
    assert isinstance(wait, verdicts.Wait)
    return wait
