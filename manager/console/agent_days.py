"""What agents did by day, as the leader keeps it in a ConfigMap; read when it is asked for."""

import asyncio
import logging
from typing import Final

from api import names, resources
from api.wire import untrusted
from domain.daily_sums import sums
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

_FRESH_SECONDS: Final = 30.0

logger = logging.getLogger(__name__)


class AgentDays:
    """Remembers the days for half a minute, however many ask."""

    def __init__(self, api: clients.Client, namespace: str, clock: clocks.Clock) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._known: tuple[sums.Day, ...] = ()
        self._until = float("-inf")
        self._reading = asyncio.Lock()

    async def known(self) -> tuple[sums.Day, ...]:
        """Return the days; those that were known last where the API server does not say."""
        async with self._reading:
            if self._clock.monotonic() >= self._until:
                self._known = await self._read()
                self._until = self._clock.monotonic() + _FRESH_SECONDS
            return self._known

    async def _read(self) -> tuple[sums.Day, ...]:
        name = names.CONFIG_MAP_REPORT
        try:
            found = await self._api.get(resources.CONFIG_MAPS, name, self._namespace)
            return sums.read(found.get("data"))
        except errors.NotFound:
            return ()
        except (errors.KubeError, untrusted.ReadError) as error:
            logger.warning("sums cannot be shown name=%s error=%s", name, error)
            return self._known
