"""The debug page that shows one node as the extender counts it, beside the same node rebuilt."""

from typing import Any

from aiohttp import web

from extender.framework import views
from extender.state import cluster_state, ledger, records


def document(books: ledger.Ledger, name: str) -> dict[str, Any] | None:
    """Return what is counted on a node; None for a node that is not known."""
    cluster = books.cluster
    node = cluster.node(name)
    if node is None:
        return None
    figures = _figures(cluster, name)
    anew = _figures(cluster.what_if([node]), name)
    return {
        "node": name,
        "pods": [_pod(claim.pod, books) for claim in cluster.claims_on(name)],
        "nominated": [
            {"pod": claim.pod.key, "uid": claim.pod.uid, "for": claim.evidence}
            for claim in books.nominations.values()
            if claim.node == name
        ],
        "figures": figures,
        "agrees": figures == anew,
        **({} if figures == anew else {"builtAnew": anew}),
    }


def _pod(pod: records.PodRecord, books: ledger.Ledger) -> dict[str, Any]:
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "requests": dict(pod.requirements.requests),
        "promised": pod.uid in books.assumptions,
    }


def _figures(
    cluster: cluster_state.ClusterState, name: str
) -> dict[str, dict[str, int] | list[int]]:
    view = cluster.view()
    row = view.rows[name]
    return {
        "allocatable": _named(view, view.allocatable[:, row].tolist()),
        "requested": _named(view, view.requested[:, row].tolist()),
        **{plugin: column[:, row].tolist() for plugin, column in view.figures.items()},
    }


def _named(view: views.View, column: list[int]) -> dict[str, int]:
    return dict(zip(view.resources, column, strict=True))


def routes(app: web.Application, books: ledger.Ledger) -> web.Application:
    """Add the page."""

    async def shown(request: web.Request) -> web.Response:
        name = request.query.get("node", "")
        if not name:
            return web.json_response({"error": "node: name the node to show"}, status=400)
        found = document(books, name)
        if found is None:
            return web.json_response({"error": f"node {name} is not known"}, status=404)
        return web.json_response(found)

    app.router.add_get("/debug/picture", shown)
    return app
