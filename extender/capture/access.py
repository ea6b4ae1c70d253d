"""Reads of stand-ins and Reservations, each within its time, and the removal of stand-ins."""

import dataclasses
import logging
from typing import Any

from api import resources
from extender.capture import plan
from extender.state import records
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import supervise

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """Reads and deletes single objects."""

    client: clients.Client
    clock: clocks.Clock
    seconds: float
    """Time for one read."""

    async def target(self, pod: records.PodRecord) -> plan.Target | str:
        """Return which Reservation a stand-in names, or why that is not known."""
        try:
            raw = await self.get(resources.PODS, pod.name, pod.namespace)
        except errors.KubeError as error:
            return f"the stand-in could not be read: {error}"
        if raw is None or plan.uid(raw) != pod.uid:
            return "the stand-in is gone"
        return plan.target(raw) or "the pod does not say which Reservation it stands in for"

    async def remove(self, pod: records.PodRecord) -> None:
        """Delete the stand-in; where that fails, the manager does it."""
        try:
            await self.client.delete(resources.PODS, pod.name, pod.namespace, uid=pod.uid)
        except (errors.NotFound, errors.Conflict):
            pass  # Gone already, or another pod by now.
        except errors.KubeError as error:
            logger.warning("stand-in is left to the manager pod=%s error=%s", pod.key, error)

    async def get(
        self, resource: resources.Resource, name: str, namespace: str = ""
    ) -> dict[str, Any] | None:
        """Return an object, None where it does not exist."""
        try:
            async with supervise.deadline(self.clock, self.seconds):
                return await self.client.get(resource, name, namespace)
        except errors.NotFound:
            return None
        except TimeoutError as error:
            raise errors.Unreachable(f"{resource.plural} {name}: no answer in time") from error

    async def fenced(self, wanted: plan.Target, attempt: str) -> dict[str, Any] | None:
        """Make a status fail that may still be on its way; return the Reservation, if it is there.

        A conflict is that of another uid, or of an object that others write all the time.
        """
        kind, name = resources.RESERVATIONS, wanted.name
        try:
            async with supervise.deadline(self.clock, self.seconds):
                return await self.client.patch(kind, name, plan.fence(wanted, attempt))
        except errors.NotFound:
            return None
        except errors.Conflict:
            present = await self.get(kind, name)
            if present is not None and plan.uid(present) == wanted.uid:
                raise
            return None
        except TimeoutError as error:
            raise errors.Unreachable(f"{kind.plural} {name}: no answer in time") from error
