"""Proof that a watch cache is current: it holds what the API server's quorum knows at this moment.

API servers order all changes of a kind by resource version and deliver them in that order. A write
of our own gets the newest version of all, so a watch that has seen its echo has seen all that came
before. Such an echo takes milliseconds on every release. Where there is nothing to write to, the
newest version is read from the quorum and the watch has to reach it by an event or a bookmark. For
that the watch is opened for a short time; API servers of 1.36 send its bookmark within two
seconds, older ones none at all while the kind is quiet.
"""

import logging
import secrets
from typing import Any, Generic, NamedTuple, TypeVar

from kube.client import client as clients
from kube.client import errors
from kube.informers import reflector

logger = logging.getLogger(__name__)

T = TypeVar("T")

# There is no such object, the account may not change it, or admission does not let it.
_UNWRITABLE = (errors.NotFound, errors.Forbidden, errors.Invalid, errors.Conflict)


class Marker(NamedTuple):
    """An object of the watched kind that is ours, and the annotation that is written on it."""

    namespace: str
    name: str
    annotation: str


class Barrier(Generic[T]):
    """Makes one reflector prove that its cache is current."""

    def __init__(
        self, client: clients.Client, watched: reflector.Reflector[T], marker: Marker, manager: str
    ) -> None:
        self._client = client
        self._watched = watched
        self._marker = marker
        self._manager = manager

    @property
    def current_at(self) -> float | None:
        """When the cache was last listed as the quorum had it; that proves the same."""
        return self._watched.progress.current_at

    async def place(self) -> int:
        """Return a resource version that is not older than anything written before the call."""
        known = self._watched.progress.version
        written = await self._written()
        if written:
            self._compare(known + 1, written)
            return written
        newest = await self._client.current_version(self._watched.projection.resource)
        self._compare(known, newest)
        if self._watched.progress.version < newest:
            self._watched.hasten()
        return newest

    async def reached(self, version: int) -> None:
        """Wait until the cache holds everything up to this version."""
        await self._watched.progress.reached(version)

    def _compare(self, least: int, version: int) -> None:
        """Find out that the API server was set back, for instance to a backup."""
        if version < least:
            self._watched.relist()
            raise errors.Malformed(
                f"{self._watched.name} were delivered up to version {least}, which is newer than "
                f"the API server's {version}; they are listed again"
            )

    async def _written(self) -> int:
        """Return the version of a change to the marker, 0 if it cannot be changed."""
        marker, value = self._marker, secrets.token_hex(8)
        body = {"metadata": {"annotations": {marker.annotation: value}}}
        try:
            changed = await self._client.patch(
                self._watched.projection.resource,
                marker.name,
                body,
                namespace=marker.namespace,
                field_manager=self._manager,
            )
        except _UNWRITABLE as error:
            logger.info(
                "barrier is read and not written resource=%s object=%s/%s reason=%s",
                self._watched.name, marker.namespace, marker.name, error,
            )  # fmt: skip
            return 0
        return _version(changed, marker.annotation, value)


def _version(changed: dict[str, Any], annotation: str, value: str) -> int:
    """Return the version of an object if it was changed; an unchanged one keeps its old version."""
    metadata = changed.get("metadata")
    if not isinstance(metadata, dict):
        return 0
    notes, version = metadata.get("annotations"), metadata.get("resourceVersion")
    if not isinstance(notes, dict) or notes.get(annotation) != value:
        return 0
    return int(version) if isinstance(version, str) and version.isdecimal() else 0
