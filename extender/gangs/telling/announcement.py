"""Tells admission of a backlog of members, by a Lease: then small gangs are admitted without gates.

Readers go by its renewals, so that it ends soon after the extender has.
"""

import datetime
import logging
from typing import Any, Final

from api import names, resources
from extender.gangs import backlog
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

logger = logging.getLogger(__name__)

_LEASE_SECONDS: Final = 5
_RENEW_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class Announcement:
    """Holds the Lease while there is a backlog."""

    def __init__(
        self,
        client: clients.Client,
        clock: clocks.Clock,
        of: backlog.Backlog,
        namespace: str,
        identity: str,
    ) -> None:
        self._client, self._clock, self._of = client, clock, of
        self._namespace, self._identity = namespace, identity
        self._nap = clocks.Nap(clock)
        of.followers.append(self._nap.wake)

    async def run(self) -> None:
        """Hold and release the Lease, for ever; what could not be written is tried again.

        It is made at the start: readers take the first sight of a Lease for an old one.
        """
        held, pause = True, _RENEW_SECONDS
        while True:
            lasts = self._of.lasts
            if held or lasts:
                wrote = await self._write(lasts)
                held = lasts or not wrote
                pause = _RENEW_SECONDS if wrote else min(2 * pause, _LONGEST_PAUSE_SECONDS)
            await self._nap.rest(pause if held or self._of.lasts else None)

    async def _write(self, lasts: bool) -> bool:
        """Hold or release the Lease; return whether that was done."""
        try:
            await self._client.patch(
                resources.LEASES,
                names.LEASE_GANG_BACKLOG,
                self._lease(lasts),
                namespace=self._namespace,
                kind=clients.Patch.APPLY,
                field_manager="koord-extender",
                force=True,
            )
        except errors.KubeError as error:
            logger.warning("lease of the backlog of gangs was not written error=%s", error)
            return False
        return True

    def _lease(self, lasts: bool) -> dict[str, Any]:
        now = datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC)
        held = {"holderIdentity": self._identity} if lasts else {}
        return {
            "apiVersion": resources.LEASES.api_version,
            "kind": resources.LEASES.kind,
            "metadata": {"name": names.LEASE_GANG_BACKLOG, "namespace": self._namespace},
            "spec": {
                **held,
                "leaseDurationSeconds": _LEASE_SECONDS,
                "renewTime": now.strftime(_TIME),
            },
        }
