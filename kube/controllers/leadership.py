"""Whose turn it is to work: an election among replicas, or a replica that is alone."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from kube.client import access as accesses
from kube.client import client
from kube.controllers import leases
from process.runtime import clock as clocks
from process.runtime import metrics

Work = Callable[[client.Client], Coroutine[Any, Any, None]]
"""What to do while it is our turn, with a client that stops writing when it no longer is."""


class Leadership(Protocol):
    """Whether this replica works, and how it comes to."""

    @property
    def leading(self) -> bool:
        """Whether this replica works at this moment."""

    async def run(self, api: client.Client, work: Work) -> None:
        """Work whenever it is this replica's turn, for ever."""


class _Elected:
    def __init__(self, elector: leases.Elector) -> None:
        self._elector = elector

    @property
    def leading(self) -> bool:
        return self._elector.leading

    async def run(self, api: client.Client, work: Work) -> None:
        await self._elector.run(lambda fence: work(api.fenced(fence)))


class _Alone:
    leading = True

    async def run(self, api: client.Client, work: Work) -> None:
        await work(api)


def of(
    lease: leases.Lease | None,
    access: accesses.Access,
    clock: clocks.Clock,
    figures: metrics.Registry,
) -> Leadership:
    """Return how this replica comes to work: by holding a lease, or without one at once."""
    if lease is None:
        return _Alone()
    return _Elected(leases.Elector(access, clock, lease, registry=figures))
