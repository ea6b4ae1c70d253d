"""Proof that the view is current, asked for when nobody has called for a while.

Whoever was not called may have been cut off, or stood by beside a scheduler that did not lead.
Before it answers again it must have seen every pod that was bound meanwhile.
"""

import asyncio
import logging
from typing import Final, NamedTuple

from api import resources
from api.kubernetes import core
from extender.settings import FreshnessSettings
from extender.state import records
from kube.client import client as clients
from kube.client import errors, wire
from kube.informers import store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02


class _Bound(NamedTuple):
    """Where a pod is."""

    uid: str
    node: str


def _bound(pod: core.Pod) -> _Bound | None:
    if pod.finished or not pod.spec.node_name:
        return None
    return _Bound(pod.metadata.uid, pod.spec.node_name)


_PAGES: Final = wire.Reader(core.Pod, _bound)
"""As the watch reads them: a pod that cannot be read counts as none here and there."""


class Freshness:
    """Remembers when the view was last needed and compares it with the API server if long ago."""

    def __init__(
        self,
        client: clients.Client,
        pods: store.Store[records.PodRecord],
        clock: clocks.Clock,
        settings: FreshnessSettings,
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._settings = settings
        self._proven_at: float | None = None
        self._wanted = 0
        self._wanted_at = 0.0
        self._running: asyncio.Future[str] | None = None

    def trusted(self) -> bool:
        """Whether the view is recent without asking; being needed keeps it so."""
        if not self._is_recent():
            return False
        self._proven_at = self._clock.monotonic()
        return True

    async def doubt(self) -> str:
        """Return why the view cannot be trusted now; empty if it can."""
        if self.trusted():
            return ""
        if self._running is not None:
            # One proof serves all who wait: in turn each would fail long after its caller has gone.
            return await asyncio.shield(self._running)
        self._running = done = asyncio.get_running_loop().create_future()
        answer = "the proof that the view of the cluster is current was interrupted"
        try:
            answer = await self._proof()
        finally:
            self._running = None
            done.set_result(answer)
        return answer

    async def _proof(self) -> str:
        try:
            async with asyncio.timeout(self._settings.proof_seconds):
                await self._prove()
        except TimeoutError:
            return "the view of the cluster could not be proven current in time"
        except errors.KubeError as error:
            return f"the view of the cluster cannot be compared: {error}"
        self._wanted = 0
        self._proven_at = self._clock.monotonic()
        return ""

    def _is_recent(self) -> bool:
        if self._proven_at is None:
            return False
        return self._clock.monotonic() - self._proven_at <= self._settings.idle_seconds

    async def _prove(self) -> None:
        """Wait until the watch has told as much as the API server knew when first asked."""
        if (
            not self._wanted
            or self._clock.monotonic() - self._wanted_at > self._settings.idle_seconds
        ):
            # What was newest when somebody asked long ago proves nothing about today.
            self._wanted_at = self._clock.monotonic()
            self._wanted = await self._client.current_version(resources.PODS)
        while self._pods.version < self._wanted:
            # A quiet watch says nothing although nothing is missing: compare pod by pod.
            if await self._equal():
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _equal(self) -> bool:
        """Compare which pod is bound where with a list that is agreed by the quorum."""
        unseen = {pod.uid: pod.node for pod in self._pods if pod.node}
        query = {"limit": str(clients.PAGE)}
        while True:
            data = await self._client.page(clients.Selection(resources.PODS), query)
            about, pods = _PAGES.piecemeal(data)
            for pod in pods:
                bound = pod.value
                if bound is not None and unseen.pop(bound.uid, "") != bound.node:
                    logger.info("view is behind pod=%s node=%s", pod.meta.key, bound.node)
                    return False
            if not about.continue_:
                return not unseen
            query["continue"] = about.continue_
