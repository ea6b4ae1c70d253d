"""The settings for reads from the API server act on the client that the webhook uses."""

import asyncio
import time

import pytest
from aiohttp import web

from api import resources
from kube.client import access, client, errors
from process.configuration import settings as process_settings
from process.http import server
from process.runtime import clock as clocks
from tests import patience
from webhook import app, settings


class Overloaded:
    """An API server that is overloaded, or never answers."""

    def __init__(self, *, answers: bool = True, at_once: int = 0) -> None:
        self.asked = self.most = self._under_way = 0
        self._answers, self._at_once = answers, at_once
        self._together, self.over = asyncio.Event(), asyncio.Event()

    async def answer(self, _request: web.Request) -> web.Response:
        self.asked += 1
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        if not self._answers:
            await self.over.wait()
        if self._under_way == self._at_once:
            self._together.set()
        if self._at_once:
            # Those that may be under way at once are, however slowly they arrive.
            await self._together.wait()
        await asyncio.sleep(0)
        self._under_way -= 1
        return web.json_response({"kind": "Status", "code": 503}, status=503)


async def read(
    plane: Overloaded, reads: settings.ReadSettings, clock: clocks.Clock, many: int = 1
) -> list[BaseException | object]:
    """Read pods as the webhook does and return what came of it."""
    site = web.Application()
    site.router.add_get("/{path:.*}", plane.answer)
    limits = process_settings.ServerSettings(linger_seconds=0.0, drain_seconds=0.0)
    async with (
        server.running_site(site, limits) as at,
        client.Client(access.Access(at.url), clock=clock, limits=app.limits(reads)) as api,
    ):
        found = await asyncio.gather(
            *(api.get(resources.PODS, "a", "shop") for _ in range(many)), return_exceptions=True
        )
        plane.over.set()
        return list(found)


class Hurried(clocks.ManualClock):
    """Sleeps take no time."""

    async def sleep(self, seconds: float) -> None:
        del seconds
        await asyncio.sleep(0)


@pytest.mark.parametrize("attempts", [1, 3, 7])
async def test_a_read_is_tried_as_often_as_is_set(attempts: int) -> None:
    plane = Overloaded()
    (found,) = await read(plane, settings.ReadSettings(attempts=attempts), Hurried(0.0))
    assert isinstance(found, errors.ServerFailure)
    assert plane.asked == attempts


async def test_one_try_takes_as_long_as_is_set() -> None:
    plane = Overloaded(answers=False)
    started = time.monotonic()
    (found,) = await read(plane, settings.ReadSettings(attempts=2, seconds=0.1), Hurried(0.0))
    assert isinstance(found, errors.Unreachable)
    assert plane.asked == 2
    assert 0.2 <= time.monotonic() - started < patience.SECONDS


@pytest.mark.parametrize("in_flight", [1, 4])
async def test_no_more_reads_are_under_way_than_are_set(in_flight: int) -> None:
    plane = Overloaded(at_once=in_flight)
    reads = settings.ReadSettings(attempts=1, in_flight=in_flight)
    await read(plane, reads, Hurried(0.0), many=12)
    assert (plane.asked, plane.most) == (12, in_flight)
