"""Reservations that are allocated once and used up, which the state has forgotten.

A second pod may yet turn out to use one. Where this process has not seen the Reservation end, it is
read again as soon as two pods of a node use it, so that nothing depends on when the process began.
"""

import logging
from collections.abc import Collection
from typing import Any, Final

import msgspec

from api import resources
from api.koordinator import scheduling
from api.kubernetes import dns
from api.wire import base
from extender.state import claims, records
from extender.state.reservations import reservation_claims
from kube.client import client as clients
from kube.client import errors
from kube.informers import store

logger = logging.getLogger(__name__)

_MOST: Final = 4096


class UsedUp:
    """The claims of such Reservations, each as long as there is room; they keep nothing."""

    def __init__(self, client: clients.Client, projector: records.Projector) -> None:
        self._client, self._projector = client, projector
        self._found: dict[str, claims.Claim | None] = {}
        """By id; None: it was read, and is none of these."""

    def remember(self, gone: claims.Claim) -> None:
        """Take in a Reservation that holds nothing any more."""
        offered = reservation_claims.offered(gone)
        if offered is not None and offered.allocate_once and not offered.operates:
            self._keep(gone.id, gone)

    def of(self, held: Collection[claims.Claim]) -> list[claims.Claim]:
        """Return those that pods of a node use."""
        if not self._found:
            return []
        used = sorted({one.consumes for one in held})
        return [found for ident in used if (found := self._found.get(ident)) is not None]

    def unknown(self, held: Collection[claims.Claim]) -> dict[str, str]:
        """Return which two pods of a node use that nothing is known of: names by id."""
        present = {one.id for one in held}
        using: dict[str, list[claims.Claim]] = {}
        for one in held:
            if one.consumes and one.consumes not in present and one.consumes not in self._found:
                using.setdefault(one.consumes, []).append(one)
        return {ident: _name(users[0]) for ident, users in using.items() if len(users) > 1}

    async def read(self, held: Collection[claims.Claim]) -> None:
        """Read those of which nothing is known."""
        for ident, name in self.unknown(held).items():
            try:
                found = await present(self._client, name)
            except errors.KubeError as error:
                # Overlaps of pods do not wait for it; it is read again with the next look.
                logger.warning("Reservation cannot be read name=%s error=%s", name, error)
                continue
            status = {} if found is None else found.get("status") or {}
            if found is None or status.get("phase") != scheduling.SUCCEEDED:
                self._keep(ident, None)
                continue
            # As it was while pods could use it.
            again = {**found, "status": {**status, "phase": scheduling.AVAILABLE}}
            claim = as_claim(again, self._projector)
            offered = None if claim is None else reservation_claims.offered(claim)
            is_it = claim is not None and claim.id == ident
            once = is_it and offered is not None and offered.allocate_once
            self._keep(ident, claim if once else None)

    def _keep(self, ident: str, claim: claims.Claim | None) -> None:
        if len(self._found) >= _MOST:
            del self._found[next(iter(self._found))]
        if claim is not None:
            name = reservation_claims.NAME
            kept = {name: claim.allocations[name]}
            claim = msgspec.structs.replace(claim, allocations=kept)
        self._found[ident] = claim


def as_claim(raw: dict[str, Any], projector: records.Projector) -> claims.Claim | None:
    """Return what a Reservation holds, None where that is nothing or cannot be read."""
    try:
        return reservation_claims.claim(scheduling.read_reservation(raw), projector)
    except (base.ReadError, *store.UNREADABLE):
        return None


async def present(client: clients.Client, name: str) -> dict[str, Any] | None:
    """Return a Reservation as the API server has it now, None where there is none."""
    if not dns.is_subdomain(name):
        return None
    try:
        return await client.get(resources.RESERVATIONS, name)
    except errors.NotFound:
        return None


def _name(user: claims.Claim) -> str:
    """Return the name of the Reservation that a pod uses."""
    return str(getattr(user.allocations.get(reservation_claims.NAME), "name", ""))
