"""Debug pages of plug-ins: by which arguments each decides, what it has counted, what it refused.

`/debug/plugins` lists them. The page of one takes `?node=NAME` and `?pod=NAMESPACE/NAME`.
"""

import dataclasses
from typing import Any

import numpy as np
from aiohttp import web

from api.plugin_args import models
from api.wire import durations
from domain.scheduler_settings import known_names, plugin_sets
from extender import registry
from extender.explain import recent_refusals
from extender.framework import pipeline, protocols, views
from extender.informers.configuration import plugin_configuration, plugin_reload
from extender.verbs import verbs
from process.runtime import clock as clocks


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What the pages are read from."""

    answers: verbs.Verbs
    configuration: plugin_configuration.PluginConfiguration
    reload: plugin_reload.PluginReload
    recent: recent_refusals.RecentRefusals
    clock: clocks.Clock


def listing(parts: Parts) -> dict[str, Any]:
    """Return every plug-in with where it is enabled and by whose arguments it decides."""
    return {
        "plugins": [_summary(parts, name) for name in _names()],
        "refused": [str(fault) for fault in parts.configuration.faults],
    }


def page(parts: Parts, name: str, node: str, pod: str) -> dict[str, Any] | None:
    """Return everything about one plug-in; None where there is none of this name."""
    full = known_names.full(name)
    if full not in _names():
        return None
    arguments = parts.reload.selection.arguments.get(full)
    document = _summary(parts, full)
    if arguments is not None:
        document["arguments"] = models.effective(arguments)
    wanted = parts.configuration.wanted.arguments.get(full)
    if wanted is not None and wanted != arguments:
        document["argumentsToCome"] = models.effective(wanted)
    if parts.configuration.faults:
        document["refused"] = [str(fault) for fault in parts.configuration.faults]
    plugin = parts.reload.plugins.get(full)
    if node:
        document["node"] = _node(parts, plugin, node)
    if pod:
        document["pod"] = _pod(parts, plugin, pod, node)
    recent = [] if plugin is None else parts.recent.of(plugin.name)
    refused = [one.document(plugin.name) for one in recent if plugin is not None]
    return document | {"lastRefusals": refused}


def _names() -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known_names.OURS, *registry.PLUGINS)))


def _summary(parts: Parts, name: str) -> dict[str, Any]:
    selection = parts.reload.selection
    return {
        "name": name,
        "built": name in registry.PLUGINS,
        "enabledAt": [point for point in plugin_sets.TAKING_EFFECT if name in selection.at(point)],
        "weight": selection.weight(name),
        "argumentsFrom": selection.sources.get(name, ""),
    }


def _node(parts: Parts, plugin: protocols.Plugin | None, name: str) -> dict[str, Any]:
    view = parts.answers.cluster.view(name)
    row = view.rows.get(name)
    if row is None:
        return {"name": name, "message": f"cannot find node {name}"}
    if not isinstance(plugin, protocols.Inspectable):
        return {"name": name}
    return {"name": name, "figures": dict(plugin.inspect(view.node(row)))}


def _pod(parts: Parts, plugin: protocols.Plugin | None, key: str, node: str) -> dict[str, Any]:
    waiter = parts.answers.waits.get(key)
    if waiter is None:
        return {"name": key, "message": f"pod {key} does not wait, or was never asked about"}
    view, now = parts.answers.cluster.view(node), parts.clock.now()
    found: dict[str, Any] = {
        "name": key,
        "waitingSince": durations.precise_moment(waiter.since),
        "tries": waiter.tries,
    }
    plugins = parts.answers.plugins
    cycle = plugins.cycle(waiter.request, view)
    if plugin is not None:
        found |= _judgement(parts, plugin, cycle, view, now)
    row = view.rows.get(node)
    if row is not None:
        refusal = plugins.filter(cycle, view, np.array([row]), now).refusal(0)
        found["onNode"] = (
            "passes every filter"
            if refusal is None
            else f"{refusal.plugin} refuses it: " + plugins.sentence(cycle, view, row, refusal, now)
        )
    return found


def _judgement(
    parts: Parts, plugin: protocols.Plugin, cycle: pipeline.Cycle, view: views.View, now: float
) -> dict[str, Any]:
    """Count the nodes that this plug-in is the first to refuse."""
    outcome = parts.answers.plugins.filter(cycle, view, np.flatnonzero(view.known), now)
    counts = np.bincount(outcome.codes, minlength=len(outcome.refusals) + 1).tolist()
    refused = {
        refusal.status.reason: count
        for refusal, count in zip(outcome.refusals, counts[1:], strict=True)
        if refusal.plugin == plugin.name and count
    }
    return {"nodes": sum(counts), "nodesPassed": counts[0], "nodesRefusedHere": refused}


def routes(app: web.Application, parts: Parts) -> web.Application:
    """Add the pages."""

    async def plugins(_: web.Request) -> web.Response:
        return web.json_response(listing(parts))

    async def plugin(request: web.Request) -> web.Response:
        name = request.match_info["plugin"]
        asked = request.query
        found = page(parts, name, asked.get("node", ""), asked.get("pod", ""))
        if found is None:
            known = ", ".join(_names())
            message = f"there is no plug-in {name}; there are {known}"
            return web.json_response({"error": message}, status=404)
        return web.json_response(found)

    app.router.add_get("/debug/plugins", plugins)
    app.router.add_get("/debug/plugins/{plugin}", plugin)
    return app
