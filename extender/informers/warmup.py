"""Brings the snapshot up to date in slices, so that no call waits for a long list."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from extender.informers import event_handlers
from extender.state import cluster_state
from kube.informers import informer_set, store
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

# What one turn of the event loop, and at most one call, may spend on summaries.
_SLICE_ROWS: Final = 20
_REFRESH_SECONDS: Final = 0.02


class Warmup:
    """Computes the summaries of changed nodes before they are asked for."""

    def __init__(
        self,
        cluster: cluster_state.ClusterState,
        members: informer_set.InformerSet,
        clock: clocks.Clock,
        complete: Callable[[], bool] = lambda: True,
    ) -> None:
        """`complete` is called whenever the figures of every node are there.

        It returns False while there is more to do before the first call can be answered.
        """
        self._complete = complete
        self._cluster = cluster
        self._members = members
        self._clock = clock
        self._nap = clocks.Nap(clock)
        self.loaded = asyncio.Event()
        """Set once the cluster has been listed and its summaries are there."""
        cluster.followers.append(lambda _delta: self._nap.wake())

    def health(self) -> str | None:
        """Return why the picture cannot be used yet."""
        return None if self.loaded.is_set() else "the cluster is still being listed"

    def wake(self) -> None:
        """Look soon whether there is something to compute; changes of the state do so as well."""
        self._nap.wake()

    def follow(self, watched: event_handlers.Informers) -> None:
        """Keep up with changes that arrive faster than summaries are computed in between."""
        for told in (watched.pods, watched.nodes, watched.reports):
            told.listen(self._changed)

    def _changed(self, _change: store.Change[Any]) -> None:
        # The one who brings much pays for it at once, or a call would pay for all of it later.
        if self.loaded.is_set() and self._cluster.stale_rows() > _SLICE_ROWS:
            self._cluster.refresh(2)

    async def run(self) -> None:
        """Load, then keep up, for ever."""
        await self._members.synced()
        while self._cluster.refresh(_SLICE_ROWS):
            await self._clock.sleep(0)
        while not self._complete():
            await self._clock.sleep(0)
        self.loaded.set()
        logger.info("picture is complete nodes=%d", self._cluster.node_count())
        self.wake()
        while True:
            await self._nap.rest(None)
            # What changes meanwhile is computed together.
            await self._clock.sleep(_REFRESH_SECONDS)
            while self._cluster.refresh(_SLICE_ROWS):
                await self._clock.sleep(0)
            if not self._complete():
                self.wake()
