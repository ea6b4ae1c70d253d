"""Teams with a cap in the whole cluster: pods of a start time, budgets, and plans."""

import msgspec
import numpy as np

from domain.pods import disruption_budgets as budgets
from extender.framework import claim_index
from extender.framework.eviction import preemption
from extender.preemption import planner
from extender.state import claims, deltas
from tests.extender.clusters.slots_cluster import NOW, SlotsCluster
from tests.extender.sample_plugin import allocation

PROTECTED = (("quota.scheduling.koordinator.sh/preemptible", "false"),)


class Stage(SlotsCluster):
    """A cluster whose pods hold slots, one number after the other."""

    def __init__(self, cap=6, nodes=("n1",), slots=64, beside=()):
        super().__init__(cap, beside)
        self.given = {}
        self.index = claim_index.ClaimIndex(self.state.all_claims())
        self.state.followers.append(self.index.follow)
        for name in nodes:
            self.node(name, slots)

    def place(self, name, count=1, *, node="n1", priority=0, team="red", at=0.0, **more):
        """A pod that holds slots of a node."""
        first = self.given.get(node, 0)
        self.given[node] = first + count
        numbers = ",".join(str(number % 64) for number in range(first, first + count))
        kind, fields = more.pop("kind", claims.ClaimKind.BOUND), more.pop("requirements", {})
        barrier = {"barrier": more.pop("barrier")} if "barrier" in more else {}
        barrier |= {"notes": more.pop("notes")} if "notes" in more else {}
        pod = self.record(
            name, count, node=node, priority=priority, team=team, numbers=numbers, **barrier
        )
        pod = msgspec.structs.replace(pod, assigned_at=at, own_labels={"app": name}, **more)
        if fields:
            wanted = pod.requirements
            if "inputs" in fields:
                fields = {"inputs": tuple(sorted({*wanted.inputs, *fields["inputs"]}))}
            pod = msgspec.structs.replace(
                pod, requirements=msgspec.structs.replace(wanted, **fields)
            )
        ident = pod.uid if kind in claims.FIRM else claims.nominated(pod.uid)
        evidence = "preemption" if kind is claims.ClaimKind.NOMINATED else ""
        claim = claims.Claim(ident, kind, node, pod, pod.allocations, evidence=evidence)
        self.change(None, claim)
        return claim

    def change(self, before, after):
        self.state.apply(deltas.ClaimDelta((before or after).id, before, after))

    def leave(self, name):
        self.change(self.state.claim(name), None)

    def budget(self, name, *apps, allowed=0):
        terms = [{"key": "app", "operator": "In", "values": list(apps)}]
        return budgets.Budget("default", name, {"matchExpressions": terms}, allowed)

    def plan(self, pod, *, nodes=(), **terms):
        view = self.state.view()
        rows = [view.rows[name] for name in nodes] if nodes else np.flatnonzero(view.known)
        return planner.plan(
            self.pipeline, pod, view, np.asarray(rows, dtype=np.intp),
            preemption.Terms(self.index, **terms), NOW,
        )  # fmt: skip

    def victims(self, pod, **more):
        """The names of the pods that are to be evicted, or why none is."""
        found = self.plan(pod, **more)
        if isinstance(found, planner.NoPlan):
            return found.reason
        return sorted(claim.id for claim in found.found.victims)

    def passes(self, pod):
        return any(not self.refusal(pod, name) for name in self.state.nodes())

    def high(self, count=2, priority=100, team="red", name="high", **more):
        return self.info(name, count, priority=priority, team=team, **more)


__all__ = ["NOW", "PROTECTED", "Stage", "allocation"]
