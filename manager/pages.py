"""Pages for people who want to know why; served beside the probes."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from manager import term
from manager.admission import controller as admission
from manager.overcommit import breakdown, zones_plan
from manager.overcommit import controller as node_resource
from manager.overcommit import plan as plans
from process.runtime import clock as clocks

_MOST_ROWS: Final = 1000


def served(missed: admission.Listing, nodes: "Nodes") -> web.Application:
    """Return all pages."""

    async def listed(_request: web.Request) -> web.Response:
        return _json({"pods": missed.rows(_MOST_ROWS), "total": len(missed)})

    pages = web.Application()
    pages.router.add_get("/debug/admissions", listed)
    pages.router.add_get("/debug/nodes/{name}", nodes.explained)
    return pages


class Nodes:
    """The page that says why a node lends what it lends; every replica answers it.

    The leader shows the settings that it works with and when it wrote; the others read
    the configuration map as it stands.
    """

    def __init__(self, watched: term.Watched, clock: clocks.Clock) -> None:
        self._standby = node_resource.Observer(watched.lending, watched.settings, clock)
        self._leading: node_resource.Observer | None = None

    @contextlib.contextmanager
    def following(self, leading: node_resource.Observer) -> Iterator[None]:
        """Answer as the leader until the end of the block."""
        self._leading = leading
        try:
            yield
        finally:
            self._leading = None

    async def explained(self, request: web.Request) -> web.Response:
        """Answer why the node of this name lends what it lends."""
        name = request.match_info["name"]
        if name not in self._observer.stores.nodes:
            return _json({"error": f"there is no node {name}"}, status=404)
        found = self.document(name)
        if found is None:
            return _json({"error": "waits for readable cluster settings"}, status=503)
        return _json(found)

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Return why a node lends what it lends.

        None for a node that is not there, and while the cluster settings cannot be read.
        """
        observer = self._observer
        node, settings = observer.stores.nodes.get(name), observer.settings
        if node is None or settings is None:
            return None
        seen = observer.seen(settings, node)
        topology = observer.stores.topologies.get(name)
        zones = zones_plan.told(seen, topology, observer.stores.demands.held(name))
        found = dataclasses.replace(plans.breakdown(seen), zones=zones)
        return {"leads": self._leading is not None, **breakdown.document(found)}

    @property
    def _observer(self) -> node_resource.Observer:
        return self._leading or self._standby


def _json(body: Mapping[str, Any], status: int = 200) -> web.Response:
    text = orjson.dumps(body, option=orjson.OPT_INDENT_2)
    return web.Response(body=text, status=status, content_type="application/json")
