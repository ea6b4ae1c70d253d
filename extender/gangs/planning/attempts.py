"""Plans of gang groups in the making: what judges them, and the state that they are made on."""

import asyncio
import dataclasses
from collections.abc import Collection, Mapping

from domain.gangs import table as tables
from domain.topology import tree as trees
from extender.gangs import in_force
from extender.gangs.network import network_plan
from extender.gangs.planning import groups, planner, planning_fork
from extender.gangs.preemption import search
from extender.state import cluster_state

Avoided = Mapping[str, Collection[str]]
"""By uid: nodes on which kube-scheduler has just refused a member."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attempts:
    """Makes plans on the live state."""

    parts: in_force.Parts
    fork: planning_fork.PlanningFork
    """On which groups are planned one after another that ask for no place in the network."""

    def table(self) -> tables.Table | None:
        """Return all gangs as the plug-in keeps them, None where it is not enabled."""
        found = getattr(self._value(), "table", None)
        return found if isinstance(found, tables.Table) else None

    def _network(self) -> trees.Tree | None:
        found = getattr(self._value(), "network", None)
        return found if isinstance(found, trees.Tree) else None

    def _value(self) -> object:
        return self.parts.books.cluster.view().cluster.get(in_force.PLUGIN)

    def maker(self, group: tables.Group, wanted: groups.Wanted, avoided: Avoided) -> search.Make:
        """Return what plans a group on a state; where it has a network, on forks of that state."""
        judging, options = self.parts.judging(), wanted.options(avoided)
        members, now = wanted.members, self.parts.clock.now()
        network = network_plan.wanted(group, self._network())

        def make(state: cluster_state.ClusterState) -> search.Made:
            if network is None:
                return planner.Planner(judging, state, members, options, now)
            return network_plan.NetworkPlanner(judging, state, members, options, network, now)

        return make

    async def made(
        self, group: tables.Group, wanted: groups.Wanted, avoided: Avoided
    ) -> planner.Found:
        """Make a plan in steps, of the state as it is from now on."""
        made = await self._making(group, wanted, avoided)
        for _ in made.steps():
            await asyncio.sleep(0)
        assert made.result is not None
        return made.result

    async def _making(
        self, group: tables.Group, wanted: groups.Wanted, avoided: Avoided
    ) -> search.Made:
        """Return a plan that starts from the state as it is now."""
        cluster, now = self.parts.books.cluster, self.parts.clock.now()
        if network_plan.wanted(group, self._network()) is not None:
            cluster.view()
            return self.maker(group, wanted, avoided)(cluster)
        for _ in self.fork.catch_up(now):
            await asyncio.sleep(0)
        options = wanted.options(avoided)
        return self.fork.planner(self.parts.judging(), wanted.members, options, now)
