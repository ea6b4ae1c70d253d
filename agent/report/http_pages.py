"""Pages of the agent: probes, figures, what it decided and what it did."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from agent.apply import audit_log
from agent.loop import ticks
from agent.report import scorecard, scorekeeper
from process.http import health, server
from process.runtime import metrics

AUDIT_PATH = "/debug/audit"
EVENTS_PATH = "/events"
SCORECARD_PATH = "/scorecard"
USUAL_EVENTS, MOST_EVENTS = 256, 2048
_LONGEST_NUMBER = 9


def pages(
    checks: health.Health,
    figures: metrics.Registry,
    loop: ticks.Ticks,
    log: audit_log.AuditLog,
    scores: scorekeeper.Scorekeeper,
    most_events: int = MOST_EVENTS,
) -> web.Application:
    """Return all pages of the health port."""

    async def show_audit(_request: web.Request) -> web.Response:
        body: Mapping[str, Any] = {
            "decision": loop.decided.reason,
            "strategies": {
                name: {
                    "mode": loop.mode(name).value,
                    "reason": decision.reason,
                    "wants": len(decision.wanted),
                    "evicts": [f"{one.namespace}/{one.name}" for one in decision.evictions],
                    "figures": dict(decision.figures),
                }
                for name, decision in loop.decisions.items()
            },
            "records": [record.as_json() for record in loop.audit.records()],
        }
        return web.json_response(body)

    async def show_events(request: web.Request) -> web.Response:
        return _events(request, log, most_events)

    async def show_scorecard(request: web.Request) -> web.Response:
        text = request.query.get("days", str(scorecard.KEEP_DAYS))
        days = _number(text, scorecard.KEEP_DAYS)
        if days is None:
            said = f"days {text[:40]!r} is not a number of 1 to {scorecard.KEEP_DAYS}\n"
            return web.Response(status=400, text=said)
        return web.json_response({"days": await asyncio.to_thread(scores.days, days)})

    made = server.health_routes(web.Application(), checks, figures)
    made.router.add_get(AUDIT_PATH, show_audit)
    made.router.add_get(EVENTS_PATH, show_events)
    made.router.add_get(SCORECARD_PATH, show_scorecard)
    return made


def _events(request: web.Request, log: audit_log.AuditLog, most: int) -> web.Response:
    """Answer `?size=N&pageToken=T`: newest first; a token that is too old is a conflict."""
    text = request.query.get("size", str(min(USUAL_EVENTS, most)))
    size = _number(text, most)
    if size is None:
        return web.Response(status=400, text=f"size {text[:40]!r} is not a number of 1 to {most}\n")
    try:
        page = log.page(size, request.query.get("pageToken", ""))
    except audit_log.TokenError as error:
        return web.Response(status=409, text=f"{error}\n")
    return web.json_response({"NextPageToken": page.token, "Events": list(page.events)})


def _number(text: str, most: int) -> int | None:
    """Return a number of 1 to `most`, None for any other text."""
    number = int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else 0
    return number if 0 < number <= most else None
