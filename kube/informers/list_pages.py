"""Lists of an informer: how they begin and end, and when there has to be another one."""

import asyncio
import functools
import logging
from typing import Any, Final

from kube.client import client as clients
from kube.client import errors
from kube.informers import store as stores
from kube.informers import watch_health

logger = logging.getLogger(__name__)

# How much is done before others may run: a large cluster must not stop the process for long.
SLICE: Final = 20
_SCAN: Final = 5000


def query(page: int, version: int | None) -> dict[str, str]:
    """Return how to ask for a first page, not older than a version where one is given."""
    asked = {"limit": str(page)}
    if version is not None:
        # After the first time, not older than what we know.
        asked |= {"resourceVersion": str(version), "resourceVersionMatch": "NotOlderThan"}
    return asked


async def end(store: stores.Store[Any], seen: set[str], version: int) -> int:
    """Forget in slices what a list did not hold; no other code may touch the store meanwhile."""
    gone = 0
    for part in store.absent(seen, _SCAN):
        for start in range(0, len(part), SLICE):
            for key in part[start : start + SLICE]:
                store.forget(key, version)
            await asyncio.sleep(0)
        gone += len(part)
        await asyncio.sleep(0)
    store.finished(version)
    return gone


class SetBackCheck:
    """Finds out after an outage that the API server was set back, for instance to a backup.

    A watch from a version that is yet to come tells nothing until the cluster has reached it, and
    what happened before is never told.
    """

    def __init__(
        self, client: clients.Client, selection: clients.Selection, is_narrow: bool
    ) -> None:
        self._client = client
        self._selection = selection
        self._is_narrow = is_narrow
        self._least = 0

    def suspect(
        self, error: errors.KubeError, contact: watch_health.WatchHealth, delivered: int
    ) -> None:
        """Take in why a watch ended: a backup is restored while every API server is away.

        Such an outage may be shorter than the pause after a failure, so each broken connection and
        each failure of the server is a reason to ask. A stream that was only quiet is none, unless
        it has told nothing since it was opened. What this watch itself has delivered counts also
        where another one of the process has found out already, and so lowered the horizon.
        """
        quiet = isinstance(error, errors.Silent) and not contact.silent()
        if not quiet and isinstance(error, (errors.Unreachable, errors.ServerFailure)):
            self._least = max(self._least, self._client.horizon.version, delivered)

    async def is_set_back(self) -> bool:
        """Return whether the newest version is older than what the watches of this process told.

        Narrow selections are asked for in the server's memory first, since thousands of agents
        do so at once. Each question is asked once: the caller pauses after failures.
        """
        least, ask = self._least, functools.partial(self._client.version_of, attempts=1)
        if not least or (self._is_narrow and await ask(self._selection, cached=True) >= least):
            self._least = 0
            return False
        newest = await ask(self._selection)
        self._least = 0
        if newest >= least:
            return False
        logger.warning(
            "the API server was set back: listing again resource=%s delivered=%d newest=%d",
            self._selection.resource.review_name(), least, newest,
        )  # fmt: skip
        self._client.horizon.version = 0
        return True
