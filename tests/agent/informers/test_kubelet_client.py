"""Asking the kubelet: tokens, bad answers, empty answers."""

import asyncio
import contextlib
import json
import pathlib
import re

import aiohttp
import pytest
import yarl
from aiohttp import web

from agent.informers import kubelet_client, kubelet_trust
from tests import patience

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}}


class Endpoint:
    """A kubelet that answers what a test says."""

    def __init__(self):
        self.body, self.status, self.authorization = b'{"items": []}', 200, []
        self.odd = None

    async def answer(self, request):
        if self.odd is not None:
            return await self.odd(request)
        self.authorization.append(request.headers.get("Authorization"))
        return web.Response(body=self.body, status=self.status)


@pytest.fixture
async def endpoint():
    endpoint = Endpoint()
    pages = web.Application()
    pages.router.add_get("/pods", endpoint.answer)
    runner = web.AppRunner(pages, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield endpoint
    await runner.cleanup()


def trusting(folder, check="off"):
    return kubelet_trust.Trust(check, None, folder / "pin")


@pytest.fixture
async def asking(endpoint, tmp_path):
    async with aiohttp.ClientSession() as session:
        yield kubelet_client.Kubelet(session, endpoint.url, trusting(tmp_path))


def listing(count=1):
    return json.dumps({"items": [POD] * count}).encode()


async def test_pods_are_read(endpoint, asking):
    endpoint.body = listing()
    assert await asking.refresh()
    assert [pod.metadata.name for pod in asking.pods] == ["p"]
    assert asking.problem == ""


async def test_an_empty_node_may_answer_null(endpoint, asking):
    endpoint.body = b'{"items": null}'
    assert await asking.refresh()
    assert asking.pods == ()


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"{", 200, "answered no list of pods"),
        (b'{"items": [{"metadata": 5}]}', 200, "answered no list of pods"),
        (b"[]", 200, "answered no list of pods"),
        (b"no", 401, "answered 401"),
        (b"{}", 503, "answered 503"),
    ],
    ids=["cut off", "wrong shape", "a list", "unauthorized", "down"],
)
async def test_a_bad_answer_keeps_the_last_list(endpoint, asking, body, status, problem):
    endpoint.body = listing()
    await asking.refresh()
    endpoint.body, endpoint.status = body, status
    assert not await asking.refresh()
    assert problem in asking.problem
    assert len(asking.pods) == 1


async def test_an_empty_answer_is_believed_the_third_time(endpoint, asking):
    endpoint.body = listing()
    await asking.refresh()
    endpoint.body = b'{"items": []}'
    assert [await asking.refresh() for _ in range(3)] == [False, False, True]
    assert asking.pods == ()


async def test_a_full_answer_in_between_starts_over(endpoint, asking):
    for body in (listing(), b"{}", b"{}", listing(), b"{}", b"{}"):
        endpoint.body = body
        await asking.refresh()
    assert len(asking.pods) == 1


async def test_nobody_there(asking):
    asking._url = yarl.URL("https://127.0.0.1:1/pods")
    told = set()
    for _ in range(2):
        assert not await asking.refresh()
        told.add(asking.problem)
    assert len(told) == 1
    assert "ClientConnectorError: 127.0.0.1:1: " in asking.problem
    assert " object at " not in asking.problem


async def test_a_huge_answer_is_cut(endpoint, asking, monkeypatch):
    monkeypatch.setattr(kubelet_client, "MOST_BYTES", 1000)
    endpoint.body = listing(100)
    assert not await asking.refresh()
    assert "larger than 1000 bytes" in asking.problem


async def test_the_token_is_read_again_each_time(endpoint, tmp_path):
    token = tmp_path / "token"
    async with aiohttp.ClientSession() as session:
        asking = kubelet_client.Kubelet(session, endpoint.url, trusting(tmp_path), token_file=token)
        assert not await asking.refresh()
        assert "No such file" in asking.problem
        for text in ("one\n", "two"):
            token.write_text(text)
            assert await asking.refresh()
    assert endpoint.authorization == ["Bearer one", "Bearer two"]


async def test_over_plain_http_no_token_is_sent(endpoint, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    async with aiohttp.ClientSession() as session:
        asking = kubelet_client.Kubelet(
            session, endpoint.url, trusting(tmp_path, "auto"), token_file=token
        )
        assert await asking.refresh()
        endpoint.status = 401
        assert not await asking.refresh()
        assert "sent no token, unless kubelet.verify is off" in asking.problem
    assert endpoint.authorization == [None, None]


async def test_nobody_is_followed_elsewhere(endpoint, asking):
    endpoint.status = 302
    assert not await asking.refresh()
    assert "answered 302" in asking.problem


def opened():
    return sum(1 for _ in pathlib.Path("/proc/self/fd").iterdir())


async def half(request):
    """A half of what was promised."""
    answer = web.StreamResponse(headers={"Content-Length": "1000"})
    await answer.prepare(request)
    await answer.write(listing()[:20])
    request.transport.close()
    return answer


async def never(request):
    """The head of an answer, and then nothing more."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b'{"items": [')
    await asyncio.Event().wait()
    return answer


async def hangs_up(request):
    """No answer at all."""
    request.transport.abort()
    return web.Response()


async def endless(request):
    """An answer that never ends, as fast as it is taken."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await answer.write(b" " * 65536)
    return answer


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        (half, "ClientPayloadError"),
        (never, "TimeoutError"),
        (hangs_up, "ServerDisconnectedError|ClientOSError"),
        (endless, "larger than|TimeoutError"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_an_answer_that_is_none_is_named_and_ends(
    endpoint, tmp_path, monkeypatch, odd, problem
):
    monkeypatch.setattr(kubelet_client, "MOST_BYTES", 1 << 20)
    endpoint.body = listing()
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=patience.SECONDS)
    ) as session:
        asking = kubelet_client.Kubelet(session, endpoint.url, trusting(tmp_path))
        assert await asking.refresh()
        session._timeout = aiohttp.ClientTimeout(total=0.2 if odd is never else 10)
        endpoint.odd = odd
        before = opened()
        for _ in range(3):
            assert not await asking.refresh()
            assert re.search(problem, asking.problem), asking.problem
            assert len(asking.pods) == 1
        assert opened() <= before + 8
        endpoint.odd, session._timeout = None, aiohttp.ClientTimeout(total=patience.SECONDS)
        assert await asking.refresh()
        assert asking.problem == ""
