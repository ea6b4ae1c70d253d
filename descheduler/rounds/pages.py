"""The page of the last round: what it decided, and why the rest stays."""

from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from api.wire import durations
from descheduler.framework.planning import round_plan
from descheduler.rounds import rounds

_MOST: int = 1000
"""Moves that are shown."""


def served(running: rounds.Rounds, effective: Mapping[str, Any]) -> web.Application:
    """Return all pages; `effective` is the configuration with every default filled in."""

    async def last(_request: web.Request) -> web.Response:
        return _json(document(running.last))

    async def configuration(_request: web.Request) -> web.Response:
        return _json({"deschedulerconfiguration": effective})

    pages = web.Application()
    pages.router.add_get("/configz", configuration)
    pages.router.add_get("/debug/rounds/last", last)
    return pages


def document(outcome: rounds.Outcome) -> dict[str, Any]:
    """Return a round for people and for the command line."""
    found: dict[str, Any] = {"result": outcome.result, "message": outcome.message}
    if outcome.at:
        found["at"] = durations.moment(outcome.at)
    plan = outcome.plan
    if plan is None:
        return found
    spread = plan.spread
    return {
        **found,
        "seconds": round(outcome.seconds, 3),
        "moved": outcome.moved,
        "dryRun": plan.dry_run,
        "spreadPercent": None
        if spread is None
        else {"before": round(spread.before, 2), "after": round(spread.after, 2)},
        "moves": [_move(one) for one in plan.moves[:_MOST]],
        "refused": [
            {
                "plugin": one.plugin,
                "reason": one.reason,
                "count": one.count,
                "examples": list(one.examples),
            }
            for one in plan.refused
        ],
        "kept": [
            {"profile": one.profile, "reason": one.reason, "count": one.count} for one in plan.kept
        ],
        "failures": [
            {"profile": one.profile, "plugin": one.plugin, "error": one.error}
            for one in plan.failures
        ],
        "nodes": [
            {"profile": one.profile, "pool": one.pool, "class": one.kind, "count": one.count}
            for one in plan.counts
        ],
        "notes": [
            {"profile": one.profile, "plugin": one.plugin, "text": one.text} for one in plan.notes
        ],
    }


def _move(move: round_plan.Move) -> dict[str, Any]:
    suggestion, worth = move.suggestion, move.worth
    return {
        "pod": suggestion.pod.key,
        "from": suggestion.pod.node,
        "to": worth.target.node if worth.target is not None else None,
        "profile": move.profile,
        "plugin": suggestion.plugin,
        "reason": suggestion.reason,
        "gain": round(worth.gain, 3),
        "cost": round(worth.cost, 3),
        "figures": {name: round(value, 3) for name, value in worth.figures.items()},
        "dryRun": move.dry_run,
    }


def _json(body: Mapping[str, Any]) -> web.Response:
    text = orjson.dumps(body, option=orjson.OPT_INDENT_2)
    return web.Response(body=text, content_type="application/json")
