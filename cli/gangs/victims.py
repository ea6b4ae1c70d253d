"""Pods that would leave for a gang that finds no room, before anything is evicted. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from api.plugin_args import models
from cli.gangs import cluster as clusters
from cli.placement import whole_extender
from cli.quota import cluster as quota_cluster
from cli.quota import preemptor
from domain.gangs import table as tables
from extender.framework import verdicts, views
from extender.framework.eviction import victims
from extender.gangs.planning import planner
from extender.gangs.preemption import candidates, search
from extender.state import cluster_state

SWITCHED_OFF: Final = "enablePreemption of plug-in Coscheduling is false"


@dataclasses.dataclass(frozen=True, slots=True)
class Leaver:
    """A pod that would be evicted."""

    pod: str
    priority: int
    node: str


@dataclasses.dataclass(frozen=True, slots=True)
class Leaving:
    """Who would leave for a gang, all of them or none."""

    evicted: tuple[Leaver, ...] = ()
    """The most important first."""
    waited: tuple[str, ...] = ()
    """Pods that are leaving already."""
    nodes: tuple[str, ...] = ()
    """Where the members would be placed then."""
    reason: str = ""
    """Why no pod would leave."""


NOBODY: Final = Leaving()


class Companions:
    """Says which pods of a snapshot are evicted together, as plug-in Coscheduling does."""

    name = models.COSCHEDULING

    def __init__(self, table: tables.Table, gangs: Mapping[str, str]) -> None:
        """`gangs` has the id of the gang by the uid of a pod."""
        self._table, self._gangs = table, gangs

    def companions(self, view: views.View, claim: views.Claim) -> tuple[verdicts.Quorum, ...]:
        """Return the gangs that fall together with a pod."""
        del view
        found = self._table.quorums(self._gangs.get(claim.id, ""))
        return tuple(verdicts.Quorum(least, placed) for least, placed in found)


def companions(found: clusters.Cluster) -> Companions:
    """Return which pods of a snapshot are evicted together."""
    gangs = {
        member.pod.metadata.uid: ident
        for ident, gang in found.gangs.items()
        for member in gang.members
    }
    return Companions(found.table, gangs)


def sought(
    cluster: quota_cluster.Cluster,
    whole: whole_extender.Whole,
    together: Companions,
    wanted: tuple[cluster_state.ClusterState, tuple[planner.Member, ...], int, search.Make],
) -> Leaving:
    """Search as the extender does; `wanted`: the state, the members, how many of them must fit."""
    state, members, needed, make = wanted
    line = dataclasses.replace(whole.extender.pipeline, companions=(together,))
    terms = candidates.Terms(preemptor.disruption_budgets(cluster))
    case = search.Case(members, needed, terms, cluster.now)
    found = search.of(search.Search(line, state.fork(), case, make))
    if isinstance(found, search.NoVictims):
        return Leaving(reason=found.reason)
    return Leaving(
        tuple(
            Leaver(one.pod.key, victims.priority_of(one), one.node) for one in found.found.victims
        ),
        tuple(one.pod.key for one in found.found.leaving),
        tuple(sorted(found.nodes)),
    )
