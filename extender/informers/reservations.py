"""Reservations, watched as the claims that they make on their nodes.

What is written often and changes no claim, such as who uses a Reservation, is no change here, and
is not even read.
"""

import hashlib
import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import resources
from api.koordinator import scheduling
from api.wire import base
from extender.state import claims, records
from extender.state.reservations import reservation_claims
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

Reservations = store.Store[claims.Claim]

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_OWNERS: Final = ("currentOwners", "allocated")
"""What the status of a Reservation says of the pods that use it."""


class _Last(NamedTuple):
    """The claim that was read last, and of what."""

    digest: bytes
    claim: claims.Claim


def add(members: informer_set.InformerSet, projector: records.Projector) -> Reservations:
    """Watch Reservations; where their CRD is not installed there are none."""
    reader = Reader(projector)
    found = members.add(
        reflector.Projection(resources.RESERVATIONS, dict, reader.read, grants=True)
    )
    reader.known = found
    return found


class Reader:
    """Reads Reservations; one that cannot be read any more keeps what it held."""

    def __init__(self, projector: records.Projector) -> None:
        self.known: Reservations = store.Store()
        self._projector = projector
        self._last: dict[str, _Last] = {}
        self._room = 64

    def read(self, raw: dict[str, Any]) -> claims.Claim | None:
        """Return the claim of a Reservation, None where it holds nothing."""
        name, digest = raw["metadata"]["name"], _digest(raw)
        last = self._last.get(name)
        if last is not None and last.digest == digest:
            return last.claim
        try:
            found = reservation_claims.claim(scheduling.read_reservation(raw), self._projector)
        except (base.ReadError, *store.UNREADABLE) as error:
            return self._unreadable(raw, error)
        self._last.pop(name, None)
        if found is not None and digest:
            self._keep(name, _Last(digest, found))
        return found

    def kept(self) -> int:
        """Return of how many Reservations it is known what was read."""
        return len(self._last)

    def _unreadable(self, raw: dict[str, Any], error: Exception) -> claims.Claim:
        """Return what a Reservation held that cannot be read, and raise the error if nothing."""
        name = raw["metadata"]["name"]
        last = self.known.get(name)
        if last is None or last.pod.uid != raw["metadata"].get("uid"):
            raise error
        logger.warning(
            "Reservation cannot be read and keeps what it held name=%s error=%s",
            name,
            str(error)[:200],
        )
        return last

    def _keep(self, name: str, last: _Last) -> None:
        """Keep what was read, and forget those that are gone once these are about a half."""
        self._last[name] = last
        if len(self._last) > self._room:
            self._last = {key: one for key, one in self._last.items() if key in self.known}
            self._last[name] = last
            self._room = 2 * len(self._last) + 64


def _digest(raw: Mapping[str, Any]) -> bytes:
    """Return a short key of everything that the claim of a Reservation depends on.

    Empty where there is none: the object holds what no API server sends.
    """
    metadata, status = raw["metadata"], raw.get("status")
    if isinstance(status, dict) and status.get("phase") == scheduling.AVAILABLE:
        status = {key: value for key, value in status.items() if key not in _OWNERS}
    said = (
        metadata["name"],
        metadata.get("namespace"),
        metadata.get("uid"),
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        raw.get("spec"),
        status,
    )
    try:
        return hashlib.blake2b(_ENCODE(said), digest_size=16).digest()
    except store.UNREADABLE:
        return b""
