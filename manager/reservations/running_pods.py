"""Reads running pods over which Reservations are placed.

They are listed when a Reservation needs them: to keep labels and owners of every pod of a large
cluster for the few Reservations with preAllocation would cost more.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api import resources
from api.koordinator import scheduling
from api.kubernetes import core
from domain.pods import resources as amounts
from kube.client import client as clients
from kube.client import errors
from kube.informers import store
from manager.model import projections
from manager.reservations import objects, pre_allocation

logger = logging.getLogger(__name__)

_MOST_NODES: Final = 8
"""Nodes of which the pods are read in one attempt."""


class RunningPods:
    """Finds pods over which a Reservation can be placed, and follows them until they end."""

    def __init__(
        self,
        reader: clients.Client,
        reservations: store.Store[objects.ReservationObject],
        stand_ins: store.Store[objects.StandIn],
        nodes: store.Store[projections.Node],
        terms: Callable[[], pre_allocation.Terms],
    ) -> None:
        self._reader = reader
        self._reservations = reservations
        self._stand_ins = stand_ins
        self._nodes = nodes
        self._terms = terms

    def refusal(self, found: objects.ReservationObject) -> str:
        """Return why a Reservation is not placed over running pods, empty where it may be."""
        return pre_allocation.refusal(found, self._terms())

    async def choose(
        self, found: objects.ReservationObject, tried: frozenset[str]
    ) -> pre_allocation.Choice | str:
        """Return over which pods to place a Reservation, or why over none; not on nodes tried."""
        why = self.refusal(found)
        if why:
            return why
        pods: list[pre_allocation.Running] = []
        for query in pre_allocation.queries(found, self._terms()):
            try:
                pods += await self._listed(labels=query)
            except errors.BadRequest as error:
                return f"{pre_allocation.NONE_MEETS}: labelSelector {query}: {error}"
        labels = {name: one.labels for name, one in self._nodes.items() if name not in tried}
        ranked = pre_allocation.candidates(found, pods, self._taken(found), labels)
        for node in list(dict.fromkeys(one.node for one in ranked))[:_MOST_NODES]:
            there = [one for one in ranked if one.node == node]
            choice = pre_allocation.chosen(found, there, await self._free(node))
            if choice is not None:
                return choice
        return pre_allocation.NONE_MEETS

    async def still(self, found: objects.ReservationObject) -> list[objects.User]:
        """Return the pods that still run of those over which a Reservation was placed."""
        wanted = set(found.owners)
        return [
            objects.User(one.owner, found.uid, one.node, dict(one.asking.requests))
            for one in await self._listed(fields=f"spec.nodeName={found.node}")
            if one.owner in wanted
        ]

    def _taken(self, found: objects.ReservationObject) -> frozenset[str]:
        """Return the uids of pods for which other Reservations wait, or are about to."""
        waiting = {
            owner.uid
            for one in self._reservations
            if one.phase == scheduling.WAITING and one.uid != found.uid
            for owner in one.owners
        }
        chosen = {
            uid for one in self._stand_ins if one.reservation_uid != found.uid for uid in one.over
        }
        return frozenset(waiting | chosen)

    async def _free(self, node: str) -> dict[str, int]:
        known = self._nodes.get(node)
        pods = await self._listed(fields=f"spec.nodeName={node}")
        kept = [_kept(one) for one in self._reservations if one.node == node and not one.ended]
        return pre_allocation.free({} if known is None else known.offered, pods, kept)

    async def _listed(self, *, labels: str = "", fields: str = "") -> list[pre_allocation.Running]:
        listing = await self._reader.list(resources.PODS, labels=labels, fields=fields)
        return list(self._read(listing.items))

    def _read(self, items: Sequence[dict[str, Any]]) -> Iterator[pre_allocation.Running]:
        terms = self._terms()
        for raw in items:
            try:
                pod = msgspec.convert(scheduling.without_nulls(raw), core.Pod)
            except msgspec.ValidationError as error:
                # A pod that cannot be read hides no other one.
                logger.debug("pod cannot be read error=%s", error)
                continue
            found = pre_allocation.running(pod, terms)
            if found is not None:
                yield found


def _kept(one: objects.ReservationObject) -> Mapping[str, int]:
    held, used = amounts.amounts(one.allocatable), amounts.amounts(one.allocated)
    return {name: max(0, value - used.get(name, 0)) for name, value in held.items()}
