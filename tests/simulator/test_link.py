"""The client of simulated kubelets, before servers that do not answer as they should."""

import contextlib

import aiohttp
import pytest
from aiohttp import web

from simulator import link


@contextlib.asynccontextmanager
async def answering(clock, status, text):
    async def answer(_request):
        return web.Response(status=status, text=text)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as session:
            yield link.Link(session, f"http://127.0.0.1:{runner.addresses[0][1]}", clock)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("text", ["", "null", "[]", "too many requests"])
async def test_an_answer_that_is_no_object_is_an_error(clock, status, text):
    async with answering(clock, status, text) as client:
        with pytest.raises(link.LinkError):
            await client.call("GET", "/api/v1/pods")


async def test_an_error_has_its_code_and_message(clock):
    async with answering(clock, 409, '{"message": "was changed"}') as client:
        with pytest.raises(link.LinkError, match="was changed") as told:
            await client.call("GET", "/api/v1/pods")
    assert told.value.code == 409
