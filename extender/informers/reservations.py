"""Reservations, watched as the claims that they make on their nodes.

What is written often and changes no claim, such as who uses a Reservation, is no change here.
"""

import logging
from typing import Any

from api import resources
from api.koordinator import scheduling
from api.wire import base
from extender.state import claims, records
from extender.state.reservations import reservation_claims
from kube.informers import informer_set, reflector, store

logger = logging.getLogger(__name__)

Reservations = store.Store[claims.Claim]


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

    def read(self, raw: dict[str, Any]) -> claims.Claim | None:
        """Return the claim of a Reservation, None where it holds nothing."""
        try:
            return reservation_claims.claim(scheduling.read_reservation(raw), self._projector)
        except (base.ReadError, *store.UNREADABLE) as error:
            last = self.known.get(raw["metadata"]["name"])
            if last is None or last.pod.uid != raw["metadata"].get("uid"):
                raise
            logger.warning(
                "Reservation cannot be read and keeps what it held name=%s error=%s",
                raw["metadata"]["name"],
                str(error)[:200],
            )
            return last
