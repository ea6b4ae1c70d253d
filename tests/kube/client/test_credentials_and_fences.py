"""Credentials are read and renewed in time, and no write leaves after its lease."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api import resources
from kube.client import access, client, errors
from kube.controllers import leases
from process.runtime import clock as clocks
from tests import patience
from tests.kube.client.requested import BODY, POD, Act, Renewing

PODS = "/api/v1/pods"


async def test_rotated_token_is_used_at_once(
    server: Any, connect: Callable[..., client.Client], tmp_path: Path, pod: Any
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    server.on("GET", POD, server.json(pod("a", 3)))
    async with connect(tokens=access.TokenFile(file)) as api:
        await api.get(resources.PODS, "a", "shop")
        (tmp_path / "new").write_text("second\n")
        (tmp_path / "new").rename(file)
        await api.get(resources.PODS, "a", "shop")
        file.unlink()
        await api.get(resources.PODS, "a", "shop")
    tokens = [seen.headers["Authorization"] for seen in server.seen]
    assert tokens == ["Bearer first", "Bearer second", "Bearer second"]


@pytest.mark.parametrize("unfit", ["a\nb", "a\x00", "schlüssel"])
async def test_token_that_no_header_can_carry_is_an_outage_for_every_call(
    server: Any, connect: Callable[..., client.Client], tmp_path: Path, unfit: str
) -> None:
    """Lists and watches fail as short questions do; an earlier token goes on serving."""
    file = tmp_path / "token"
    file.write_text(unfit)
    server.on("GET", POD, server.json({}))
    server.on("GET", PODS, server.page([], 7), server.watch(then="end"))
    selection = client.Selection(resources.PODS)
    async with connect(tokens=access.TokenFile(file)) as api:
        with pytest.raises(errors.AccessError):
            await api.get(resources.PODS, "a", "shop")
        with pytest.raises(errors.AccessError):
            await api.page(selection, {})
        with pytest.raises(errors.AccessError):
            async with api.watch(selection, {}):
                pass
        assert server.seen == []
        file.write_text("good")
        await api.get(resources.PODS, "a", "shop")
        file.write_text(unfit)
        await api.page(selection, {})
    assert server.seen[-1].headers["Authorization"] == "Bearer good"


async def test_refused_credential_is_renewed_once_even_for_writes(
    server: Any, connect: Callable[..., client.Client]
) -> None:
    server.on("DELETE", POD, server.refuse(401), server.json({"kind": "Status"}))
    tokens = Renewing()
    async with connect(tokens=tokens) as api:
        await api.delete(resources.PODS, "a", "shop")
        assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer 0", "Bearer 1"]
        server.on("DELETE", POD, server.refuse(401))
        with pytest.raises(errors.Unauthorized):
            await api.delete(resources.PODS, "a", "shop")
    assert (len(server.seen), tokens.renewed) == (4, 2)


class PausedClock(clocks.ManualClock):
    """A clock that can move without waking anybody, as for a process that was stopped."""

    def freeze(self, seconds: float) -> None:
        self._move(self._elapsed + seconds)


class TestFence:
    """No write leaves after the deadline of the lease that allows it."""

    @pytest.fixture
    def clock(self) -> PausedClock:
        return PausedClock()

    async def test_nothing_is_sent_after_the_deadline(
        self, server: Any, api: client.Client, clock: PausedClock, pod: Any
    ) -> None:
        server.on("DELETE", POD, server.json({"kind": "Status"}))
        server.on("GET", POD, server.json(pod("a", 1)))
        fence = leases.Fence(clock, clock.monotonic() + 15)
        fenced = api.fenced(fence)
        await fenced.delete(resources.PODS, "a", "shop")
        clock.freeze(15)
        writes: list[Act] = [
            lambda api: api.create(resources.PODS, BODY, "shop"),
            lambda api: api.update(resources.PODS, BODY),
            lambda api: api.patch(resources.PODS, "a", {}, namespace="shop"),
            lambda api: api.delete(resources.PODS, "a", "shop"),
            lambda api: api.bind("shop", "a", uid="u", node="n", annotations={}),
            lambda api: api.evict("shop", "a"),
        ]
        for act in writes:
            with pytest.raises(errors.Deposed):
                await act(fenced)
        with pytest.raises(errors.Deposed):
            # One write may have a guard of its own.
            await api.bind("shop", "a", uid="u", node="n", annotations={}, guard=fence)
        # Reading is harmless, and whoever is not fenced goes on.
        await fenced.get(resources.PODS, "a", "shop")
        await api.delete(resources.PODS, "a", "shop")
        assert [seen.method for seen in server.seen] == ["DELETE", "GET", "DELETE"]

    async def test_pause_while_waiting_for_a_connection_stops_the_write(
        self, server: Any, connect: Callable[..., client.Client], clock: PausedClock
    ) -> None:
        """The process stops between the first check and the moment the bytes would leave."""
        server.on("DELETE", POD, server.json({"kind": "Status"}))

        class SlowToken:
            async def authorization(self) -> str:
                clock.freeze(30)
                return "Bearer x"

            async def renew(self) -> None:
                return None

        async with connect(tokens=SlowToken()) as api:
            fenced = api.fenced(leases.Fence(clock, clock.monotonic() + 15))
            with pytest.raises(errors.Deposed):
                await fenced.delete(resources.PODS, "a", "shop")
        assert server.seen == []

    async def test_request_lasts_no_longer_than_the_lease(
        self, server: Any, api: client.Client, clock: PausedClock
    ) -> None:
        server.on("DELETE", POD, server.hold())
        fenced = api.fenced(leases.Fence(clock, clock.monotonic() + 0.05))
        async with asyncio.timeout(patience.SECONDS):
            with pytest.raises(errors.Unreachable, match="in time"):
                await fenced.delete(resources.PODS, "a", "shop")

    async def test_no_repetition_after_a_renewed_credential_either(
        self, server: Any, connect: Callable[..., client.Client], clock: PausedClock
    ) -> None:
        class Slow(Renewing):
            async def renew(self) -> None:
                clock.freeze(30)

        server.on("DELETE", POD, server.refuse(401))
        async with connect(tokens=Slow()) as api:
            fenced = api.fenced(leases.Fence(clock, clock.monotonic() + 15))
            with pytest.raises(errors.Deposed):
                await fenced.delete(resources.PODS, "a", "shop")
        assert len(server.seen) == 1
