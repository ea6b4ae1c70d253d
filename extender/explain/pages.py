"""Debug pages for people: why a pod waits, how a node is seen, and which pages there are.

The paths under /apis/v1 are those that tools for Koordinator's scheduler ask for.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from aiohttp import web

from api.wire import durations
from extender.explain import refusals
from extender.framework import protocols, views
from extender.preemption import preview
from extender.state import cluster_state, deltas, records
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
        if answers.plugins.selectors or answers.plugins.cluster_selectors:
            document["preemption"] = preview.shown(
                answers.plugins, answers.cluster, answers.preemptions, waiter, now
            )
    if constraints := _constraints(answers, pod):
        document |= {"constraints": constraints}
    decision = answers.decider.decisions.get(pod) if answers.decider is not None else None
    if decision is not None:
        document |= {"decision": decision.document()}
    return document or None


def _constraints(answers: verbs.Verbs, pod: str) -> list[dict[str, Any]]:
    """Return what a waiting pod is asked for whichever node it takes, tried or not."""
    waiter = answers.waits.get(pod)
    found = waiter.request if waiter is not None else None
    if found is None:
        shown = (record for record, is_placed in pods(answers.cluster) if not is_placed)
        found = next((views.PodInfo.of(one) for one in shown if one.key == pod), None)
    if found is None:
        return []
    view = answers.cluster.view()
    told = answers.plugins.constraints(answers.plugins.cycle(found, view), view)
    return [
        {"plugin": name, "figures": one.figures, "refuses": bool(one.helps)}
        | {"wouldHelp": list(one.helps)}
        for name, one in told.items()
    ]


def pods(cluster: cluster_state.ClusterState) -> Iterator[tuple[records.PodRecord, bool]]:
    """Yield pods that have a node or are assumed on one, and pending ones that plug-ins count."""
    for pod in cluster.placements().values():
        yield pod, True
    for one in cluster.objects():
        if one.kind == deltas.UNSCHEDULED_POD and isinstance(one.after, records.PodRecord):
            yield one.after, False


def cluster_page(
    answers: verbs.Verbs, page: str, collection: str, *, is_named: bool = False
) -> protocols.ClusterPage | None:
    """Return the plug-in that has pages of this name, None where none is enabled.

    `is_named`: the page of one of a namespace, which is found by what one is called.
    """
    return next(
        (
            plugin
            for plugin in answers.plugins.filters
            if isinstance(plugin, protocols.ClusterPage)
            and plugin.page == page
            and collection == (plugin.item if is_named else plugin.collection)
        ),
        None,
    )


def node(cluster: cluster_state.ClusterState, name: str) -> dict[str, Any] | None:
    """Return a node as it is counted, in the shape of a scheduler's cache."""
    found = cluster.node(name)
    if found is None:
        return None
    pods = [claim.pod for claim in cluster.claims_on(name)]
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
        return _shown({"GET": sorted([*pages, *_plugin_paths(answers)])})

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
    _cluster_routes(app, answers)
    for path, page in pages.items():
        app.router.add_get(path, page)
    return app


def _cluster_routes(app: web.Application, answers: verbs.Verbs) -> None:
    async def whole(request: web.Request) -> web.Response:
        page, collection = request.match_info["plugin"], request.match_info["collection"]
        name, namespace = request.match_info.get("name"), request.match_info.get("namespace")
        found = cluster_page(answers, page, collection, is_named=namespace is not None)
        name = f"{namespace}/{name}" if namespace is not None else name
        if found is None:
            return _error(404, f"{page} is not enabled, or has no {collection}")
        view, told = answers.cluster.view(), pods(answers.cluster)
        if name is None:
            return _shown(found.listed(view, request.query, told))
        shown = found.named(name, view, request.query, told)
        if shown is None:
            message = f"cannot find {found.item} {name}"
            return web.json_response({"message": message}, status=404)
        return _shown(shown)

    app.router.add_get(f"{_V1}/plugins/{{plugin}}/{{collection}}", whole)
    app.router.add_get(f"{_V1}/plugins/{{plugin}}/{{collection}}/{{name}}", whole)
    app.router.add_get(f"{_V1}/plugins/{{plugin}}/{{collection}}/{{namespace}}/{{name}}", whole)


def _plugin_paths(answers: verbs.Verbs) -> Iterator[str]:
    for plugin in answers.plugins.filters:
        if isinstance(plugin, protocols.NodePage):
            yield f"{_V1}/plugins/{plugin.page}/node/{{node}}"
        if isinstance(plugin, protocols.ClusterPage):
            yield f"{_V1}/plugins/{plugin.page}/{plugin.collection}"
            path = f"{_V1}/plugins/{plugin.page}"
            named = f"{plugin.item}/{{namespace}}" if plugin.namespaced else plugin.collection
            yield f"{path}/{named}/{{name}}"


def _shown(document: Any) -> web.Response:
    return web.json_response(document)


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
