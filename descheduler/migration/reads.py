"""Single objects as the API server has them now, for what a watch may not show yet."""

from typing import Any

import msgspec

from api import resources
from api.wire import base
from descheduler.model import object_projection, objects, pod_object, pod_projection, podinfo
from kube.client import client as clients
from kube.client import errors


class Reads:
    """Reads pods, jobs and Reservations; None where there is none."""

    def __init__(self, api: clients.Client) -> None:
        self._api = api
        self._projector = pod_projection.Projector()

    async def raw_pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return a pod with all its fields."""
        if not (namespace and name):
            return None
        return await self._get(resources.PODS, name, namespace)

    async def pod(self, namespace: str, name: str) -> podinfo.Pod | None:
        """Return what is kept of a pod."""
        raw = await self.raw_pod(namespace, name)
        if raw is None:
            return None
        try:
            return self._projector.pod(msgspec.convert(raw, pod_object.Pod))
        except msgspec.ValidationError as error:
            raise errors.Malformed(f"pod {namespace}/{name} cannot be read: {error}") from error

    async def job(self, name: str) -> objects.Job | None:
        """Return what is kept of a job."""
        raw = await self._get(resources.POD_MIGRATION_JOBS, name)
        try:
            return None if raw is None else object_projection.job(raw)
        except base.ReadError as error:
            raise errors.Malformed(str(error)) from error

    async def reservation(self, name: str) -> objects.Reservation | None:
        """Return what is kept of a Reservation."""
        raw = await self._get(resources.RESERVATIONS, name)
        return None if raw is None else reservation(raw)

    async def _get(
        self, resource: resources.Resource, name: str, namespace: str = ""
    ) -> dict[str, Any] | None:
        try:
            return await self._api.get(resource, name, namespace)
        except errors.NotFound:
            return None


def reservation(raw: dict[str, Any]) -> objects.Reservation:
    """Return what is kept of a Reservation that was read or created."""
    try:
        return object_projection.reservation(raw)
    except base.ReadError as error:
        raise errors.Malformed(str(error)) from error
