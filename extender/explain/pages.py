"""Debug pages for people: why a pod waits, how a node is seen, and which pages there are.

The paths under /apis/v1 are those that tools for Koordinator's scheduler ask for.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from api.wire import durations
from extender.explain import refusals
from extender.framework import protocols
from extender.state import cluster_state
from extender.verbs import verbs
from process.runtime import clock as clocks

_V1 = "/apis/v1"


def explained(answers: verbs.Verbs, pod: str, now: float) -> dict[str, Any] | None:
    """Return what is known of a pod: the last attempt, and how nodes judge it now if it waits."""
    last, waiter = answers.explanations.get(pod), answers.waits.get(pod)
    document = {} if last is None else last.document()
    if waiter is not None:
        view = answers.cluster.view()
        account = refusals.account(answers.plugins, waiter.request, view, waiter.rows(view), now)
        document |= {
            "waitingSince": durations.precise_moment(waiter.since),
            "tries": waiter.tries,
            "nudges": waiter.wakings,
            "present": {
                "at": durations.precise_moment(now),
                "asked": account.asked,
                "passed": account.passed,
                "groups": [group.document() for group in account.groups],
                "sentence": account.sentence(),
            },
        }
    decision = answers.decider.decisions.get(pod) if answers.decider is not None else None
    if decision is not None:
        document |= {"decision": decision.document()}
    return document or None


def node(cluster: cluster_state.ClusterState, name: str) -> dict[str, Any] | None:
    """Return a node as it is counted, in the shape of a scheduler's cache."""
    found = cluster.node(name)
    if found is None:
        return None
    pods = cluster.pods_on(name)
    requested: dict[str, int] = {}
    for pod in pods:
        for resource, value in pod.requirements.requests:
            requested[resource] = requested.get(resource, 0) + value
    allocatable = dict(found.allocatable)
    remaining = {key: value - requested.get(key, 0) for key, value in allocatable.items()}
    return {
        "node": name,
        "pods": sorted(pod.key for pod in pods),
        "allocatable": allocatable,
        "requested": dict(sorted(requested.items())),
        "remaining": remaining,
    }


def counted_by(answers: verbs.Verbs, page: str, name: str) -> Mapping[str, Any] | None:
    """Return what a plug-in counts on a node, nothing for an unknown one; None: no such plug-in."""
    plugins = (p for p in answers.plugins.filters if isinstance(p, protocols.NodePage))
    plugin = next((p for p in plugins if p.page == page), None)
    if plugin is None:
        return None
    view = answers.cluster.view()
    row = view.rows.get(name)
    return {} if row is None else plugin.shown(view.node(row))


def routes(app: web.Application, answers: verbs.Verbs, clock: clocks.Clock) -> web.Application:
    """Add the pages."""
    pages: dict[str, Callable[[web.Request], Awaitable[web.Response]]] = {}

    async def why(request: web.Request) -> web.Response:
        pod = request.query.get("pod", "")
        if pod.count("/") != 1:
            return _error(400, "pod: name it as namespace/name")
        found = explained(answers, pod, clock.now())
        return _shown(found) if found else _error(404, f"pod {pod} was not refused lately")

    async def counted(request: web.Request) -> web.Response:
        name = request.match_info["node"]
        found = node(answers.cluster, name)
        if found is None:
            return web.json_response({"message": f"cannot find node {name}"}, status=404)
        return _shown(found)

    async def services(_: web.Request) -> web.Response:
        own = (p for p in answers.plugins.filters if isinstance(p, protocols.NodePage))
        return _shown(
            {"GET": sorted([*pages, *(f"{_V1}/plugins/{p.page}/node/{{node}}" for p in own)])}
        )

    pages |= {
        "/debug/explain": why,
        f"{_V1}/__services__": services,
        f"{_V1}/nodes/{{node}}": counted,
    }

    async def plugin(request: web.Request) -> web.Response:
        page = request.match_info["plugin"]
        found = counted_by(answers, page, request.match_info["node"])
        return _error(404, f"{page} is not enabled") if found is None else _shown(found)

    app.router.add_get(f"{_V1}/plugins/{{plugin}}/node/{{node}}", plugin)
    for path, page in pages.items():
        app.router.add_get(path, page)
    return app


def _shown(document: Any) -> web.Response:
    return web.json_response(document)


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
