"""Write to many pods at once during an uninstallation: open gates, remove conditions."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from api import resources
from cli.install import waiting_pods
from cli.output import terminal
from domain import wording
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

AT_ONCE: Final = 16
"""Writes under way."""
MOST_FAILURES: Final = 20
"""After so many refused writes the others are not tried."""
PROGRESS_SECONDS: Final = 5.0
_MANAGER: Final = "koord-uninstall"


async def one(kube: clients.Client, release: waiting_pods.Release) -> None:
    """Carry out one write; raise NotFound or Conflict if the pod is gone."""
    match release:
        case waiting_pods.OpenGates():
            subresource = ""
        case waiting_pods.DropCondition():
            subresource = "status"
        case _:
            assert_never(release)
    await kube.patch(
        resources.PODS,
        release.name,
        release.body,
        namespace=release.namespace,
        kind=clients.Patch.STRATEGIC,
        subresource=subresource,
        field_manager=_MANAGER,
    )


class Releasing:
    """One pass over pods, with progress; what remains is found again by the next pass."""

    def __init__(self, kube: clients.Client, clock: clocks.Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._done = 0
        self._told_at = clock.monotonic()
        self.failures: list[str] = []

    async def run(self, releases: Sequence[waiting_pods.Release]) -> None:
        """Write to all of these pods; fills `failures`."""
        if not releases:
            return
        left = iter(releases)
        workers = (self._work(left, len(releases)) for _ in range(min(AT_ONCE, len(releases))))
        await asyncio.gather(*workers)
        writes = wording.count(self._done, "write", "writes")
        for sentence in waiting_pods.sentences(releases):
            terminal.say(f"{sentence} ({writes}, {len(self.failures)} refused)")

    async def _work(self, left: Iterator[waiting_pods.Release], total: int) -> None:
        for release in left:
            try:
                await one(self._kube, release)
            except (errors.NotFound, errors.Conflict):
                continue  # The pod is gone meanwhile, or another one of its name.
            except errors.KubeError as error:
                self.failures.append(f"{release.sentence()}: {error}")
                if len(self.failures) >= MOST_FAILURES:
                    return
            else:
                self._done += 1
                self._tell(total)

    def _tell(self, total: int) -> None:
        now = self._clock.monotonic()
        if now >= self._told_at + PROGRESS_SECONDS:
            self._told_at = now
            pods = wording.count(total, "waiting pod", "waiting pods")
            terminal.say(f"{self._done} of {pods} released")
