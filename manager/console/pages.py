"""The documents of the console: who may see what of each, and its view."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiohttp import web

from api import resources
from domain.daily_sums import sums
from manager.console import agent_days, http, informers, needs, prepared
from manager.console.access import reviews, scope, session
from manager.console.views import (
    devices,
    gangs,
    migrations,
    nodes,
    paging,
    pending,
    quotas,
    reservations,
    scorecard,
    usage,
)
from manager.console.views import pods as pod_views
from process.runtime import clock as clocks


class Pages:
    """Every document by path."""

    def __init__(
        self,
        watched: informers.Watched,
        config: tuple[str, str],
        days: agent_days.AgentDays,
        clock: clocks.Clock,
    ) -> None:
        self._watched = watched
        self._days, self._of_days = days, needs.of_days(config[0])
        self._lending = needs.of_lending(*config)
        self._prepared = prepared.Prepared(clock)
        self._uses = usage.Uses()

    def by_path(self) -> Mapping[str, http.Page]:
        """Return all documents."""
        return {
            "/api/session": self.who,
            "/api/nodes": self.all_nodes,
            "/api/nodes/{name}": self.one_node,
            "/api/pending": self.waiting,
            "/api/quotas": self.quota_tree,
            "/api/devices": self.all_devices,
            "/api/gangs": self.all_gangs,
            "/api/reservations": self.all_reservations,
            "/api/migrations": self.all_migrations,
            "/api/scorecard": self.outcome,
        }

    async def who(self, asking: session.Session, _request: web.Request) -> http.Shown:
        """Show who asks, and for which pages permissions are missing."""
        found = await asyncio.gather(*(asking.missing(*one) for one in needs.PAGES.values()))
        missing = zip(needs.PAGES, found, strict=True)
        return http.Shown(
            {
                "user": asking.user.name,
                "byToken": asking.by_token,
                "pages": {page: [str(one) for one in lacks] for page, lacks in missing},
            }
        )

    # --- Nodes ----------------------------------------------------------------------------------

    async def all_nodes(self, asking: session.Session, _request: web.Request) -> http.Shown:
        """Show all nodes: what they have, lend, and as far as permitted what is used of it."""
        await asking.require(needs.NODES)
        measured, counted = await asking.may(needs.METRICS), await asking.may(needs.PODS)
        watched = self._watched

        def make() -> http.Shown:
            return http.Shown(
                nodes.columns(
                    watched.shared.nodes,
                    watched.report if measured else None,
                    watched.index if counted else None,
                )
            )

        return self._prepared.get(("nodes", measured, counted), make)

    async def one_node(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show one node with its pods, and why it lends what it lends."""
        await asking.require(needs.NODES)
        name = request.match_info["name"]
        found = self._watched.shared.nodes.get(name)
        if found is None:
            raise reviews.AccessError(404, f"there is no node {name[:253]}")
        shown: dict[str, Any] = {}
        if await asking.may(needs.METRICS):
            shown["usage"] = nodes.usage_by_class(self._watched.report(name))
        lacks = await asking.missing(*self._lending)
        if lacks:
            shown["lendingNeeds"] = [str(one) for one in lacks]
        else:
            shown["lending"] = self._watched.shared.lending(name)
        sums = self._watched.index.of_node(name)
        places = {pod.namespace for pod in sums.keys.values()}
        allowed = await asking.scope(resources.PODS, places)
        return http.Shown(nodes.detail(found, sums, allowed, shown))

    # --- What lies in namespaces ----------------------------------------------------------------

    async def waiting(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show the pods without a node."""
        wanted, index = _asked(request), self._watched.index
        places = set(index.waiting_namespaces)
        allowed = await asking.scope(resources.PODS, places, wanted.namespace)
        return http.Shown(pending.document(index.waiting.values(), allowed, wanted))

    async def quota_tree(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show elastic quotas of all groups."""
        wanted, forest = _asked(request), self._watched.shared.forest
        rows = self._prepared.get("quotas", lambda: quotas.rows(forest()))
        scopes: dict[resources.Resource, scope.Scope] = {}
        for resource in resources.QUOTA_RESOURCES:
            places = {row["namespace"] for row in rows if row["resource"] == resource}
            chosen = wanted.namespace if wanted.namespace in places else ""
            if wanted.namespace and not chosen:
                scopes[resource] = scope.NOTHING
                continue
            scopes[resource] = await asking.scope(resource, places, chosen)
        return http.Shown(quotas.document(rows, scopes))

    async def all_gangs(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show gangs with how far they have come."""
        wanted, index = _asked(request), self._watched.index
        groups = self._watched.shared.pod_groups
        places = gangs.namespaces(index, groups())
        allowed = gangs.Scopes(
            await asking.scope(resources.PODS, places, wanted.namespace),
            await _group_scope(asking, places),
        )
        return http.Shown(gangs.document(index, groups(), allowed, wanted))

    # --- What belongs to the cluster ------------------------------------------------------------

    async def all_devices(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show devices, the pods that hold them, and the domains of the network."""
        await asking.require(needs.DEVICES)
        wanted, found = _asked(request), self._watched.shared.devices()
        names = devices.wanted_nodes(found, wanted)
        part = names[wanted.offset : wanted.offset + wanted.limit]
        allowed = await asking.scope(resources.PODS, devices.namespaces(found, part))
        shown: dict[str, Any] = {
            "summary": self._prepared.get("devices", lambda: devices.summary(found)),
            # Pods may have come and gone while the API server was asked.
            "items": [devices.node(name, found[name], allowed) for name in part if name in found],
            "total": len(names),
            "offset": wanted.offset,
            "withProblems": sum(1 for one in found.values() if one.problems),
        }
        if await asking.may(needs.NETWORK):
            shown["network"] = devices.domains(*self._watched.shared.network())
        return http.Shown(shown)

    async def all_reservations(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show Reservations."""
        await asking.require(needs.RESERVATIONS)
        return http.Shown(reservations.document(self._watched.reservations, _asked(request)))

    async def all_migrations(self, asking: session.Session, request: web.Request) -> http.Shown:
        """Show PodMigrationJobs."""
        await asking.require(needs.MIGRATIONS)
        return http.Shown(migrations.document(self._watched.migrations, _asked(request)))

    async def outcome(self, asking: session.Session, _request: web.Request) -> http.Shown:
        """Show what colocation gives at this moment, and what agents did by day."""
        await asking.require(*needs.PAGES["scorecard"])
        moved = await asking.may(needs.MIGRATIONS)
        days = await self._days.known() if await asking.may(self._of_days) else None
        key = ("scorecard", moved, days is not None)
        return self._prepared.get(key, lambda: self._outcome(days, moved=moved))

    def _outcome(self, days: Sequence[sums.Day] | None, *, moved: bool) -> http.Shown:
        watched = self._watched
        found = scorecard.total(
            (
                (node, nodes.lent(node), self._uses.of(node.name, watched.report(node.name)))
                for node in watched.shared.nodes
            ),
            watched.index,
        )
        moves: Iterable[migrations.Migration] | None = watched.migrations if moved else None
        waits: Iterable[pod_views.Pod] = watched.index.waiting.values()
        return http.Shown(scorecard.document(found, waits, moves, days))


async def _group_scope(asking: session.Session, places: set[str]) -> scope.Scope:
    """Return where PodGroups may be listed: both kinds of them, or none."""
    allowed = await asking.scope(resources.POD_GROUPS, places)
    if allowed.nothing:
        return allowed
    native = await asking.scope(resources.NATIVE_POD_GROUPS[0], places)
    if allowed.everywhere:
        return native
    return allowed if native.everywhere else scope.Scope(
        namespaces=allowed.namespaces & native.namespaces, partial=allowed.partial
    )  # fmt: skip


def _asked(request: web.Request) -> paging.Asked:
    try:
        return paging.asked(request.query)
    except ValueError as error:
        raise reviews.AccessError(400, str(error), "correct the address") from error
