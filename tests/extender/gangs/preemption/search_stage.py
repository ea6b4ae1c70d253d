"""Gangs without room among pods and gangs of lower priority, and the victims that are found."""

from api import names
from domain.pods import disruption_budgets as budgets
from extender import registry
from extender.framework import pipeline
from extender.gangs import in_force
from extender.gangs.planning import planner
from extender.gangs.preemption import candidates, search
from extender.state import records
from tests.extender.conftest import NOW
from tests.extender.gangs.stage.gang_cluster import GangCluster


class Stage(GangCluster):
    """Pods of gangs with a minimum, bound or waiting."""

    def __init__(self):
        super().__init__()
        self.projector = records.Projector(
            None, registry.codecs(self.plugins), registry.inputs(self.plugins)
        )

    @property
    def judging(self):
        """The plug-ins but for the one that waits for plans, as the controller asks them."""
        return pipeline.without(self.pipeline, in_force.PLUGIN)

    def declared(self, name, *, gang="", least=0, mode="", labels=None, **more):
        """A pod whose gang declares its minimum."""
        notes = {names.ANNOTATION_GANG_NAME: gang} if gang else {}
        notes |= {names.ANNOTATION_GANG_MIN_AVAILABLE: str(least)} if least else {}
        notes |= {names.ANNOTATION_GANG_MODE: mode} if mode else {}
        return self.pod(name, notes=notes, labels=labels or {}, **more)

    def bound(self, gang, nodes, *, least=0, cpu="4", priority=1, **more):
        """A gang with one member on each of these nodes."""
        for number, node in enumerate(nodes):
            self.declared(
                f"{gang}-{number}", gang=gang, least=least or len(nodes), node=node, cpu=cpu,
                priority=priority, **more,
            )  # fmt: skip

    def single(self, name, node, *, cpu="4", priority=1, **more):
        return self.declared(name, node=node, cpu=cpu, priority=priority, **more)

    def wanted(self, count, *, name="high", cpu="4", priority=10, **more):
        return tuple(
            planner.Member(
                self.declared(
                    f"{name}-{number}", gang=name, least=count, cpu=cpu, priority=priority, **more
                ),
                f"default/{name}",
            )
            for number in range(count)
        )

    def plan(self, members):
        """Plan without the plug-in that waits for plans, as the controller does."""
        found = self.maker(members)(self.cluster.fork())
        for _ in found.steps():
            pass
        return found.result

    def maker(self, members):
        needed = {members[0].gang: len(members)}
        options = planner.Options(needed)
        return lambda fork: planner.Planner(self.judging, fork, members, options, NOW)

    def search(self, members, fork=None, **terms):
        case = search.Case(members, len(members), candidates.Terms(**terms), NOW)
        return search.Search(self.judging, fork or self.cluster.fork(), case, self.maker(members))

    def victims(self, members, **terms):
        """The names of the pods that leave, or why none does."""
        found = search.of(self.search(members, **terms))
        if isinstance(found, search.NoVictims):
            return found.reason
        return sorted(claim.pod.name for claim in found.found.victims)

    def leave(self, names_of):
        for name in names_of:
            key = f"default/{name}"
            self.books.pod(self.truth.pop(key), None, NOW)

    def budget(self, name, allowed, **labels):
        return budgets.Budget("default", name, {"matchLabels": labels}, allowed)
