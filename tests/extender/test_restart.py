"""The process ends in the middle of a bind and starts again: nothing is lost or booked twice."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from api import names
from extender import app, settings
from extender.state import invariants
from process.runtime import clock
from tests import patience

STRATEGY = {"enable": True, "cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 30}


def _settings():
    anywhere = {"port": 0, "linger_seconds": 0, "drain_seconds": 0.2}
    return settings.Settings(server=anywhere, health=anywhere)


async def _bind(session, url, name, node):
    body = {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}", "Node": node}
    async with session.post(f"{url}/bind", json=body) as answer:
        return (await answer.json())["Error"]


@pytest.mark.parametrize(
    ("fault", "bound"),
    [
        pytest.param("held before", False, id="before the write"),
        pytest.param("held after", True, id="after the write, before its answer"),
        pytest.param("", True, id="after the answer, before the echo"),
    ],
)
async def test_a_restart_in_the_middle_of_a_bind(api_server, make, fault, bound):
    job = {"kubernetes.io/batch-cpu": "10000"}
    api_server.put("nodes", make.node("n1"))
    api_server.put("pods", make.pod("online", node="n1", requests={"cpu": "80"}))
    for name in ("first", "second"):
        api_server.put("pods", make.pod(name, band="koord-batch", requests=job))
    strategy = {"colocation-config": json.dumps(STRATEGY)}
    metadata = {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE, "uid": "c"}
    api_server.put("configmaps", {"metadata": metadata, "data": strategy})
    api_server.fault = fault
    api_server.echo = False
    async with api_server.serving() as access, aiohttp.ClientSession() as session:
        async with app.running(_settings(), access=access, clock=clock.ManualClock()) as made:
            await patience.arrives(lambda: made.health.ready)
            call = asyncio.gather(_bind(session, made.url, "first", "n1"))
            if fault:
                await asyncio.wait_for(api_server.held.wait(), patience.SECONDS)
                assert [p.placed.name for p in made.books.assumptions.values()] == ["first"]
            else:
                assert await call == [""]
        with contextlib.suppress(aiohttp.ClientError):
            await call
        assert [key for key, _ in api_server.bindings] == (["default/first"] if bound else [])
        api_server.fault, api_server.echo = "", True
        async with app.running(_settings(), access=access, clock=clock.ManualClock()) as made:
            await patience.arrives(lambda: made.health.ready)
            assert invariants.check(made.books, made.feeds.pods) == []
            counted = made.books.cluster.placed("uid-first")
            assert (counted.node if counted else "") == ("n1" if bound else "")
            assert await _bind(session, made.url, "first", "n1") == ""
            assert "may be lent" in await _bind(session, made.url, "second", "n1")
            await patience.arrives(lambda: not made.books.assumptions)
            assert invariants.check(made.books, made.feeds.pods) == []
            assert invariants.over_lent(made.books.cluster, "BatchFit") == []
    assert api_server.bindings == [("default/first", "n1")]
