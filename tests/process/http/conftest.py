"""A site that answers `/echo` in both ways, for tests of servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from process.configuration.settings import ServerSettings
from process.http import fast_path, health, server
from process.runtime import metrics
from process.runtime.clock import ManualClock
from tests.process.http.sites import Serve


@pytest.fixture
def checks() -> health.Health:
    return health.Health()


@pytest.fixture
def registry() -> metrics.Registry:
    return metrics.Registry()


@pytest.fixture(params=["the long way", "the short way"])
def serve(
    checks: health.Health,
    registry: metrics.Registry,
    clock: ManualClock,
    request: pytest.FixtureRequest,
) -> Serve:
    @asynccontextmanager
    async def run(**limits: object) -> AsyncIterator[server.Site]:
        async def echo(request: web.Request) -> web.Response:
            return web.Response(body=await request.read())

        app = server.health_routes(web.Application(), checks, registry)
        app.router.add_post("/echo", echo)
        if request.param == "the short way":
            app[fast_path.ROUTES] = {"/echo": lambda body, connected: body}
        # Not validated, so that limits can be as short as a test is.
        chosen = ServerSettings().model_copy(update={"linger_seconds": 0.0, **limits})
        async with server.running_site(
            app, chosen, clock=clock, checks=checks, registry=registry
        ) as site:
            yield site

    return run
