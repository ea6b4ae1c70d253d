"""A simulated control plane on which no time passes unless a test says so."""

import asyncio
from collections.abc import Callable
from typing import Any

from api import resources
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests import patience


class SettledPlane:
    """A control plane with one administrator, seen over HTTP."""

    def __init__(self, plane: apiserver.ApiServer, admin: client.Client, clock: ManualClock):
        self.plane = plane
        self.admin = admin
        self.clock = clock

    @property
    def access(self) -> access.Access:
        return access.Access(self.plane.url, self.plane.ca, access.StaticToken(self.plane.token))

    async def until(self, what: Callable[[], Any]) -> Any:
        """Let everybody work, without time passing, until something is true."""
        return await patience.until(what, self.clock.settle, lambda: self.stored(resources.EVENTS))

    async def quiet(self) -> None:
        """Let everybody work until nobody has anything left to do."""
        before = -1
        while before != self.plane.objects.version:
            before = self.plane.objects.version
            for _ in range(4):
                await self.clock.settle()
                await asyncio.sleep(0.001)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, with everybody at work."""
        for _ in range(int(seconds)):
            await self.clock.advance(1.0)
        await self.quiet()

    def stored(self, resource: resources.Resource, name: str = "") -> Any:
        """Return what is stored now: one object or all of a kind."""
        items = self.plane.objects.list(resource).items
        if not name:
            return list(items)
        return next((item for item in items if item["metadata"]["name"] == name), None)
