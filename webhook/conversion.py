"""Conversion of our custom resources between versions: the schemas are equal, so names change."""

import logging

from aiohttp import web

from api import resources
from api.kubernetes.webhooks import conversion
from process.runtime import metrics

logger = logging.getLogger(__name__)

PATH = "/convert"
GROUPS = frozenset(resource.group for resource in resources.CUSTOM)
"""The groups whose kinds are converted."""


class Conversion:
    """Answers the API server's requests to convert objects."""

    def __init__(self, figures: metrics.Registry) -> None:
        self._converted = figures.counter(
            "koord_webhook_conversions_total",
            "Conversion requests by result.",
            ("result",),
            known=(("converted",), ("failed",)),
        )

    def routes(self) -> list[web.RouteDef]:
        """Return the one route."""
        return [web.post(PATH, self._handle)]

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            asked = conversion.decode(body)
        except (conversion.ReviewError, RecursionError) as wrong:
            raise web.HTTPBadRequest(text=f"{wrong}\n") from wrong
        answer = conversion.convert(asked, GROUPS)
        result = "failed" if answer.problem else "converted"
        self._converted.labels(result).inc()
        if answer.problem:
            logger.warning("not converted to=%s reason=%s", asked.desired, answer.problem)
        return web.Response(body=conversion.encode(answer), content_type="application/json")
