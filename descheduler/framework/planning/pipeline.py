"""A round: plug-ins suggest, filters, limits and the objective let suggestions become moves. Pure.

Deschedule plug-ins of all profiles run first, then their balance plug-ins, in the order of the
configuration. A plug-in that fails ends alone; what it suggested until then stands.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final, NamedTuple

from descheduler.configuration.arguments import parts
from descheduler.framework import protocols
from descheduler.framework.filtering import chain, open_jobs, safeguards
from descheduler.framework.nodes import node_fit
from descheduler.framework.planning import (
    decisions,
    history,
    isolation,
    limiter,
    profiles,
    round_plan,
)
from descheduler.model import nodeinfo, picture

TOO_FEW_NODES: Final = "fewer than two nodes are ready"


def plan_round(
    configured: Sequence[profiles.Profile], chosen: profiles.Options, given: profiles.Given
) -> round_plan.RoundPlan:
    """Decide which pods leave their nodes."""
    seen = given.picture
    moves = history.followed(given.memory.moves, seen, max(history.KEPT, chosen.cool_down))
    memory = dataclasses.replace(given.memory, moves=moves)
    ready = [
        node
        for _, node in sorted(seen.nodes.items())
        if node.is_ready and _selects(chosen.node_selector, node)
    ]
    if len(ready) < 2:
        return round_plan.RoundPlan(memory=memory, dry_run=chosen.dry_run, skipped=TOO_FEW_NODES)
    return _Round(chosen, dataclasses.replace(given, memory=memory), ready).plan(configured)


class _Round:
    def __init__(
        self, chosen: profiles.Options, given: profiles.Given, ready: Sequence[nodeinfo.Node]
    ) -> None:
        self._chosen, self._given, self._ready = chosen, given, ready
        self._fit = _LazyFit(given.picture)
        self._migrating = open_jobs.of(given.picture)
        limits = limiter.Limiter(given.picture, chosen.in_round, chosen.in_hour, given.memory.moves)
        self._limits = limits
        self._decisions = decisions.Decisions(given, chosen, limits)

    def plan(self, configured: Sequence[profiles.Profile]) -> round_plan.RoundPlan:
        shown = [(one, self._shown(one)) for one in configured]
        for profile, own in shown:
            for plugin in profile.deschedule:
                self._run(profile, plugin, own)
        for profile, own in shown:
            for plugin in profile.balance:
                self._run(profile, plugin, own)
        return self._decisions.plan(
            tuple(
                round_plan.Kept(profile.name, reason, count)
                for profile, own in shown
                for reason, count in sorted(own.filters.kept().items())
            )
        )

    def _shown(self, profile: profiles.Profile) -> "_Shown":
        seen, chosen = self._given.picture, self._chosen
        alone = profile.dry_run and not chosen.dry_run
        migrating = open_jobs.of(seen) if alone else self._migrating
        asked = protocols.FilterView(seen, migrating, self._fit)
        guards = safeguards.Safeguards(
            *(seen, migrating, self._given.memory.moves, chosen.cool_down),
            whole_gangs=chosen.whole_gangs,
        )
        asking = [guards, *(one.for_round(asked) for one in profile.filters)]
        filters = chain.Chain(asking, migrating)
        nodes = [node for node in self._ready if _selects(profile.node_selector, node)]
        bounded = chosen.in_round.bounds or chosen.in_hour.bounds
        view = protocols.View(
            *(seen, nodes, filters, self._fit, chosen.interval_seconds, self._limits),
            eviction_cost=self._given.objective.cost if bounded else None,
        )
        return _Shown(view, filters, migrating)

    def _run(self, profile: profiles.Profile, plugin: profiles.Plugin, own: "_Shown") -> None:
        context = decisions.Context(
            profile=profile.name,
            evictor=profile.evictor,
            plugin=plugin.name,
            view=own.view,
            migrating=own.migrating,
            dry_run=self._chosen.dry_run or profile.dry_run,
        )
        _, failure = isolation.tried(lambda: self._drive(plugin, context))
        if failure:
            self._decisions.fail(context, failure)

    def _drive(self, plugin: profiles.Plugin, context: decisions.Context) -> None:
        """Ask a plug-in for suggestions one by one, and tell it what became of each."""
        before = self._given.memory.plugins.get(context.key, protocols.NO_MEMORY)
        left = self._decisions.follow(plugin.suggests(context.view, before), context)
        self._decisions.remember(context, left)
        if plugin.notes is not None:
            self._decisions.annotate(plugin.notes(context.view))


class _Shown(NamedTuple):
    """What the plug-ins of one profile are shown."""

    view: protocols.View
    filters: chain.Chain
    migrating: open_jobs.OpenJobs


def _selects(selector: parts.LabelSelector | None, node: nodeinfo.Node) -> bool:
    return selector is None or selector.selects(node.labels)


class _LazyFit:
    """The table of free resources, made when it is first asked; implements NodeFit."""

    def __init__(self, seen: picture.Picture) -> None:
        self._seen = seen
        self._table: node_fit.Table | None = None

    def rows(self, among: Sequence[str]) -> protocols.NodeRows:
        return self._made().rows(among)

    def _made(self) -> node_fit.Table:
        if self._table is None:
            self._table = node_fit.Table(self._seen)
        return self._table
