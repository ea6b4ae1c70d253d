"""A cluster under the plug-ins that are on by default, and members of gangs that wait in it."""

import types

import msgspec

from api import names
from api.kubernetes import core
from extender.gangs import in_force, queue, renominations
from extender.gangs.planning import planner
from tests.extender.conftest import NOW, Make, Picture


class GangCluster(Picture):
    """Nodes, pods and gangs, without an API server."""

    def __init__(self):
        super().__init__()
        self.make = Make()

    def nodes(self, count, *, first=0, cpu="8", taints=(), cordoned=False, labels=None, **more):
        for number in range(first, first + count):
            raw = self.make.node(f"n{number}", cpu=cpu, labels=labels, **{"pods": "110", **more})
            raw["spec"] = {"taints": list(taints), "unschedulable": cordoned}
            self.add(raw)

    def pod(self, name, *, node="", cpu="4", priority=0, gang="", ports=(), **spec):
        requests = {"cpu": cpu, "memory": "1Gi"} | spec.pop("requests", {})
        raw = self.make.pod(name, node=node, requests=requests)
        if gang:
            raw["metadata"]["annotations"] = {names.ANNOTATION_GANG_NAME: gang}
        raw["metadata"].setdefault("annotations", {}).update(spec.pop("notes", {}))
        raw["metadata"]["labels"] |= spec.pop("labels", {})
        raw["spec"]["containers"][0]["ports"] = [{"hostPort": port} for port in ports]
        raw["spec"] |= {"priority": priority, **spec}
        record = self.projector.pod(msgspec.convert(raw, core.Pod))
        self.books.pod(self.truth.get(record.key), record, NOW)
        self.truth[record.key] = record
        return record

    def gang(self, name, count, **more):
        return [
            planner.Member(self.pod(f"{name}-{number}", gang=name, **more), f"default/{name}")
            for number in range(count)
        ]

    def plan(self, members, needed=None, **options):
        wanted = {member.gang: 0 for member in members}
        for member in members:
            wanted[member.gang] += 1
        options = planner.Options(needed or wanted, **options)
        return planner.plan(self.pipeline, self.cluster.fork(), members, options, NOW)

    def hold(self, plan):
        """Keep the places of a plan, as the controller does."""
        for one in plan.placements:
            self.books.nominate(one.pod, one.node, evidence=planner.EVIDENCE, granted=one.granted)


def nodes_of(plan):
    """How many members a plan places on each node."""
    found = {}
    for one in plan.placements:
        found[one.node] = found.get(one.node, 0) + 1
    return found


def plan_parts(cluster, time, writing, tasks):
    """What plans in force work on, where nothing but the gates is of interest."""
    ignored = types.SimpleNamespace(failed=lambda *_: None, say=lambda *_: None)
    return in_force.Parts(
        books=cluster.books,
        plugins=cluster.pipeline,
        pods=cluster.truth,
        clock=time,
        writes=writing,
        telling=ignored,
        notices=ignored,
        queue=queue.Queue(),
        new_id=lambda: "1",
        doubt=lambda: None,
        enforces=lambda: True,
        wake=lambda _: None,
        sampling=renominations.Sampling(lambda: None, lambda _: None),
        spawn=lambda _, work: tasks.append(work),
    )
